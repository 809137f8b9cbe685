// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

func TestConditionOf_FollowsTheLease(t *testing.T) {
	now := time.Unix(10000, 0)
	renewed := func(ago time.Duration) *coordinationv1.Lease {
		at := metav1.NewMicroTime(now.Add(-ago))
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
	}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
		left  time.Duration
	}{
		"renewed a minute ago": {renewed(time.Minute), "True/ManagedClusterAddOnLeaseUpdated/dns add-on is available.", 4 * time.Minute},
		"about to expire":      {renewed(5*time.Minute - time.Second), "True/ManagedClusterAddOnLeaseUpdated/dns add-on is available.", time.Second},
		"expired":              {renewed(5 * time.Minute), "False/ManagedClusterAddOnLeaseUpdateStopped/dns add-on is not available.", 0},
		"never renewed":        {&coordinationv1.Lease{}, "False/ManagedClusterAddOnLeaseUpdateStopped/dns add-on is not available.", 0},
		"no Lease":             {nil, "Unknown/ManagedClusterAddOnLeaseNotFound/The status of dns add-on is unknown because its lease does not exist on the cluster", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, expires := conditionOf("dns", tc.lease, now)
			if said := string(got.Status) + "/" + got.Reason + "/" + got.Message; said != tc.want {
				t.Errorf("got %s", said)
			}
			if tc.left == 0 != expires.IsZero() || tc.left != 0 && expires.Sub(now) != tc.left {
				t.Errorf("expires at %v", expires)
			}
		})
	}
}

func TestLeaseOf_IsInTheNamespaceOfTheAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*addonv1alpha1.ManagedClusterAddOn)
		want   string
	}{
		"by default":                {func(*addonv1alpha1.ManagedClusterAddOn) {}, "open-cluster-management-agent-addon/dns"},
		"as the spec says":          {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "x" }, "x/dns"},
		"as the manager says":       {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace, a.Status.Namespace = "x", "y" }, "y/dns"},
		"the manager checks itself": {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.HealthCheck.Mode = "Customized" }, "/"},
		"it is about to go":         {func(a *addonv1alpha1.ManagedClusterAddOn) { a.DeletionTimestamp = &metav1.Time{} }, "/"},
		"it runs on another cluster": {func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "host"}
		}, "/"},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns"}}
		tc.change(addOn)
		key, tells := leaseOf(addOn)
		if key.String() != tc.want || tells != (tc.want != "/") {
			t.Errorf("%s: %s, %v", name, key, tells)
		}
	}
}
