// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

// Names of the scores, besides those of extended resources, which have the names of the resources.
const (
	CPU    = "cpuAvailable"
	Memory = "memAvailable"
)

const (
	lowest, highest = -100, 100
	gibibyte        = 1 << 30
	// maxExtended is the number of extended resources that are reported, the first by name.
	maxExtended = 20
)

// Of returns the scores of a member with these free resources, by name.
func Of(free corev1.ResourceList) []clusterv1alpha1.AddOnPlacementScoreItem {
	cpu, memory := free[corev1.ResourceCPU], free[corev1.ResourceMemory]
	scores := []clusterv1alpha1.AddOnPlacementScoreItem{
		{Name: CPU, Value: value(cpu.AsApproximateFloat64())},
		{Name: Memory, Value: value(memory.AsApproximateFloat64() / gibibyte)},
	}
	var extended []clusterv1alpha1.AddOnPlacementScoreItem
	for name, amount := range free {
		if strings.Contains(string(name), "/") {
			extended = append(extended, clusterv1alpha1.AddOnPlacementScoreItem{Name: string(name), Value: value(amount.AsApproximateFloat64())})
		}
	}
	slices.SortFunc(extended, func(a, b clusterv1alpha1.AddOnPlacementScoreItem) int { return strings.Compare(a.Name, b.Name) })
	return append(scores, extended[:min(len(extended), maxExtended)]...)
}

// value is the score of an amount.
func value(amount float64) int32 {
	if amount <= 0 {
		return lowest
	}
	return int32(min(max(math.Round(20*math.Log10(amount)+20), lowest), highest))
}
