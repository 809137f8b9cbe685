// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/base64"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// health is the result of the readiness probe of the member's API server.
type health struct {
	ok bool
	// message is a sentence for people.
	message string
}

// facts are the contents of a report besides the agent's own state.
type facts struct {
	health health
	// tunnel is a condition; nil if the state of the tunnel is unknown.
	tunnel *metav1.Condition
	// follows reports whether the agent uses the hub's announced URL; nil if the hub announced
	// none.
	follows *metav1.Condition
	// retained is the condition about objects that the member retains; nil until it is known.
	retained *metav1.Condition
	// An empty value is unknown; the previous one stays.
	version, server, agentVersion, impersonation, tunnelRight string
	serverCA                                                  []byte
	// claims are the member's claims by name; nil if they are unknown.
	claims map[string]string
	// usage is nil if it is unknown; the previous figures stay.
	usage *usage
	// leftovers is the text of retention.Leftovers; nil if they are unknown, and the previous ones stay.
	leftovers *string
	// collects is set if the agent reports namespaces. namespaces is nil if they are unknown.
	collects   bool
	namespaces *collection
}

// joinedReport returns the status of a joined member. Unchanged conditions keep their times.
func joinedReport(imc *clusterv1beta1.InternalMemberCluster, f facts, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(&agent.Conditions, imc.Generation, joined(), now)
	setCondition(&agent.Conditions, imc.Generation, healthy(f.health), now)
	// Clients compare the agent's conditions as a whole, so the tunnel's condition is on the member
	// instead. The previous version wrote it here.
	meta.RemoveStatusCondition(&agent.Conditions, clusterv1beta1.ConditionTunnelConnected)
	if f.tunnel != nil {
		setCondition(&status.Conditions, imc.Generation, *f.tunnel, now)
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.PreviousHubURLReachable)
	if f.follows != nil {
		setCondition(&status.Conditions, imc.Generation, *f.follows, now)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.ConditionHubURLReachable)
	}
	reportRetained(&status.Conditions, imc.Generation, f.retained, now)
	if f.collects {
		f.namespaces.setStatus(&status, imc.Generation, now)
	} else {
		removeNamespaces(&status)
	}
	observe(&status, f, now)
	return status
}

// reportRetained sets the condition if it is True, or replaces an earlier one, which can be that of
// the previous version.
func reportRetained(conditions *[]metav1.Condition, generation int64, retained *metav1.Condition, now time.Time) {
	if retained == nil {
		return
	}
	had := meta.RemoveStatusCondition(conditions, clusterv1beta1.PreviousPlacementsRetained) || meta.FindStatusCondition(*conditions, retained.Type) != nil
	if had || retained.Status == metav1.ConditionTrue {
		setCondition(conditions, generation, *retained, now)
	}
}

// leftReport reports that the agent has left, or failed to (err).
func leftReport(imc *clusterv1beta1.InternalMemberCluster, err error, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(&agent.Conditions, imc.Generation, left(err), now)
	return status
}

// failedReport reports that the agent failed to start its work.
func failedReport(imc *clusterv1beta1.InternalMemberCluster, err error, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *imc.Status.DeepCopy()
	agent := agentOf(&status)
	agent.LastReceivedHeartbeat = metav1.NewTime(now)
	setCondition(&agent.Conditions, imc.Generation, metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionUnknown,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterFailedToJoin,
		Message: "the agent cannot begin its work: " + err.Error(),
	}, now)
	return status
}

func agentOf(status *clusterv1beta1.InternalMemberClusterStatus) *clusterv1beta1.AgentStatus {
	if agent := status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil {
		return agent
	}
	status.AgentStatus = append(status.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent})
	return &status.AgentStatus[len(status.AgentStatus)-1]
}

func setCondition(conditions *[]metav1.Condition, generation int64, condition metav1.Condition, now time.Time) {
	condition.ObservedGeneration = generation
	if old := meta.FindStatusCondition(*conditions, condition.Type); old == nil || old.Status != condition.Status {
		condition.LastTransitionTime = metav1.NewTime(now)
	}
	meta.SetStatusCondition(conditions, condition)
}

func joined() metav1.Condition {
	return metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
		Message: "the agent has joined",
	}
}

func left(err error) metav1.Condition {
	if err != nil {
		return metav1.Condition{
			Type:    clusterv1beta1.ConditionJoined,
			Status:  metav1.ConditionUnknown,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterFailedToLeave,
			Message: "the agent cannot end its work: " + err.Error(),
		}
	}
	return metav1.Condition{
		Type:    clusterv1beta1.ConditionJoined,
		Status:  metav1.ConditionFalse,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterLeft,
		Message: "the agent has left; placed resources stay on the member",
	}
}

func healthy(h health) metav1.Condition {
	condition := metav1.Condition{
		Type:    clusterv1beta1.ConditionHealthy,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterHealthy,
		Message: h.message,
	}
	if !h.ok {
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1beta1.ReasonInternalMemberClusterUnhealthy
	}
	return condition
}

// observe sets the known properties and figures.
func observe(status *clusterv1beta1.InternalMemberClusterStatus, f facts, now time.Time) {
	at := metav1.NewTime(now)
	properties := maps.Clone(status.Properties)
	if properties == nil {
		properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
	}
	set := func(name clusterv1beta1.PropertyName, value string) {
		if value != "" {
			properties[name] = clusterv1beta1.PropertyValue{Value: value, ObservationTime: at}
		}
	}
	if f.claims != nil {
		maps.DeleteFunc(properties, func(name clusterv1beta1.PropertyName, _ clusterv1beta1.PropertyValue) bool { return isClaim(name) })
		for name, value := range f.claims {
			set(clusterv1beta1.PropertyName(name), value)
		}
	}
	set(clusterv1beta1.PropertyAgentVersion, f.agentVersion)
	set(clusterv1beta1.PropertyTunnelRight, f.tunnelRight)
	set(clusterv1beta1.PropertyImpersonation, f.impersonation)
	set(clusterv1beta1.PropertyKubernetesVersion, f.version)
	set(clusterv1beta1.PropertyEntrypoint, f.server)
	set(clusterv1beta1.PropertyCertificateAuthority, base64.StdEncoding.EncodeToString(f.serverCA))
	if f.leftovers != nil {
		delete(properties, clusterv1beta1.PropertyRetained)
		set(clusterv1beta1.PropertyRetained, *f.leftovers)
	}
	if f.usage != nil {
		set(clusterv1beta1.PropertyNodeCount, strconv.Itoa(f.usage.nodes))
		set(clusterv1beta1.PropertyReadyNodeCount, strconv.Itoa(f.usage.readyNodes))
		set(clusterv1beta1.PropertySampleNode, f.usage.sampleNode)
		status.ResourceUsage = clusterv1beta1.ResourceUsage{
			Capacity:        f.usage.capacity,
			Allocatable:     f.usage.allocatable,
			Available:       f.usage.available(),
			ObservationTime: at,
		}
	}
	status.Properties = properties
}

// isClaim distinguishes claims from properties that the agent determines: only the latter have a
// domain prefix, which the name of an object cannot contain.
func isClaim(name clusterv1beta1.PropertyName) bool { return !strings.Contains(string(name), "/") }

// reportInterval is the age at which an unchanged report is written again.
const reportInterval = 5 * time.Minute

// isDue reports whether to write the status: it changed, or the last report is old. The Lease alone
// shows that the agent is alive.
func isDue(shown, report *clusterv1beta1.InternalMemberClusterStatus) bool {
	before, now := shown.AgentStatusOf(clusterv1beta1.MemberAgent), report.AgentStatusOf(clusterv1beta1.MemberAgent)
	if before == nil || now.LastReceivedHeartbeat.Sub(before.LastReceivedHeartbeat.Time) >= reportInterval {
		return true
	}
	return !equality.Semantic.DeepEqual(timeless(shown), timeless(report))
}

// timeless returns the report without observation times.
func timeless(report *clusterv1beta1.InternalMemberClusterStatus) *clusterv1beta1.InternalMemberClusterStatus {
	bare := report.DeepCopy()
	for i := range bare.AgentStatus {
		bare.AgentStatus[i].LastReceivedHeartbeat = metav1.Time{}
	}
	for name, property := range bare.Properties {
		property.ObservationTime = metav1.Time{}
		bare.Properties[name] = property
	}
	bare.ResourceUsage.ObservationTime = metav1.Time{}
	return bare
}

// reportedResources are the resources that a placement can select members by.
func reportedResources() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}
