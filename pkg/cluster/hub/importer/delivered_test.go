// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
)

// delivery is a hub with a Cluster, its registration token and the token's Secret.
func delivery(t *testing.T) (*Delivered, *registrationv1alpha1.Cluster) {
	t.Helper()
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "edge", UID: "cluster"}}
	cluster.Spec.ClientID = "client"
	// Those who may write Clusters choose these.
	cluster.Spec.PrivateRepoURL, cluster.Spec.AgentNamespace = "mallory.example.com", "mallory"
	cluster.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://mallory"}}
	token := tokenFor(cluster)
	token.UID, token.OwnerReferences = "token", []metav1.OwnerReference{{UID: cluster.UID, Controller: ptr.To(true)}}
	written, err := yaml.Marshal(&registrationv1alpha1.AgentValues{
		ClusterNamespace: "clusters", TokenName: token.Name, Token: "top-secret", APIServerURL: "https://hub:6443",
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		Type: registrationv1alpha1.SecretTypeRegistrationValues, Data: map[string][]byte{registrationv1alpha1.RegistrationValuesKey: written},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: token.Name, OwnerReferences: []metav1.OwnerReference{{UID: token.UID, Controller: ptr.To(true)}}},
	}
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(corev1.AddToScheme, registrationv1alpha1.AddToScheme)).WithObjects(cluster, token, secret).Build()
	return &Delivered{Reconciler: &Reconciler{
		Client: hub, Live: hub, Clock: clock.RealClock{}, HubURL: "https://hub:6443", Chart: agentChart(t), Image: "registry.example.com/agent:v1",
	}, ChartHash: "chart"}, cluster
}

func textOf(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var all strings.Builder
	for _, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func deploymentIn(objects []*unstructured.Unstructured) *unstructured.Unstructured {
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if at < 0 {
		return nil
	}
	return objects[at]
}

func TestDelivered_TakesNothingFromTheClusterButItsClientID(t *testing.T) {
	d, cluster := delivery(t)
	objects, version, refused, err := d.Manifests(t.Context(), cluster, nil, false, "")
	if err != nil || refused != nil || version == "" {
		t.Fatalf("got %v, %v, %q", refused, err, version)
	}
	text := textOf(t, objects)
	if strings.Contains(text, "mallory") || !strings.Contains(text, "registry.example.com/agent:v1") {
		t.Errorf("got %s", text)
	}
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && namespace != addonv1alpha1.FleetgateAgentNamespace && namespace != addonv1alpha1.FleetgateAgentAccounts {
			t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), namespace)
		}
	}
}

func TestDelivered_HasProxyAndNodesOfTheConfiguration(t *testing.T) {
	d, cluster := delivery(t)
	_, version, _, err := d.Manifests(t.Context(), cluster, nil, false, "")
	if err != nil {
		t.Fatal(err)
	}
	config := &addonv1alpha1.AddOnDeploymentConfigSpec{
		ProxyConfig:   addonv1alpha1.ProxyConfig{HTTPSProxy: "http://proxy:3128", NoProxy: "10.0.0.0/8"},
		NodePlacement: &addonv1alpha1.NodePlacement{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []addonv1alpha1.Toleration{{Key: "infra", Operator: "Exists"}}},
		Registries:    []addonv1alpha1.ImageMirror{{Mirror: "mallory.example.com"}},
	}
	objects, other, refused, err := d.Manifests(t.Context(), cluster, config, false, version)
	if err != nil || refused != nil || other == version {
		t.Fatalf("got %v, %v, %q", refused, err, other)
	}
	text := textOf(t, []*unstructured.Unstructured{deploymentIn(objects)})
	for _, want := range []string{`"name":"HTTPS_PROXY","value":"http://proxy:3128"`, `,10.0.0.0/8"`, `"nodeSelector":{"disk":"ssd"}`, `{"key":"infra","operator":"Exists"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if strings.Contains(text, "mallory") {
		t.Error("the image is that of the configuration")
	}
}

func TestDelivered_ContainsTheTokenUntilTheAgentIsRegistered(t *testing.T) {
	d, cluster := delivery(t)
	before, version, _, err := d.Manifests(t.Context(), cluster, nil, false, "")
	if err != nil || !strings.Contains(textOf(t, before), "top-secret") {
		t.Fatalf("no token: %v", err)
	}
	if again, same, _, err := d.Manifests(t.Context(), cluster, nil, false, version); again != nil || same != version || err != nil {
		t.Errorf("rendered again: %v, %q, %v", again, same, err)
	}
	after, other, _, err := d.Manifests(t.Context(), cluster, nil, true, version)
	if err != nil || other == version || strings.Contains(textOf(t, after), "top-secret") {
		t.Errorf("the token is still there: %v, %q", err, other)
	}
	// The klusterlet would otherwise restart the agent.
	if was, is := deploymentIn(before), deploymentIn(after); was == nil || textOf(t, []*unstructured.Unstructured{was}) != textOf(t, []*unstructured.Unstructured{is}) {
		t.Error("the Deployment changes when the agent is registered")
	}
}

func TestDelivered_RevokesOnlyTheTokenOfTheCluster(t *testing.T) {
	for name, owner := range map[string]string{"its own": "cluster", "another one": "other"} {
		d, cluster := delivery(t)
		token := tokenFor(cluster)
		if err := d.Client.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
			t.Fatal(err)
		}
		token.OwnerReferences[0].UID = "cluster"
		if owner != "cluster" {
			token.OwnerReferences[0].UID = "other"
		}
		if err := d.Client.Update(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := d.Revoke(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}
		err := d.Client.Get(t.Context(), client.ObjectKeyFromObject(token), token)
		if (client.IgnoreNotFound(err) == nil && err != nil) != (owner == "cluster") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDelivered_NeedsAnImageAndAToken(t *testing.T) {
	d, cluster := delivery(t)
	d.Image = ""
	if _, _, refused, err := d.Manifests(t.Context(), cluster, nil, false, ""); refused == nil || refused.Reason != ReasonImageMissing || err != nil {
		t.Errorf("no image: %v, %v", refused, err)
	}
	d, cluster = delivery(t)
	cluster.UID = "another" // The token is that of a former Cluster.
	if _, _, refused, err := d.Manifests(t.Context(), cluster, nil, false, ""); refused == nil || refused.Reason != ReasonTokenConflict || err != nil {
		t.Errorf("foreign token: %v, %v", refused, err)
	}
}
