// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOwnerOf(t *testing.T) {
	tests := map[string]struct {
		object metav1.ObjectMeta
		want   string
	}{
		"Helm release": {metav1.ObjectMeta{
			Labels:      map[string]string{LabelManagedBy: "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "hub-agent", "meta.helm.sh/release-namespace": "fleet-system"},
		}, "Helm release fleet-system/hub-agent"},
		"label": {metav1.ObjectMeta{Labels: map[string]string{LabelManagedBy: "clusteradm"}}, "clusteradm"},
		"field manager, not the one of the status": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-apiserver", Subresource: "status"}, {Manager: "kubectl"},
		}}, `field manager "kubectl"`},
		"nothing": {metav1.ObjectMeta{}, "somebody else"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ownerOf(&tt.object); got != tt.want {
				t.Errorf("ownerOf() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNewer(t *testing.T) {
	tests := map[string]struct {
		installed, our string
		want           bool
	}{
		"higher":                      {"v0.2.0", "v0.1.9", true},
		"two-digit version":           {"v0.10.0", "v0.9.0", true},
		"equal":                       {"v0.1.0", "v0.1.0", false},
		"lower":                       {"v0.1.0", "v0.2.0", false},
		"release candidate of ours":   {"v0.2.0-rc.1", "v0.2.0", false},
		"no version":                  {"", "v0.1.0", false},
		"invalid version":             {"latest", "v0.1.0", false},
		"our version is invalid":      {"v0.1.0", "devel", false},
		"release after our candidate": {"v0.2.0", "v0.2.0-rc.1", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := newer(tt.installed, tt.our); got != tt.want {
				t.Errorf("newer(%q, %q) = %v, want %v", tt.installed, tt.our, got, tt.want)
			}
		})
	}
}

func TestLeasesOf(t *testing.T) {
	const operator = "open-cluster-management/clustermanager-lock"
	const kubefleet = "fleet-system/136224848560.hub.fleet.azure.com"
	tests := map[string][]string{
		"memberclusters.cluster.kubernetes-fleet.io":                                      {kubefleet},
		"works.placement.kubernetes-fleet.io":                                             {kubefleet},
		"fleet-validating-webhook-configuration":                                          {kubefleet},
		"clusters.fleet.cattle.io":                                                        {"cattle-fleet-system/fleet-controller-lock", "cattle-fleet-system/fleet-agentmanagement-lock"},
		"v1alpha1.cluster.core.oam.dev":                                                   {"vela-system/kubevela-core-leader"},
		"clusterprofiles.multicluster.x-k8s.io":                                           nil,
		"managedclusters.cluster.open-cluster-management.io":                              {"open-cluster-management-hub/registration-controller-lock", operator},
		"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io": {"open-cluster-management-hub/registration-controller-lock", operator},
		"placements.cluster.open-cluster-management.io":                                   {"open-cluster-management-hub/placement-lock", operator},
		"manifestworkreplicasets.work.open-cluster-management.io":                         {"open-cluster-management-hub/work-manager-lock", operator},
		"manifestworkvalidators.admission.work.open-cluster-management.io":                {"open-cluster-management-hub/work-manager-lock", operator},
		"clusterclaims.cluster.open-cluster-management.io":                                nil,
		"clusters.notfleet.cattle.io":                                                     nil,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, lease := range leasesOf(name) {
				got = append(got, lease.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Leases differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsHeld(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	spec := func(holder string, age time.Duration, seconds *int32) coordinationv1.LeaseSpec {
		return coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-age))), LeaseDurationSeconds: seconds}
	}
	tests := map[string]struct {
		spec coordinationv1.LeaseSpec
		want bool
	}{
		"renewed":               {spec("a", 10*time.Second, ptr.To[int32](60)), true},
		"stale":                 {spec("a", 60*time.Second, ptr.To[int32](60)), false},
		"released":              {spec("", time.Second, ptr.To[int32](60)), false},
		"no duration":           {spec("a", 14*time.Second, nil), true},
		"zero duration":         {spec("a", 16*time.Second, ptr.To[int32](0)), false},
		"never renewed":         {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a")}, false},
		"never held":            {coordinationv1.LeaseSpec{}, false},
		"renewed in the future": {spec("a", -time.Second, ptr.To[int32](60)), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isHeld(&coordinationv1.Lease{Spec: tt.spec}, now); got != tt.want {
				t.Errorf("isHeld() = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestForeignObjectError_NamesRemedy(t *testing.T) {
	foreign := ForeignObjectError{Kind: "CustomResourceDefinition", Name: "a.b", Owner: "Helm release x/y"}
	running := foreign
	running.Running = "ns/lease"
	for _, want := range []struct {
		err   error
		parts []string
	}{
		{&foreign, []string{"CustomResourceDefinition a.b", "Helm release x/y", "--adopt"}},
		{&running, []string{"CustomResourceDefinition a.b", "Helm release x/y", "ns/lease", "stop it"}},
	} {
		for _, part := range want.parts {
			if !strings.Contains(want.err.Error(), part) {
				t.Errorf("%q lacks %q", want.err, part)
			}
		}
	}
}
