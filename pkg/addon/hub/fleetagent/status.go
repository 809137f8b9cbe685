// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/addon/hub/progress"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// retryLater is the retry delay while manifests cannot be rendered, because not everything that they
// need is watched.
const retryLater = 10 * time.Second

// facts are what the hub knows about the agent of a cluster.
type facts struct {
	// cluster is empty if it does not exist.
	cluster *clusterv1.ManagedCluster
	// own is true for a cluster whose agent nobody delivers.
	own bool
	// managed is true if the hub reports the add-on's progress.
	managed bool
	// refused says why nothing is delivered, or no update.
	refused *refusal.Refusal
	// config may be nil. Unconfigured says why it cannot be applied, or not yet.
	config       *addonv1alpha1.AddOnDeploymentConfigSpec
	unconfigured *refusal.Refusal
	// references are the configurations of the add-on, and hashes those that its status had.
	references []addonv1alpha1.ConfigReference
	hashes     map[string]string
	// work is nil before the first delivery.
	work *workv1.ManifestWork
	// ready is the message of the Cluster, and member its member or nil.
	ready  string
	member *clusterv1beta1.MemberCluster
	// again is the retry delay.
	again time.Duration
}

// desiredStatus writes what is known. Customized keeps klusterlets from looking for a Lease.
func (f *facts) desiredStatus(status *addonv1alpha1.ManagedClusterAddOnStatus) {
	status.HealthCheck.Mode = addonv1alpha1.HealthCheckCustomized
	meta.SetStatusCondition(&status.Conditions, f.available())
	if f.own {
		return
	}
	status.Namespace = addonv1alpha1.FleetgateAgentNamespace
	status.SupportedConfigs = []addonv1alpha1.ConfigGroupResource{template.DeploymentConfigs()}
	if f.references != nil {
		status.ConfigReferences = f.references
	}
	if f.work != nil && f.work.UID != "" {
		meta.SetStatusCondition(&status.Conditions, f.manifestApplied())
	}
}

// reportProgress writes condition Progressing. It stays while the ManifestWork is not read, because nothing may be
// delivered.
func (f *facts) reportProgress(addOn *addonv1alpha1.ManagedClusterAddOn) {
	switch {
	case !f.managed:
	case f.own:
		progress.Complete(addOn)
	case f.work != nil && f.work.UID != "":
		progress.Report(addOn, []*workv1.ManifestWork{f.work})
	case meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionProgressing) == nil:
		progress.Report(addOn, nil)
	}
}

// available is condition Available: True when the cluster's agent has joined and sends heartbeats, else
// what is awaited.
func (f *facts) available() metav1.Condition {
	unavailable := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	// A klusterlet without heartbeats is reported like this for all add-ons of its cluster.
	of := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ConditionAvailable)
	if of != nil && of.Status == metav1.ConditionUnknown {
		return metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: of.Status, Reason: of.Reason, Message: of.Message}
	}
	switch {
	case f.own && (of == nil || of.Status != metav1.ConditionTrue):
		return unavailable(addonv1alpha1.ReasonAgentUnhealthy, "The cluster has fleetgate's agent already, and is not available")
	case f.own:
		return available("The cluster has fleetgate's agent already")
	case f.refused != nil && (f.member == nil || f.refused.Reason == addonv1alpha1.ReasonMemberExists):
		return unavailable(f.refused.Reason, f.refused.Message)
	case isRegistered(f.member):
		return ofMember(f.member)
	case f.work == nil || !isApplied(f.work):
		return unavailable(addonv1alpha1.ReasonWaitingForKlusterlet, "Waiting for the klusterlet to apply ManifestWork \""+workName+"\""+failureOf(f.work))
	}
	return unavailable(addonv1alpha1.ReasonWaitingForAgent, "The agent is installed and has not joined; check its Pod in namespace "+addonv1alpha1.FleetgateAgentNamespace+" of the cluster: "+f.ready)
}

func available(message string) metav1.Condition {
	return metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonFeatureAvailable, Message: message}
}

// ofMember is condition Available of a member, by the reports of its agent.
func ofMember(member *clusterv1beta1.MemberCluster) metav1.Condition {
	condition := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonWaitingForAgent, Message: "The agent has not joined"}
	since, silent := member.SilentSince()
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	switch {
	case silent:
		condition.Status, condition.Reason = metav1.ConditionUnknown, addonv1alpha1.ReasonAgentSilent
		condition.Message = "No heartbeat of the agent since " + since.UTC().Format(time.RFC3339)
	case !member.IsJoined() || agent == nil:
	case !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionHealthy):
		condition.Reason, condition.Message = addonv1alpha1.ReasonAgentUnhealthy, "The agent reports that its cluster is not healthy; see its conditions in MemberCluster "+member.Name
	default:
		return available("fleetgate-agent add-on is available.")
	}
	return condition
}

func (f *facts) manifestApplied() metav1.Condition {
	if f.refused != nil && f.refused.Reason != addonv1alpha1.ReasonConfigurationsNotConfigured {
		return metav1.Condition{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonManifestWorkApplyFailed, Message: f.refused.Message}
	}
	if isApplied(f.work) {
		return metav1.Condition{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonManifestsApplied, Message: "manifests of addon are applied successfully"}
	}
	return metav1.Condition{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonManifestsApplyFailed, Message: "The klusterlet has not applied the current manifests" + failureOf(f.work)}
}

// isRegistered reports whether the agent has reported as the member: then it has a credential.
func isRegistered(member *clusterv1beta1.MemberCluster) bool {
	return member != nil && member.Status.AgentStatusOf(clusterv1beta1.MemberAgent) != nil
}

func isApplied(work *workv1.ManifestWork) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == work.Generation
}

// failureOf is what the klusterlet says about manifests that it could not apply.
func failureOf(work *workv1.ManifestWork) string {
	if work == nil {
		return ""
	}
	if applied := meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied); applied != nil && applied.Status == metav1.ConditionFalse {
		return ": " + applied.Message
	}
	return ""
}

// readyOf is what the hub says about the registration of a Cluster.
func readyOf(cluster *registrationv1alpha1.Cluster) string {
	for _, condition := range cluster.Status.Conditions {
		if condition.Type == registrationv1alpha1.ClusterConditionReady && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return "waiting for its first report"
}
