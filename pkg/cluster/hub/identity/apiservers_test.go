// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestAPIServers_ReadAnnotation(t *testing.T) {
	said, unsaid := member("said", rbacv1.Subject{}), member("unsaid", rbacv1.Subject{})
	said.Annotations = map[string]string{clusterv1beta1.AnnotationAPIServer: "10.0.0.1:6443"}
	scheme := runtime.NewScheme()
	if err := clusterv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	servers := &APIServers{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&said, &unsaid).Build()}
	for name, want := range map[string]string{"said": "10.0.0.1:6443", "unsaid": "", "gone": ""} {
		if got, err := servers.Of(t.Context(), name); err != nil || got != want {
			t.Errorf("API server of %s: %q, %v, want %q", name, got, err, want)
		}
	}
}
