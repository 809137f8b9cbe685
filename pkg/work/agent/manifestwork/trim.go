// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// maxWork is the size limit of a ManifestWork with its status: the default request limit of etcd,
// less a reserve for the rest of the object.
const maxWork = 1415578

// conditionTrimmed is set on a ManifestWork if values were omitted. OCM does not have it.
const (
	conditionTrimmed = "StatusTrimmed"
	reasonOversized  = "StatusOversized"
)

// trimmed reduces a status that is too large to be written. It omits the values of feedback rules,
// which can be read on the cluster.
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

// statusBytes estimates the JSON size of a status and rather overestimates it.
func statusBytes(status *workv1.ManifestWorkStatus) int {
	const perManifest, perCondition, perValue = 512, 256, 128
	size := 0
	for _, m := range status.ResourceStatus.Manifests {
		size += perManifest
		for _, merged := range m.Conditions {
			size += perCondition + len(merged.Message)
		}
		for _, v := range m.StatusFeedback.Values {
			size += perValue + len(v.Name)
			if v.Value.String != nil {
				size += len(*v.Value.String)
			}
			if v.Value.JSONRaw != nil {
				size += 2 * len(*v.Value.JSONRaw) // quotes are escaped
			}
		}
	}
	return size
}
