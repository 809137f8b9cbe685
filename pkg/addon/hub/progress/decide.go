// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// progressing is condition Progressing of an add-on with these ManifestWorks. The messages are those
// of Open Cluster Management, which clients compare.
func progressing(addOn *addonv1alpha1.ManagedClusterAddOn, works []*workv1.ManifestWork) metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: addonv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
	}
	applied := func(kind string) bool { return meta.FindStatusCondition(addOn.Status.Conditions, kind) != nil }
	if kind, unsupported := unsupportedOf(addOn); unsupported {
		return condition(metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationUnsupported,
			fmt.Sprintf("Configuration with gvr %s/%s is not supported for this addon", kind.Group, kind.Resource))
	}
	if !applied(addonv1alpha1.ConditionManifestApplied) {
		return condition(metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForManifestApplied, "Waiting for ManagedClusterAddOn ManifestApplied condition")
	}
	if hostOf(addOn) != "" && !applied(addonv1alpha1.ConditionHostingManifestApplied) {
		return condition(metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForHostingManifestApplied, "Waiting for ManagedClusterAddOn HostingManifestApplied condition")
	}
	if pending := pendingOf(addOn, works); pending != "" {
		return condition(metav1.ConditionTrue, addonv1alpha1.ReasonProgressing, "progressing... "+pending)
	}
	return completed()
}

// unsupportedOf is a kind in spec.configs that the add-on's manager does not support.
func unsupportedOf(addOn *addonv1alpha1.ManagedClusterAddOn) (addonv1alpha1.ConfigGroupResource, bool) {
	for _, config := range addOn.Spec.Configs {
		if !slices.Contains(addOn.Status.SupportedConfigs, config.ConfigGroupResource) {
			return config.ConfigGroupResource, true
		}
	}
	return addonv1alpha1.ConfigGroupResource{}, false
}

// pendingOf says what is missing until the ManifestWorks have the current configurations; empty if
// nothing is.
func pendingOf(addOn *addonv1alpha1.ManagedClusterAddOn, works []*workv1.ManifestWork) string {
	if len(works) == 0 {
		return "no addon works"
	}
	for _, work := range works {
		switch {
		case strings.HasPrefix(work.Name, "addon-"+addOn.Name+"-pre-delete"):
			// It is applied when the add-on is deleted.
		case !hasConfigurations(work, addOn):
			return "mca and work configs mismatch"
		case !isReady(work):
			return "work is not ready"
		}
	}
	return ""
}

// hasConfigurations reports whether a ManifestWork was made from the configurations of the add-on.
func hasConfigurations(work *workv1.ManifestWork, addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	text, ok := work.Annotations[workv1.ConfigSpecHashAnnotation]
	if !ok {
		return len(addOn.Status.ConfigReferences) == 0
	}
	var used map[string]string
	if err := untrusted.UnmarshalJSON([]byte(text), untrusted.Object, &used); err != nil {
		return false
	}
	desired, complete := objects.Hashes(addOn)
	return complete && maps.Equal(used, desired)
}

// isReady reports whether the cluster has applied the current manifests.
func isReady(work *workv1.ManifestWork) bool {
	for _, kind := range []string{workv1.ConditionAvailable, workv1.ConditionApplied} {
		condition := meta.FindStatusCondition(work.Status.Conditions, kind)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != work.Generation {
			return false
		}
	}
	return true
}

// hostOf is the cluster that runs the add-on's agent, if it is another one.
func hostOf(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	return addOn.Annotations[addonv1alpha1.HostingClusterAnnotation]
}

// Report writes condition Progressing into the status of an add-on with these ManifestWorks. A completed
// add-on has applied its configurations, and keeps them applied when its ManifestWorks change later: a
// rollout does not go back.
func Report(addOn *addonv1alpha1.ManagedClusterAddOn, works []*workv1.ManifestWork) {
	condition := progressing(addOn, works)
	if condition.Reason == addonv1alpha1.ReasonCompleted {
		Complete(addOn)
		return
	}
	meta.SetStatusCondition(&addOn.Status.Conditions, condition)
}

// Complete reports an add-on as completed, for example because its cluster needs no ManifestWork.
func Complete(addOn *addonv1alpha1.ManagedClusterAddOn) {
	status := &addOn.Status
	meta.SetStatusCondition(&status.Conditions, completed())
	for i := range status.ConfigReferences {
		status.ConfigReferences[i].LastAppliedConfig = status.ConfigReferences[i].DesiredConfig.DeepCopy()
	}
}

func completed() metav1.Condition {
	return metav1.Condition{Type: addonv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonCompleted, Message: "completed with no errors."}
}
