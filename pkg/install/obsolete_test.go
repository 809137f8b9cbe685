// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestRemoveObsolete_IgnoresForbiddenObjects(t *testing.T) {
	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{LabelManagedBy: ManagedBy}},
		}
	}
	hub := fake.NewClientBuilder().WithObjects(object("unnamed"), object("obsolete")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if key.Name == "unnamed" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, nil)
			}
			return c.Get(ctx, key, into, options...)
		},
	}).Build()
	i := &Installer{Client: hub}
	i.Obsolete = []client.Object{object("unnamed"), object("obsolete")}
	if err := i.removeObsolete(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left corev1.ConfigMapList
	if err := hub.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "unnamed" {
		t.Errorf("left are %v: %v", left.Items, err)
	}
}
