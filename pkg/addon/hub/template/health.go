// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// applied is condition ManifestApplied of an add-on with ManifestWorks, nil while the cluster has not
// reported about the current spec of each. The texts are those of Open Cluster Management.
func applied(works map[int]*workv1.ManifestWork) *metav1.Condition {
	pending := false
	for _, work := range works {
		reported := meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
		switch {
		case reported == nil || reported.ObservedGeneration != work.Generation:
			pending = true
		case reported.Status != metav1.ConditionTrue:
			return &metav1.Condition{
				Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonManifestsApplyFailed,
				Message: "failed to apply the manifests of addon",
			}
		}
	}
	if pending {
		return nil
	}
	return &metav1.Condition{
		Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonManifestsApplied,
		Message: "manifests of addon are applied successfully",
	}
}

// notApplied is condition ManifestApplied of an add-on whose ManifestWork could not be written.
func notApplied(why string) *metav1.Condition {
	return &metav1.Condition{
		Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonManifestWorkApplyFailed, Message: why,
	}
}

// ReportHosting says that the agent of an add-on without a manager of its own runs on its own cluster.
func ReportHosting(status *addonv1alpha1.ManagedClusterAddOnStatus, addOn metav1.Object) {
	host := addOn.GetAnnotations()[addonv1alpha1.HostingClusterAnnotation]
	if host == "" {
		meta.RemoveStatusCondition(&status.Conditions, addonv1alpha1.ConditionHostingManifestApplied)
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ConditionHostingManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonManifestWorkApplyFailed,
		Message: limited(fmt.Sprintf("The add-on has no hosted mode, so its agent does not run on cluster %q but on its own; remove annotation %s", host, addonv1alpha1.HostingClusterAnnotation)),
	})
}

// available is condition Available of an add-on with these workloads. The texts are those of Open Cluster
// Management.
func available(addOn string, probes []workv1.ResourceIdentifier, works map[int]*workv1.ManifestWork) metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}
	}
	if len(works) == 0 {
		return condition(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotFound, "Addon manifestWork is not found")
	}
	for _, number := range slices.Sorted(maps.Keys(works)) {
		reported := meta.FindStatusCondition(works[number].Status.Conditions, workv1.ConditionAvailable)
		switch {
		case reported == nil:
			return condition(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotApplied, "Addon manifestWork is not applied yet")
		case reported.Status == metav1.ConditionFalse:
			return condition(metav1.ConditionFalse, addonv1alpha1.ReasonWorkNotApplied, limited(reported.Message))
		}
	}
	results := 0
	for _, probe := range probes {
		values, found := feedbackOf(works, probe)
		if !found {
			continue
		}
		results++
		if why := unready(probe, values); why != "" {
			return condition(metav1.ConditionFalse, addonv1alpha1.ReasonProbeUnavailable, "Probe addon unavailable with err "+why)
		}
	}
	if len(probes) > 0 && results == 0 {
		return condition(metav1.ConditionUnknown, addonv1alpha1.ReasonNoProbeResult, "Probe results are not returned")
	}
	return condition(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, addOn+" add-on is available.")
}

// reported are the workloads whose state the cluster has reported, for an add-on that is not rendered
// now. Those that are to have no Pods report no number.
func reported(works map[int]*workv1.ManifestWork) []workv1.ResourceIdentifier {
	var probes []workv1.ResourceIdentifier
	for _, number := range slices.Sorted(maps.Keys(works)) {
		for _, m := range works[number].Status.ResourceStatus.Manifests {
			id := identifierOf(m.ResourceMeta)
			_, desired := numbersOf(id)
			if values, _ := feedbackOf(works, id); id.Group == "apps" && values[desired] > 0 {
				probes = append(probes, id)
			}
		}
	}
	return probes
}

// numbersOf are the names of the numbers of Pods that are ready, and that are to be.
func numbersOf(of workv1.ResourceIdentifier) (ready, desired string) {
	if of.Resource == "daemonsets" {
		return "NumberReady", "DesiredNumberScheduled"
	}
	return "ReadyReplicas", "Replicas"
}

// feedbackOf are the reported numbers of an object.
func feedbackOf(works map[int]*workv1.ManifestWork, of workv1.ResourceIdentifier) (map[string]int64, bool) {
	for _, work := range works {
		for _, m := range work.Status.ResourceStatus.Manifests {
			if identifierOf(m.ResourceMeta) != of || len(m.StatusFeedback.Values) == 0 {
				continue
			}
			values := map[string]int64{}
			for _, value := range m.StatusFeedback.Values {
				if value.Value.Integer != nil {
					values[value.Name] = *value.Value.Integer
				}
			}
			return values, true
		}
	}
	return nil, false
}

func identifierOf(m workv1.ManifestResourceMeta) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: m.Group, Resource: m.Resource, Namespace: m.Namespace, Name: m.Name}
}

// unready says why a workload is not ready; empty if it is. A Deployment needs one Pod, a DaemonSet all.
func unready(of workv1.ResourceIdentifier, values map[string]int64) string {
	readyName, desiredName := numbersOf(of)
	ready, known := values[readyName]
	if !known {
		return "readyReplica is not probed"
	}
	desired, known := values[desiredName]
	if !known {
		return "desiredNumberReplicas is not probed"
	}
	if ready == desired || of.Resource == "deployments" && (desired == 0 || ready >= 1) {
		return ""
	}
	return fmt.Sprintf("desiredNumberReplicas is %d but readyReplica is %d for %s %s/%s", desired, ready, of.Resource, of.Namespace, of.Name)
}

// hooksSucceeded reports whether all Jobs and Pods of a ManifestWork have succeeded.
func hooksSucceeded(work *workv1.ManifestWork, hooks []workv1.ManifestConfigOption) bool {
	if !meta.IsStatusConditionTrue(work.Status.Conditions, workv1.ConditionAvailable) {
		return false
	}
	return !slices.ContainsFunc(hooks, func(hook workv1.ManifestConfigOption) bool {
		return !slices.ContainsFunc(work.Status.ResourceStatus.Manifests, func(m workv1.ManifestCondition) bool {
			return identifierOf(m.ResourceMeta) == hook.ResourceIdentifier && slices.ContainsFunc(m.StatusFeedback.Values, hasSucceeded)
		})
	})
}

func hasSucceeded(value workv1.FeedbackValue) bool {
	if value.Value.String == nil {
		return false
	}
	return value.Name == "JobComplete" && *value.Value.String == "True" || value.Name == "PodPhase" && *value.Value.String == "Succeeded"
}

// limited makes one line of the text of a cluster or of the API server, which can be long.
func limited(text string) string {
	const most = 1024
	return untrusted.Excerpt(text, most)
}
