// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"fleetgate.io/fleetgate/test/support/build"
)

// A gateway read its definitions four times, one after the other. On a hub with response times of half
// a second it was not ready before its clients timed out.
func TestInstallDefinitions_OnSlowHub(t *testing.T) {
	const late, many, patience = 500 * time.Millisecond, 50, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		kinds := build.Scheme(apiextensionsv1.AddToScheme)
		var definitions []*apiextensionsv1.CustomResourceDefinition
		builder := fake.NewClientBuilder().WithScheme(kinds)
		for n := range many {
			definition := &apiextensionsv1.CustomResourceDefinition{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("things%d.example.com", n)},
			}
			served := definition.DeepCopy()
			served.Labels = map[string]string{LabelManagedBy: ManagedBy}
			served.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
			}
			definitions = append(definitions, definition)
			builder.WithObjects(served)
		}
		hub := builder.WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				time.Sleep(late)
				return hub.Get(ctx, key, object, options...)
			},
			Apply: func(ctx context.Context, hub client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				time.Sleep(late)
				return hub.Apply(ctx, object, options...)
			},
		}).Build()
		started := time.Now()
		installer := &Installer{Client: hub, Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{}}
		if err := installer.InstallDefinitions(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took > patience {
			t.Errorf("%d definitions took %s", many, took)
		}
		for _, definition := range definitions {
			var found apiextensionsv1.CustomResourceDefinition
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(definition), &found); err != nil || found.Annotations[AnnotationVersion] != "v0.1.0" {
				t.Fatalf("%s was not installed: %v", definition.Name, err)
			}
		}
	})
}
