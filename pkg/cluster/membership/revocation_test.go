// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestWhoseCredentialWasDeleted(t *testing.T) {
	secret := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	tests := map[string]struct {
		obj  any
		want string
	}{
		"a member's credential":        {secret("fleet-member-edge", clusterv1beta1.AgentCredentialSecret), "edge"},
		"seen late":                    {toolscache.DeletedFinalStateUnknown{Obj: secret("fleet-member-edge", clusterv1beta1.AgentCredentialSecret)}, "edge"},
		"another Secret of the member": {secret("fleet-member-edge", "cluster-gateway"), ""},
		"a Secret of that name":        {secret("default", clusterv1beta1.AgentCredentialSecret), ""},
		"no object":                    {toolscache.DeletedFinalStateUnknown{}, ""},
		"an object of another kind":    {&corev1.ConfigMap{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := memberOfDeleted(tc.obj); got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tc.want)
			}
		})
	}
}
