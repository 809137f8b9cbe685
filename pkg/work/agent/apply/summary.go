// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// summary derives the conditions of a Work from those of its manifests.
type summary struct {
	conditions
	manifests []placementv1beta1.ManifestCondition
}

// all sets a condition to True, with reason and message, if all manifests have it; otherwise to
// False with the reason otherwise.
func (s summary) all(kind, word, reason, message, otherwise string) bool {
	if text := firstOther(s.manifests, kind, word); text != "" {
		s.no(kind, otherwise, text)
		return false
	}
	s.yes(kind, reason, message)
	return true
}

func (s summary) applied() {
	s.Remove(placementv1beta1.ConditionDiffReported)
	if !s.all(placementv1beta1.ConditionApplied, "applied", placementv1beta1.ReasonAllManifestsApplied, "All manifests are applied",
		placementv1beta1.ReasonSomeManifestsAreNotApplied) {
		s.Remove(placementv1beta1.ConditionAvailable)
		return
	}
	reason, message := placementv1beta1.ReasonAllManifestsAvailable, "All manifests are available"
	if slices.ContainsFunc(s.manifests, isNotTracked) {
		reason, message = placementv1beta1.ReasonWorkNotTrackable, "All manifests that can be tracked are available"
	}
	s.all(placementv1beta1.ConditionAvailable, "available", reason, message, placementv1beta1.ReasonSomeManifestsAreNotAvailable)
}

// isNotTracked reports whether the Work does not wait for a manifest to become available. Clients
// of KubeFleet expect WorkNotTrackable for a Work with a Job at any time, also after the Job
// completed.
func isNotTracked(m placementv1beta1.ManifestCondition) bool {
	c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionAvailable)
	return c != nil && (c.Reason == placementv1beta1.ReasonNotTrackable || c.Reason == placementv1beta1.ReasonCompleted)
}

func (s summary) compared() {
	s.Remove(placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable)
	s.all(placementv1beta1.ConditionDiffReported, "compared", placementv1beta1.ReasonAllManifestsDiffReported, "All manifests are compared",
		placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff)
}

func (s summary) contested() {
	for _, m := range s.manifests {
		if c := apimeta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionContested); c != nil {
			s.Set(c.Type, c.Status, c.Reason, engine.Shorten(manifest.Ref(m.Identifier).String()+": "+c.Message))
			return
		}
	}
	s.Remove(placementv1beta1.ConditionContested)
}

// firstOther counts the manifests without a condition and names the first; empty if there is none.
func firstOther(manifests []placementv1beta1.ManifestCondition, condition, word string) string {
	count, first := 0, ""
	for _, m := range manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, condition) {
			continue
		}
		if count++; count == 1 {
			first = fmt.Sprintf("%s: %s", manifest.Ref(m.Identifier), messageOf(m.Conditions, condition))
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d manifests are not %s. %s", count, len(manifests), word, first)
}

func messageOf(conditions []metav1.Condition, condition string) string {
	if c := apimeta.FindStatusCondition(conditions, condition); c != nil {
		return c.Message
	}
	return "not known yet"
}

// maxWork is the size limit of a Work with its status: the default request limit of etcd, less a
// reserve for the rest of the object.
const maxWork = 1415578

// trimmed reduces a status that is too large to be written. It first drops details that can be read
// on the member, then cuts long messages.
func (s summary) trimmed(work *placementv1beta1.Work, status *placementv1beta1.WorkStatus) {
	raw := 0
	for _, m := range work.Spec.Workload.Manifests {
		raw += len(m.Raw)
	}
	if raw+statusBytes(status) <= maxWork {
		s.Remove(placementv1beta1.ConditionStatusTrimmed)
		return
	}
	for i := range status.ManifestConditions {
		m := &status.ManifestConditions[i]
		m.BackReportedStatus = nil
		if m.DriftDetails != nil {
			m.DriftDetails.ObservedDrifts = nil
		}
		if m.DiffDetails != nil {
			m.DiffDetails.ObservedDiffs = nil
		}
	}
	left := "drifts, differences and statuses of objects are left out"
	if raw+statusBytes(status) > maxWork {
		shortenMessages(status)
		left += ", and messages are cut"
	}
	s.yes(placementv1beta1.ConditionStatusTrimmed, placementv1beta1.ReasonStatusOversized,
		"The status was too large to be written in full: "+left)
}

// trimmedMessage is the length of messages when all of them together are too long.
const trimmedMessage = 64

// shortenMessages cuts the messages of manifests. The Work's conditions contain the first one in
// full.
func shortenMessages(status *placementv1beta1.WorkStatus) {
	for i := range status.ManifestConditions {
		conditions := status.ManifestConditions[i].Conditions
		for j := range conditions {
			conditions[j].Message = untrusted.Truncate(conditions[j].Message, trimmedMessage)
		}
	}
}

// statusBytes estimates the JSON size of a status and rather overestimates it. Encoding the status
// would cost as much as the rest of a reconcile.
func statusBytes(status *placementv1beta1.WorkStatus) int {
	const perManifest, perCondition, perDetail = 144, 144, 64
	size := 0
	for _, m := range status.ManifestConditions {
		id := m.Identifier
		size += perManifest + len(id.Group) + len(id.Version) + len(id.Kind) + len(id.Resource) + len(id.Namespace) + len(id.Name)
		for _, c := range m.Conditions {
			size += perCondition + len(c.Type) + len(c.Reason) + len(c.Message) + strings.Count(c.Message, `"`)
		}
		var fields []placementv1beta1.PatchDetail
		if m.DriftDetails != nil {
			fields = append(fields, m.DriftDetails.ObservedDrifts...)
		}
		if m.DiffDetails != nil {
			fields = append(fields, m.DiffDetails.ObservedDiffs...)
		}
		for _, field := range fields {
			size += perDetail + len(field.Path) + len(field.ValueInHub) + len(field.ValueInMember)
		}
		if m.DriftDetails != nil || m.DiffDetails != nil {
			size += 2 * perManifest // the timestamps
		}
		if m.BackReportedStatus != nil {
			size += perManifest + len(m.BackReportedStatus.ObservedStatus.Raw)
		}
	}
	return size
}
