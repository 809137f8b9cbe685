// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// StatusControllerName is the name of StatusReconciler.
const StatusControllerName = "membercluster.status"

// Limits of what is copied from a member; the rest is dropped.
const (
	maxAgents              = 8
	maxConditions          = 16
	maxMessageLength       = 1024
	maxProperties          = 200
	maxPropertyValueLength = 16 * 1024
	maxPropertiesLength    = 128 * 1024
	maxResources           = 100
	maxNamespaces          = 200
)

// StatusReconciler copies the reports of a member's agents to its MemberCluster.
type StatusReconciler struct {
	// Client reads MemberClusters and InternalMemberClusters, from a cache if it has one, and writes
	// MemberClusters.
	Client client.Client
	// Seats defines the names of members' objects on the hub.
	Seats identity.Seats
	// Leases is an optional cache from NewMemberCache: a member whose agent renews its Lease is
	// connected.
	Leases cache.Cache
	// Recorder records that a member joined, left or lost its heartbeat.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Silence is how long an agent can miss heartbeats until its member's state is Unknown; at least
	// two of its own heartbeat periods. Zero means DefaultSilence.
	Silence time.Duration
	// TaintUnreachable puts clusterv1beta1.TaintUnreachable on disconnected members. The taint is
	// always removed when a member reconnects.
	TaintUnreachable bool
	// Version is the gateway's version, for the condition about outdated agents. If empty, there is no
	// such condition.
	Version string
	// Concurrency is the number of members that are reconciled at a time. Zero means one.
	Concurrency int

	heartbeats heartbeats
}

const (
	// DefaultSilence is the time without a heartbeat after which a member's state is Unknown.
	DefaultSilence = 3 * time.Minute
	// heartbeatInterval is the age of the heartbeat on a MemberCluster at which a newer one is written
	// without another change. Consumers use the condition Joined, which considers the heartbeats
	// between.
	heartbeatInterval = 5 * time.Minute
)

var _ reconcile.Reconciler = (*StatusReconciler)(nil)

// SetupWithManager watches InternalMemberClusters, Leases, and of MemberClusters only the generation
// and the hub's facts about their infrastructure. Manual changes of a MemberCluster's status, as in
// tests of other products, stay until the agent's next report.
func (r *StatusReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(StatusControllerName).
		For(&clusterv1beta1.InternalMemberCluster{}).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.internalOf),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, annotationChanged(clusterv1beta1.AnnotationProperties)))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	if r.Leases != nil {
		b.WatchesRawSource(leaseSource(r.Leases, r.Seats))
	}
	return b.Complete(reconcileutil.RetryConflicts(r))
}

func (r *StatusReconciler) internalOf(_ context.Context, mc client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: internalKey(r.Seats, mc.GetName())}}
}

func internalKey(seats identity.Seats, member string) client.ObjectKey {
	return client.ObjectKey{Namespace: seats.Namespace(member), Name: member}
}

// Reconcile writes the status of one MemberCluster.
func (r *StatusReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace != r.Seats.Namespace(req.Name) {
		return ctrl.Result{}, nil
	}
	var imc clusterv1beta1.InternalMemberCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &imc); err != nil {
		r.heartbeats.forget(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, client.ObjectKey{Name: req.Name}, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&imc, &mc) {
		return ctrl.Result{}, nil
	}
	left, err := r.reconcile(ctx, &mc, &imc)
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: left}, client.IgnoreNotFound(err))
}

// reconcile returns the time until the next heartbeat must arrive, or zero if the member is
// disconnected.
func (r *StatusReconciler) reconcile(ctx context.Context, mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster) (time.Duration, error) {
	if wait := early(mc, imc, r.Clock.Since(imc.CreationTimestamp.Time)); wait > 0 {
		return wait, nil
	}
	lease, err := r.lease(ctx, mc.Name)
	if err != nil {
		return 0, err
	}
	d := r.decide(mc, imc, lease)
	if err := r.writeStatus(ctx, mc, d.status); err != nil {
		return 0, err
	}
	r.heartbeats.show(mc.Name, d.from)
	return d.left, r.writeTaint(ctx, mc, d.silent)
}

// firstReport is how long a new member's agent has for its first report before the MemberCluster says
// that it is missing. Usually the report is earlier, and saves a write.
const firstReport = 2 * time.Second

// readySoon is the retry delay if a member's agent reported before the MemberCluster was ready to join.
// Both are written to one status, and one of the writes would conflict.
const readySoon = 20 * time.Millisecond

// early is how long the write of a member's status has to wait, for the age of its seat; zero means not
// to wait.
func early(mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster, age time.Duration) time.Duration {
	left := firstReport - age
	switch {
	case left <= 0:
		return 0
	case isNew(mc, imc):
		return min(left, firstReport)
	case !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1beta1.ConditionReadyToJoin):
		return readySoon
	}
	return 0
}

// isNew reports whether nothing was received from a member and nothing was reported about it yet.
func isNew(mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster) bool {
	return len(imc.Status.AgentStatus) == 0 && meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined) == nil
}

// decision is the result of an agent's state.
type decision struct {
	status clusterv1beta1.MemberClusterStatus
	from   written
	// left is the time until the next heartbeat must arrive; zero if the member is disconnected.
	left   time.Duration
	silent bool
}

func (r *StatusReconciler) decide(mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster, lease *coordinationv1.Lease) decision {
	b := beatOf(imc, lease)
	last := r.heartbeats.observe(mc.Name, b, r.Clock)
	d := decision{
		from: written{report: imc.ResourceVersion, lease: b.lease},
		left: max(0, r.silence(imc)-r.Clock.Since(last.at)),
	}
	d.silent = d.left == 0 || wasSilent(mc, imc) && !last.heard
	d.status = r.nextStatus(mc, imc, d.from, last, d.silent)
	return d
}

func (r *StatusReconciler) lease(ctx context.Context, member string) (*coordinationv1.Lease, error) {
	if r.Leases == nil {
		return nil, nil
	}
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: r.Seats.Namespace(member), Name: r.Seats.Lease}
	if err := r.Leases.Get(ctx, key, &lease); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &lease, nil
}

func (r *StatusReconciler) silence(imc *clusterv1beta1.InternalMemberCluster) time.Duration {
	periods := 2 * time.Duration(imc.Spec.HeartbeatPeriodSeconds) * time.Second
	return max(cmp.Or(r.Silence, DefaultSilence), periods)
}

// wasSilent reports whether the MemberCluster shows a member that lost its heartbeat after its agent
// had joined.
func wasSilent(mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster) bool {
	agent := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	return agent != nil && !agent.LastReceivedHeartbeat.IsZero() &&
		joinedStatus(mc.Status.Conditions) == metav1.ConditionUnknown &&
		joinedOf(imc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)) == metav1.ConditionTrue
}

// nextStatus is the status to write. A change of observation times alone waits until the heartbeat is
// old enough, because a fleet has thousands of members.
func (r *StatusReconciler) nextStatus(mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster, from written, p heartbeat, silent bool) clusterv1beta1.MemberClusterStatus {
	newReport, newLease := r.heartbeats.changed(mc.Name, from)
	report := &imc.Status
	if !newReport {
		report = reportOf(&mc.Status)
	}
	status := desiredStatus(mc, report)
	setOutdated(&status, r.Version, mc.Generation)
	if agent := status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil && len(imc.Status.AgentStatus) > 0 && (newReport || newLease) {
		agent.LastReceivedHeartbeat = desiredHeartbeat(&mc.Status, p)
	}
	if silent && joinedStatus(status.Conditions) == metav1.ConditionTrue {
		setLastHeartbeat(mc, &status, p)
		meta.SetStatusCondition(&status.Conditions, silentCondition(mc.Generation))
	}
	if equality.Semantic.DeepEqual(timeless(mc.Status), timeless(status)) && !isHeartbeatDue(mc.Status, status) {
		return mc.Status
	}
	return status
}

// setLastHeartbeat sets the last heartbeat of a member that becomes disconnected, because the Leases since
// the shown heartbeat were not worth a write. Afterwards it stays unchanged.
func setLastHeartbeat(mc *clusterv1beta1.MemberCluster, status *clusterv1beta1.MemberClusterStatus, p heartbeat) {
	agent := status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent != nil && joinedStatus(mc.Status.Conditions) == metav1.ConditionTrue {
		agent.LastReceivedHeartbeat = desiredHeartbeat(&mc.Status, p)
	}
}

func reportOf(shown *clusterv1beta1.MemberClusterStatus) *clusterv1beta1.InternalMemberClusterStatus {
	return &clusterv1beta1.InternalMemberClusterStatus{
		AgentStatus:   shown.AgentStatus,
		Properties:    shown.Properties,
		ResourceUsage: shown.ResourceUsage,
		Namespaces:    shown.Namespaces,
		Conditions:    passingAmong(shown.Conditions),
	}
}

// desiredHeartbeat is the last heartbeat by the hub's clock, as far as it is known: the value of a
// former gateway stays until the next beat.
func desiredHeartbeat(shown *clusterv1beta1.MemberClusterStatus, p heartbeat) metav1.Time {
	agent := shown.AgentStatusOf(clusterv1beta1.MemberAgent)
	if !p.heard && agent != nil && !agent.LastReceivedHeartbeat.IsZero() {
		return agent.LastReceivedHeartbeat
	}
	return metav1.NewTime(p.at.Truncate(time.Second))
}

func isHeartbeatDue(shown, wanted clusterv1beta1.MemberClusterStatus) bool {
	before, after := shown.AgentStatusOf(clusterv1beta1.MemberAgent), wanted.AgentStatusOf(clusterv1beta1.MemberAgent)
	return before != nil && after != nil &&
		after.LastReceivedHeartbeat.Sub(before.LastReceivedHeartbeat.Time) >= heartbeatInterval
}

// timeless is the status without observation times.
func timeless(status clusterv1beta1.MemberClusterStatus) clusterv1beta1.MemberClusterStatus {
	bare := *status.DeepCopy()
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

func (r *StatusReconciler) writeStatus(ctx context.Context, mc *clusterv1beta1.MemberCluster, status clusterv1beta1.MemberClusterStatus) error {
	base := mc.DeepCopy()
	mc.Status = status
	if equality.Semantic.DeepEqual(base.Status, mc.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, mc); err != nil {
		return fmt.Errorf("writing the status of MemberCluster %q: %w", mc.Name, err)
	}
	before := joinedStatus(base.Status.Conditions)
	if after := meta.FindStatusCondition(status.Conditions, clusterv1beta1.ConditionJoined); after.Status != before {
		log.FromContext(ctx).Info("Changed the state of a member", "joined", after.Status, "message", after.Message)
		r.joinedEvent(mc, after)
	}
	return nil
}

// writeTaint taints a disconnected member, if that is enabled, and removes the taint otherwise.
func (r *StatusReconciler) writeTaint(ctx context.Context, mc *clusterv1beta1.MemberCluster, silent bool) error {
	taints := desiredTaints(mc.Spec.Taints, silent && r.TaintUnreachable && mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent) != nil)
	if equality.Semantic.DeepEqual(taints, mc.Spec.Taints) {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, mc, func() { mc.Spec.Taints = taints }, "tainting MemberCluster %q", mc.Name)
}

func desiredTaints(taints []clusterv1beta1.Taint, unreachable bool) []clusterv1beta1.Taint {
	ours := func(t clusterv1beta1.Taint) bool { return t.Key == clusterv1beta1.TaintUnreachable }
	if unreachable == slices.ContainsFunc(taints, ours) {
		return taints
	}
	if unreachable {
		return append(slices.Clone(taints), clusterv1beta1.Taint{Key: clusterv1beta1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule})
	}
	return slices.DeleteFunc(slices.Clone(taints), ours)
}

// silentCondition replaces an outdated report of the agent.
func silentCondition(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionUnknown,
		Reason: clusterv1beta1.ReasonMemberClusterJoinStateUnknown, ObservedGeneration: generation,
		Message: "the member's agent sends no heartbeat: placed resources stay on the member and changes wait; " +
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
