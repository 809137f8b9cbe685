// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func TestTextsAreManifests(t *testing.T) {
	for text, kind := range map[string]string{
		ConfigMapText("shop", "a", "k", "v"):    "ConfigMap",
		DeploymentText("shop", "main", "front"): "Deployment",
	} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != kind || object.GetNamespace() != "shop" {
			t.Errorf("%s is a %s in %q", text, object.GetKind(), object.GetNamespace())
		}
	}
}

func TestValuesComeByTurns(t *testing.T) {
	got := []map[string]string{ConfigMap("shop", "a", "k", "v", "l", "w").Data, Namespace("shop", "team", "a").Labels}
	if diff := cmp.Diff([]map[string]string{{"k": "v", "l": "w"}, {"team": "a"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsGivenStaysAsItIs(t *testing.T) {
	limited := &rest.Config{QPS: 5}
	if Unlimited(limited).QPS != -1 || limited.QPS != 5 {
		t.Errorf("the configuration has %v", limited.QPS)
	}
	if !Scheme(corev1.AddToScheme).Recognizes(corev1.SchemeGroupVersion.WithKind("Secret")) {
		t.Error("the scheme does not know what was added")
	}
}
