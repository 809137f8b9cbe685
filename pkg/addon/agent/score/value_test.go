// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

func TestOf_ComparesAmountsOfAnySize(t *testing.T) {
	free := corev1.ResourceList{
		"cpu": resource.MustParse("24"), "memory": resource.MustParse("47Gi"), "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("1Ti"), "nvidia.com/gpu": resource.MustParse("8"), "example.com/none": resource.MustParse("0"),
	}
	want := []clusterv1alpha1.AddOnPlacementScoreItem{
		{Name: "cpuAvailable", Value: 48}, {Name: "memAvailable", Value: 53}, {Name: "example.com/none", Value: -100}, {Name: "nvidia.com/gpu", Value: 38},
	}
	if diff := cmp.Diff(want, Of(free)); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	for amount, want := range map[string]int32{
		"-1": -100, "0": -100, "1m": -40, "100m": 0, "1": 20, "2": 26, "10": 40, "100": 60, "1000": 80, "10000": 100, "9E": 100,
	} {
		if got := Of(corev1.ResourceList{"cpu": resource.MustParse(amount)})[0]; got.Value != want {
			t.Errorf("%s cores: got %d, want %d", amount, got.Value, want)
		}
	}
}

func TestOf_LimitsExtendedResources(t *testing.T) {
	free := corev1.ResourceList{}
	for i := range 3 * maxExtended {
		free[corev1.ResourceName(fmt.Sprintf("example.com/r%02d", i))] = resource.MustParse("1")
	}
	got := Of(free)
	if len(got) != 2+maxExtended || got[len(got)-1].Name != "example.com/r19" {
		t.Errorf("got %d scores, the last is %v", len(got), got[len(got)-1])
	}
}
