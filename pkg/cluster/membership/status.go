// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// StatusControllerName is the name of the controller that StatusReconciler is.
const StatusControllerName = "membercluster.status"

// Bounds of what is copied from a member: what is beyond them is left out.
const (
	maxAgents              = 8
	maxConditions          = 16
	maxMessageLength       = 1024
	maxProperties          = 200
	maxPropertyValueLength = 4096
	maxResources           = 100
	maxNamespaces          = 200
)

// StatusReconciler copies what a member's agents report to its MemberCluster.
type StatusReconciler struct {
	// Client reads MemberClusters and InternalMemberClusters, from a cache if it
	// has one, and writes the status of MemberClusters.
	Client client.Client
	// Recorder records that a member joined or left, or fell silent.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Silence is how long an agent may send no heartbeat until its member's state is
	// Unknown; two of its own heartbeat periods if that is longer. Zero means
	// DefaultSilence.
	Silence time.Duration
	// Concurrency is how many members are worked on at a time. Zero means one.
	Concurrency int
}

// DefaultSilence is after how long without a heartbeat a member's state is Unknown.
const DefaultSilence = 3 * time.Minute

var _ reconcile.Reconciler = (*StatusReconciler)(nil)

// SetupWithManager watches InternalMemberClusters, and of MemberClusters only the
// generation: whoever writes a MemberCluster's status by hand, as tests of other
// products do, keeps what was written until the agent's next report.
func (r *StatusReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(StatusControllerName).
		For(&clusterv1beta1.InternalMemberCluster{}).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(internalOf),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

func internalOf(_ context.Context, mc client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{
		Namespace: clusterv1beta1.MemberNamespace(mc.GetName()),
		Name:      mc.GetName(),
	}}}
}

// Reconcile implements reconcile.Reconciler.
func (r *StatusReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace != clusterv1beta1.MemberNamespace(req.Name) {
		return ctrl.Result{}, nil
	}
	var imc clusterv1beta1.InternalMemberCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &imc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, client.ObjectKey{Name: req.Name}, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&imc, &mc) {
		return ctrl.Result{}, nil
	}
	left := r.untilSilent(&imc)
	err := r.copyStatus(ctx, &mc, &imc, left <= 0)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: retrySoon}, nil
	}
	return ctrl.Result{RequeueAfter: max(left, 0)}, client.IgnoreNotFound(err)
}

// untilSilent is how long until the agent has to be heard of again. An agent that
// was never heard of is not silent, it has not joined.
func (r *StatusReconciler) untilSilent(imc *clusterv1beta1.InternalMemberCluster) time.Duration {
	silence := cmp.Or(r.Silence, DefaultSilence)
	silence = max(silence, 2*time.Duration(imc.Spec.HeartbeatPeriodSeconds)*time.Second)
	agent := imc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil || agent.LastReceivedHeartbeat.IsZero() {
		return silence
	}
	return silence - r.Clock.Since(agent.LastReceivedHeartbeat.Time)
}

func (r *StatusReconciler) copyStatus(ctx context.Context, mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster, silent bool) error {
	before := joinedStatus(mc.Status.Conditions)
	base := mc.DeepCopy()
	mc.Status = desiredStatus(mc, &imc.Status)
	if silent && joinedStatus(mc.Status.Conditions) == metav1.ConditionTrue {
		meta.SetStatusCondition(&mc.Status.Conditions, silentCondition(mc.Generation))
	}
	if equality.Semantic.DeepEqual(base.Status, mc.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, mc, patch); err != nil {
		return fmt.Errorf("writing the status of MemberCluster %q: %w", mc.Name, err)
	}
	if after := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined); after.Status != before {
		log.FromContext(ctx).Info("Member cluster changed its state", "joined", after.Status, "message", after.Message)
		r.joinedEvent(mc, after)
	}
	return nil
}

// silentCondition stands for what the agent said last when that is too old.
func silentCondition(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionUnknown,
		Reason: clusterv1beta1.ReasonMemberClusterJoinStateUnknown, ObservedGeneration: generation,
		Message: "the member's agent sends no heartbeat: what is placed stays on the member and changes wait; " +
			"check on the member that the agent runs, and in its log that it reaches the hub",
	}
}

// joinedEvent uses one reason for joined and left, as the API's reference does.
func (r *StatusReconciler) joinedEvent(mc *clusterv1beta1.MemberCluster, joined *metav1.Condition) {
	switch joined.Status {
	case metav1.ConditionTrue:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, clusterv1beta1.EventMemberClusterJoined, "Join", "Member cluster joined")
	case metav1.ConditionFalse:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, clusterv1beta1.EventMemberClusterJoined, "Leave", "Member cluster left")
	case metav1.ConditionUnknown:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeWarning, clusterv1beta1.EventMemberClusterJoinStateUnknown, "Join", "%s", joined.Message)
	}
}

// desiredStatus is the status that follows from the member's report. Conditions
// that are the hub's own stay, and so does an agent status that nobody reports.
func desiredStatus(mc *clusterv1beta1.MemberCluster, report *clusterv1beta1.InternalMemberClusterStatus) clusterv1beta1.MemberClusterStatus {
	status := *mc.Status.DeepCopy()
	if agents := desiredAgentStatus(report.AgentStatus, mc.Generation); len(agents) > 0 {
		status.AgentStatus = agents
	}
	status.ResourceUsage = desiredUsage(report.ResourceUsage)
	status.Properties = desiredProperties(report.Properties)
	status.Namespaces = bounded(report.Namespaces, maxNamespaces)
	for _, condition := range desiredConditions(report.Conditions, mc.Generation) {
		known := meta.FindStatusCondition(status.Conditions, condition.Type) != nil
		if isHubCondition(condition.Type) || !known && len(status.Conditions) >= maxConditions {
			continue
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	joined := joinedCondition(status.AgentStatus)
	joined.ObservedGeneration = mc.Generation
	meta.SetStatusCondition(&status.Conditions, joined)
	return status
}

func isHubCondition(kind string) bool {
	return kind == clusterv1beta1.ConditionReadyToJoin || kind == clusterv1beta1.ConditionJoined
}

// joinedCondition sums up what the expected agents say; there is one, the member's.
func joinedCondition(agents []clusterv1beta1.AgentStatus) metav1.Condition {
	condition := metav1.Condition{Type: clusterv1beta1.ConditionJoined}
	status := clusterv1beta1.MemberClusterStatus{AgentStatus: agents}
	condition.Status = joinedOf(status.AgentStatusOf(clusterv1beta1.MemberAgent))
	switch condition.Status {
	case metav1.ConditionTrue:
		condition.Reason = clusterv1beta1.ReasonMemberClusterJoined
		condition.Message = "the member's agent has joined"
	case metav1.ConditionFalse:
		condition.Reason = clusterv1beta1.ReasonMemberClusterLeft
		condition.Message = "the member's agent has left"
	default:
		condition.Status = metav1.ConditionUnknown
		condition.Reason = clusterv1beta1.ReasonMemberClusterJoinStateUnknown
		condition.Message = "the member's agent has not said whether it joined: see its log if this lasts"
	}
	return condition
}

func joinedOf(agent *clusterv1beta1.AgentStatus) metav1.ConditionStatus {
	if agent == nil {
		return metav1.ConditionUnknown
	}
	return joinedStatus(agent.Conditions)
}

func joinedStatus(conditions []metav1.Condition) metav1.ConditionStatus {
	joined := meta.FindStatusCondition(conditions, clusterv1beta1.ConditionJoined)
	if joined == nil {
		return metav1.ConditionUnknown
	}
	return joined.Status
}

func desiredAgentStatus(reported []clusterv1beta1.AgentStatus, generation int64) []clusterv1beta1.AgentStatus {
	var agents []clusterv1beta1.AgentStatus
	for _, agent := range reported[:min(len(reported), maxAgents)] {
		agents = append(agents, clusterv1beta1.AgentStatus{
			Type:                  agent.Type,
			Conditions:            desiredConditions(agent.Conditions, generation),
			LastReceivedHeartbeat: agent.LastReceivedHeartbeat,
		})
	}
	return agents
}

func desiredConditions(reported []metav1.Condition, generation int64) []metav1.Condition {
	var conditions []metav1.Condition
	for _, condition := range reported[:min(len(reported), maxConditions)] {
		condition.ObservedGeneration = generation
		condition.Message = condition.Message[:min(len(condition.Message), maxMessageLength)]
		conditions = append(conditions, condition)
	}
	return conditions
}

func desiredUsage(reported clusterv1beta1.ResourceUsage) clusterv1beta1.ResourceUsage {
	return clusterv1beta1.ResourceUsage{
		Capacity:        bounded(reported.Capacity, maxResources),
		Allocatable:     bounded(reported.Allocatable, maxResources),
		Available:       bounded(reported.Available, maxResources),
		ObservationTime: reported.ObservationTime,
	}
}

func desiredProperties(reported map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
	properties := maps.Clone(reported)
	maps.DeleteFunc(properties, func(_ clusterv1beta1.PropertyName, property clusterv1beta1.PropertyValue) bool {
		return len(property.Value) > maxPropertyValueLength
	})
	return bounded(properties, maxProperties)
}

// bounded is m, or its first limit entries by name.
func bounded[M ~map[K]V, K ~string, V any](m M, limit int) M {
	if len(m) <= limit {
		return m
	}
	first := make(M, limit)
	for _, name := range slices.Sorted(maps.Keys(m))[:limit] {
		first[name] = m[name]
	}
	return first
}
