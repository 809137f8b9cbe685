// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// policyOf returns a copy of the placement's policy; without a policy, one that picks all members.
func policyOf(spec *placementv1beta1.PlacementSpec) *placementv1beta1.PlacementPolicy {
	if spec.Policy == nil {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}
	}
	policy := spec.Policy.DeepCopy()
	if policy.PlacementType == "" {
		policy.PlacementType = placementv1beta1.PickAll
	}
	return policy
}

// policyHash is a hash of a policy without its number of clusters: scaling keeps the snapshot and only
// changes its annotation.
func policyHash(policy *placementv1beta1.PlacementPolicy) ([]byte, error) {
	text, err := hash.JSON(unscaled(policy))
	return []byte(text), err
}

func unscaled(policy *placementv1beta1.PlacementPolicy) *placementv1beta1.PlacementPolicy {
	policy = policy.DeepCopy()
	policy.NumberOfClusters = nil
	return policy
}

// isOfPolicy reports whether a snapshot is of this policy. The hash decides. If another product wrote a
// hash with its own algorithm, the policies are compared. A new snapshot instead would re-evaluate all
// members, and a temporarily disconnected member would lose its placed resources.
func isOfPolicy(s *placementv1beta1.SchedulingPolicySnapshotSpec, policy *placementv1beta1.PlacementPolicy, hash []byte) bool {
	if bytes.Equal(s.PolicyHash, hash) {
		return true
	}
	theirs := policyOf(&placementv1beta1.PlacementSpec{Policy: s.Policy})
	return equality.Semantic.DeepEqual(unscaled(theirs), unscaled(policy))
}

// policyAnnotations are the annotations of the placement's policy snapshot.
func policyAnnotations(placement metav1.Object, policy *placementv1beta1.PlacementPolicy) map[string]string {
	annotations := map[string]string{
		placementv1beta1.PlacementGenerationAnnotation: strconv.FormatInt(placement.GetGeneration(), 10),
	}
	if policy.PlacementType == placementv1beta1.PickN && policy.NumberOfClusters != nil {
		annotations[placementv1beta1.NumberOfClustersAnnotation] = strconv.Itoa(int(*policy.NumberOfClusters))
	}
	return annotations
}

// desiredPolicySnapshot builds the snapshot with an index.
func desiredPolicySnapshot(placement metav1.Object, policy *placementv1beta1.PlacementPolicy, hash []byte, index int) placementv1beta1.PolicySnapshotObject {
	s := objects.NewPolicySnapshot(placement.GetNamespace())
	s.SetNamespace(placement.GetNamespace())
	s.SetName(placementv1beta1.PolicySnapshotName(placement.GetName(), index))
	s.SetLabels(map[string]string{
		placementv1beta1.ParentPlacementLabel:  placement.GetName(),
		placementv1beta1.IsLatestSnapshotLabel: strconv.FormatBool(true),
		placementv1beta1.PolicyIndexLabel:      strconv.Itoa(index),
	})
	s.SetAnnotations(policyAnnotations(placement, policy))
	*s.GetSpec() = placementv1beta1.SchedulingPolicySnapshotSpec{Policy: policy, PolicyHash: hash}
	return s
}

// ObservedGeneration is the placement's generation that a policy snapshot was handled for, or 0 if it
// is not recorded.
func ObservedGeneration(s metav1.Object) int64 {
	generation, err := strconv.ParseInt(s.GetAnnotations()[placementv1beta1.PlacementGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// with returns a new map with additional entries.
func with(have, more map[string]string) map[string]string {
	all := maps.Clone(have)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
