// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// dropCause is why the hub dropped a label of an agent, or empty.
type dropCause string

const (
	causeReserved   dropCause = "Reserved"
	causeInvalid    dropCause = "Invalid"
	causeNotAllowed dropCause = "NotAllowed"
	causeTooMany    dropCause = "TooMany"
	causeExists     dropCause = "ClusterExists"
)

// maxMessage bounds the message of a condition, and maxNote that of an event, which the API server
// limits to 1 KiB.
const (
	maxMessage = 16 << 10
	maxNote    = 1024
)

// explained are the causes as the condition states them.
func (c dropCause) explained() string {
	switch c {
	case causeReserved:
		return "reserved"
	case causeInvalid:
		return "not a valid label"
	case causeNotAllowed:
		return "not allowed by " + registrationv1alpha1.AnnotationAllowedLabels + " of the registration token"
	case causeTooMany:
		return fmt.Sprintf("more than %d labels", maxLabels)
	case causeExists:
		return "the Cluster existed before"
	}
	return string(c)
}

// causeOf is why a label is not among those that the hub kept.
func (t allowance) causeOf(key, value string, kept map[string]string) dropCause {
	_, ok := kept[key]
	switch {
	case ok:
		return ""
	case registrationv1alpha1.IsReservedLabel(key):
		return causeReserved
	case len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0:
		return causeInvalid
	case !t.allows(key):
		return causeNotAllowed
	}
	return causeTooMany
}

// droppedLabels are the labels with a cause in the format of AnnotationDroppedLabels. An agent can
// send any number of keys with any bytes, so it names at most maxLabels and shortens keys. The name of
// the agent's Pod is no label that a user set.
func droppedLabels(brought map[string]string, cause func(key, value string) dropCause) string {
	plain := strings.NewReplacer(",", "?", "=", "?") // The separators, which an invalid key can contain.
	var pairs []string
	more := 0
	for _, key := range slices.Sorted(maps.Keys(brought)) {
		why := cause(key, brought[key])
		switch {
		case why == "" || key == registrationv1alpha1.LabelCreatedByAgentPod:
		case len(pairs) == maxLabels:
			more++
		default:
			pairs = append(pairs, plain.Replace(untrusted.Excerpt(key, maxObjectName))+"="+string(why))
		}
	}
	if more > 0 {
		pairs = append(pairs, fmt.Sprintf("%d more=", more))
	}
	return strings.Join(pairs, ",")
}

// desiredLabelsAccepted is the condition LabelsAccepted, or nil if no label was ever dropped. A label
// that somebody set on the Cluster later is no longer missing.
func desiredLabelsAccepted(cluster *registrationv1alpha1.Cluster) *registrationv1alpha1.GenericCondition {
	var named []string
	for pair := range strings.SplitSeq(cluster.Annotations[AnnotationDroppedLabels], ",") {
		key, cause, _ := strings.Cut(pair, "=")
		if _, set := cluster.Labels[key]; key == "" || set {
			continue
		}
		if cause != "" {
			key += " (" + dropCause(cause).explained() + ")"
		}
		named = append(named, key)
	}
	condition := &registrationv1alpha1.GenericCondition{Type: registrationv1alpha1.ClusterConditionLabelsAccepted}
	if len(named) > 0 {
		condition.Status, condition.Reason = corev1.ConditionFalse, reasonLabelsDropped
		condition.Message = "Labels that the agent set were dropped: " + untrusted.Excerpt(strings.Join(named, ", "), maxMessage) +
			"; set them on this Cluster, or remove its annotation " + AnnotationDroppedLabels + " if they are not needed"
		return condition
	}
	if conditionOf(cluster, condition.Type).Type == "" {
		return nil
	}
	condition.Status, condition.Reason = corev1.ConditionTrue, reasonLabelsAccepted
	condition.Message = "No label that the agent set is missing"
	return condition
}

// maxLabels limits the number of labels that an agent can set.
const maxLabels = 64

// sanitizeLabels returns the labels that a registration can set: no reserved or invalid ones, and at
// most maxLabels. With more it returns none, so that nobody can influence the choice.
func sanitizeLabels(wanted map[string]string) map[string]string {
	return keepLabels(wanted, registrationv1alpha1.IsReservedLabel)
}

// LabelRule decides which labels from their agents members get.
type LabelRule bool

const (
	// CountSelfAssigned copies them to the MemberCluster, like all other labels of the Cluster.
	CountSelfAssigned LabelRule = false
	// IgnoreSelfAssigned leaves them on the Cluster, so that label selectors of members do not see
	// them.
	IgnoreSelfAssigned LabelRule = true
)

// memberLabels are the labels of a Cluster that its MemberCluster gets. Unlike an agent, the Cluster's
// administrator can set labels about its infrastructure. The second result has the keys of labels that
// still have the agent's values.
func memberLabels(cluster *registrationv1alpha1.Cluster, rule LabelRule) (kept map[string]string, selfAssigned []string) {
	kept = keepLabels(cluster.Labels, isReserved)
	for pair := range strings.SplitSeq(cluster.Annotations[AnnotationBroughtLabels], ",") {
		key, brought, _ := strings.Cut(pair, "=")
		if value, ok := kept[key]; !ok || value != brought {
			continue
		}
		selfAssigned = append(selfAssigned, key)
		if rule == IgnoreSelfAssigned {
			delete(kept, key)
		}
	}
	return kept, selfAssigned
}

// broughtLabels are the labels of a registration in the format of AnnotationBroughtLabels.
func broughtLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

func isReserved(key string) bool {
	return registrationv1alpha1.IsReservedLabel(key) && !strings.HasPrefix(key, clusterv1beta1.InfrastructurePrefix)
}

func keepLabels(wanted map[string]string, reserved func(key string) bool) map[string]string {
	kept := maps.Clone(wanted)
	maps.DeleteFunc(kept, func(key, value string) bool {
		return reserved(key) || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0
	})
	if len(kept) > maxLabels {
		return nil
	}
	return kept
}

// setOrDelete writes no empty annotation.
func setOrDelete(meta *metav1.ObjectMeta, name, value string) {
	if value == "" {
		delete(meta.Annotations, name)
		return
	}
	metav1.SetMetaDataAnnotation(meta, name, value)
}
