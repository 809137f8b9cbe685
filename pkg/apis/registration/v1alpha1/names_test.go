// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestClusterName_IsTheUpstreamHash(t *testing.T) {
	// printf really-random | sha256sum | cut -c1-12
	if got, want := ClusterName("really-random"), "cluster-08f9d8eb5b7d"; got != want {
		t.Errorf("ClusterName = %q, want %q", got, want)
	}
	long := strings.Repeat("x", 100)
	if ClusterName(long) != ClusterName(long+"y") {
		t.Error("The hash depends on more than the first 100 bytes, unlike upstream")
	}
}

func TestRequestName_DependsOnTheKeyOnly(t *testing.T) {
	name := RequestName([]byte("key"))
	if name != RequestName([]byte("key")) || name == RequestName([]byte("another key")) {
		t.Error("RequestName returns the same name for two keys, or is not stable")
	}
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		t.Errorf("RequestName %q is not a valid object name: %v", name, errs)
	}
}

func TestIsReservedLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"env":                                           false,
		"example.com/team":                              false,
		"notfleetgate.io/x":                             false,
		"fleet.cattle.io/created-by-agent-pod":          false,
		"fleet.cattle.io/cluster":                       true,
		"management.cattle.io/cluster-name":             true,
		"fleetgate.io/member":                           true,
		"placement.fleetgate.io/x":                      true,
		"kubernetes-fleet.io/member-name":               true,
		"placement.kubernetes-fleet.io/x":               true,
		"cluster.open-cluster-management.io/clusterset": true,
		"multicluster.x-k8s.io/clusterset":              true,
	} {
		if got := IsReservedLabel(key); got != want {
			t.Errorf("IsReservedLabel(%q) = %v, want %v", key, got, want)
		}
	}
}

func TestSealedTokenAAD_DiffersPerRequest(t *testing.T) {
	if string(SealedTokenAAD("uid", "client")) == string(SealedTokenAAD("uidcl", "ient")) {
		t.Error("Two requests have the same additional data")
	}
}
