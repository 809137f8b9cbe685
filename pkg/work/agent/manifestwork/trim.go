// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// maxWork is how large a ManifestWork may become by its status, in bytes: what an API
// server stores by default, less some for the rest of the object.
const maxWork = 1415578

// conditionTrimmed is on a ManifestWork whose values were left out, which is ours.
const (
	conditionTrimmed = "StatusTrimmed"
	reasonOversized  = "StatusOversized"
)

// trimmed keeps a status from becoming too large to be written: it drops the values of
// feedback rules, which can be looked up on the cluster.
func (c conditions) trimmed(work *workv1.ManifestWork, status *workv1.ManifestWorkStatus) {
	size := statusBytes(status)
	for _, m := range work.Spec.Workload.Manifests {
		size += len(m.Raw)
	}
	if size <= maxWork {
		apimeta.RemoveStatusCondition(c.Of, conditionTrimmed)
		return
	}
	for i := range status.ResourceStatus.Manifests {
		status.ResourceStatus.Manifests[i].StatusFeedback.Values = nil
	}
	c.Set(conditionTrimmed, metav1.ConditionTrue, reasonOversized, "The status was too large to be written in full: values of feedback rules are left out")
}

// statusBytes estimates the size of a status as JSON, rather too much than too little.
func statusBytes(status *workv1.ManifestWorkStatus) int {
	const perManifest, perCondition, perValue = 512, 256, 128
	size := 0
	for _, m := range status.ResourceStatus.Manifests {
		size += perManifest
		for _, said := range m.Conditions {
			size += perCondition + len(said.Message)
		}
		for _, v := range m.StatusFeedback.Values {
			size += perValue + len(v.Name)
			if v.Value.String != nil {
				size += len(*v.Value.String)
			}
			if v.Value.JSONRaw != nil {
				size += 2 * len(*v.Value.JSONRaw) // its quotes are escaped
			}
		}
	}
	return size
}
