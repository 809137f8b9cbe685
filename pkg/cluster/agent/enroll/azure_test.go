// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const vm = "/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/0"

func nodeOf(providerID string, labels map[string]string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func TestAzureLabels_FollowNodes(t *testing.T) {
	type labels = map[string]string
	in := func(managed string) labels {
		return labels{corev1.LabelTopologyRegion: "westeurope", labelManagedGroup: managed}
	}
	const id = azureProvider + "sub-1/resourceGroups/mc_shop_web_westeurope" + vm
	tests := map[string]struct {
		nodes []corev1.Node
		want  labels
	}{
		"no nodes":    {nil, nil},
		"other cloud": {[]corev1.Node{nodeOf("aws:///eu-west-1a/i-1", nil)}, nil},
		"AKS": {[]corev1.Node{nodeOf(id, in("MC_shop_web_westeurope"))},
			labels{"fleet.azure.com/location": "westeurope", "fleet.azure.com/resource-group": "shop", "fleet.azure.com/subscription-id": "sub-1"}},
		"AKS behind a virtual node": {[]corev1.Node{nodeOf("", nil), nodeOf(id, in("MC_shop_web_westeurope"))},
			labels{"fleet.azure.com/location": "westeurope", "fleet.azure.com/resource-group": "shop", "fleet.azure.com/subscription-id": "sub-1"}},
		"ambiguous names": {[]corev1.Node{nodeOf(id, in("MC_my_shop_web_westeurope"))},
			labels{"fleet.azure.com/location": "westeurope", "fleet.azure.com/subscription-id": "sub-1"}},
		"named group of nodes": {[]corev1.Node{nodeOf(id, in("nodes"))},
			labels{"fleet.azure.com/location": "westeurope", "fleet.azure.com/subscription-id": "sub-1"}},
		"machines of a self-managed cluster": {[]corev1.Node{nodeOf(azureProvider+"sub-1/resourceGroups/shop"+vm, nil)},
			labels{"fleet.azure.com/resource-group": "shop", "fleet.azure.com/subscription-id": "sub-1"}},
		"not a label value": {[]corev1.Node{nodeOf(azureProvider+"sub-1/resourceGroups/shop(1)"+vm, nil)}, labels{"fleet.azure.com/subscription-id": "sub-1"}},
		"truncated":         {[]corev1.Node{nodeOf(azureProvider+"sub-1", nil)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, azureLabels(tc.nodes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithFacts_UsersLabelsWin(t *testing.T) {
	node := nodeOf(azureProvider+"sub-1/resourceGroups/shop"+vm, nil)
	e := New(Options{Member: fake.NewClientset(&node)})
	got := e.withFacts(t.Context(), map[string]string{"env": "prod", "fleet.azure.com/resource-group": "mine"})
	want := map[string]string{"env": "prod", "fleet.azure.com/resource-group": "mine", "fleet.azure.com/subscription-id": "sub-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
