// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ControllerName is the name of the controller.
const ControllerName = "internalmembercluster.heartbeat"

const (
	// defaultPeriod applies if the InternalMemberCluster has no period.
	defaultPeriod = time.Minute
	// jitter spreads the heartbeats of many members.
	jitter = 0.05
	// firstRetry and lastRetry bound the delay after a failed report.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// Reconciler reports one member.
type Reconciler struct {
	// Hub reads the member's InternalMemberCluster and writes its status.
	Hub client.Client
	// Member is a client of the member's own API server.
	Member kubernetes.Interface
	// Metadata, if set, is used to report the objects that the member retains of placements that no
	// longer select it.
	Metadata metadata.Interface
	// HubName distinguishes several hubs of the member; empty for one.
	HubName string
	// Name is the member's name.
	Name string
	// Version is the agent's own.
	Version string
	// Server is the agent's URL of the member's API server.
	Server string
	// ServerCA returns the PEM certificates that verify that server. If nil, they are not reported.
	ServerCA func() ([]byte, error)
	// Tunnel, if set, is reported too.
	Tunnel *Tunnel
	// Retained, if set, is reported too.
	Retained *Retained
	// Namespaces, if set, are reported too. The caller runs it.
	Namespaces *Namespaces
	// Claims, if set, triggers a report when the member's claims change.
	Claims *Claims
	// Unstored, if set, returns why the member does not store the agent's token; nil if it does.
	Unstored func() error
	// Impersonation, if set, returns how the gateway impersonates its callers on the member; empty
	// if unknown.
	Impersonation func() string
	// Move, if set, switches to another URL and CA of the hub if they work, and returns the reason
	// otherwise. It must be quick if nothing changes.
	Move func(ctx context.Context, server string, ca []byte) error
	// Counted, if set, is called with the free resources of the member after each count: what Pods can
	// still request on nodes that take new ones. It must not block.
	Counted func(free corev1.ResourceList)
	// Clock tells the time.
	Clock clock.PassiveClock
	// Join, if set, starts the agent's work. It is called before each report of Joined and must be
	// quick if the work is running already.
	Join func(ctx context.Context) error
	// Leave, if set, stops the agent's work and removes nothing: after it returns, the agent must
	// not delete objects because the hub deletes their Works.
	Leave func(ctx context.Context) error
	// HubRestored, if set, is called when the hub has lost writes, as after a restore: watches of
	// the hub can then miss changes. It must not block.
	HubRestored func()
	// Left, if set, is called when the hub has recorded that the agent left. It must not block.
	Left func()

	// counted is when the member's resources were counted last.
	counted time.Time
	// renewals are the possible values of renewTime in the Lease: the last attempted and the last
	// confirmed write.
	renewals renewals
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the spec of the member's InternalMemberCluster. The manager's cache
// contains only the member's namespace on the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	own := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetName() == r.Name && obj.GetNamespace() == clusterv1beta1.MemberNamespace(r.Name)
	})
	b := ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&clusterv1beta1.InternalMemberCluster{}, builder.WithPredicates(own, predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
	internal := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(r.Name), Name: r.Name}
	if r.Tunnel != nil {
		b.WatchesRawSource(r.Tunnel.changed.source(internal))
	}
	if r.Retained != nil {
		b.WatchesRawSource(r.Retained.changed.source(internal))
	}
	if r.Namespaces != nil {
		b.WatchesRawSource(r.Namespaces.changed.source(internal))
	}
	if r.Claims != nil {
		b.WatchesRawSource(r.Claims.changed.source(internal))
	}
	return b.Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var imc clusterv1beta1.InternalMemberCluster
	if err := r.Hub.Get(ctx, req.NamespacedName, &imc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !imc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	result, err := r.reconcile(ctx, &imc)
	if ctx.Err() != nil {
		//lint:ignore nilerr The agent is stopping; the error is a consequence.
		return ctrl.Result{}, nil
	}
	if apierrors.IsConflict(err) {
		// After a restore of the hub the cache never becomes current by itself; renewing the Lease
		// detects the restore.
		if _, err := r.renewLease(ctx, imc.Spec.HeartbeatPeriodSeconds); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

func (r *Reconciler) reconcile(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) (ctrl.Result, error) {
	switch imc.Spec.State {
	case clusterv1beta1.ClusterStateJoin:
		return r.join(ctx, imc)
	case clusterv1beta1.ClusterStateLeave:
		return ctrl.Result{}, r.leave(ctx, imc)
	default:
		log.FromContext(ctx).Info("The hub requests an unknown state; ignoring it", "state", imc.Spec.State)
		return ctrl.Result{}, nil
	}
}

func (r *Reconciler) join(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) (ctrl.Result, error) {
	if err := call(ctx, r.Join); err != nil {
		if err := r.write(ctx, imc, failedReport(imc, err, r.Clock.Now())); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, fmt.Errorf("joining: %w", err)
	}
	report := joinedReport(imc, r.collect(ctx, imc), r.Clock.Now())
	due := isDue(&imc.Status, &report)
	if due {
		if err := r.write(ctx, imc, report); err != nil {
			return ctrl.Result{}, err
		}
	}
	renewed, err := r.renewLease(ctx, imc.Spec.HeartbeatPeriodSeconds)
	if err == nil && !renewed && !due {
		err = r.write(ctx, imc, report)
	}
	return ctrl.Result{RequeueAfter: nextHeartbeat(imc.Spec.HeartbeatPeriodSeconds, rand.Float64())}, err
}

func (r *Reconciler) leave(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) error {
	failed := call(ctx, r.Leave)
	if err := r.write(ctx, imc, leftReport(imc, failed, r.Clock.Now())); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("leaving: %w", failed)
	}
	log.FromContext(ctx).Info("Left the hub; placed resources stay on the member", "member", r.Name)
	if r.Left != nil {
		r.Left()
	}
	return nil
}

// collect collects the facts for a report. Facts that cannot be determined are omitted: a report must
// reach the hub even if the member's API server fails.
func (r *Reconciler) collect(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) facts {
	f := facts{health: r.probe(ctx), tunnel: r.Tunnel.condition(), tunnelRight: r.Tunnel.right(), retained: r.Retained.condition(retention.Released(imc)), follows: r.follow(ctx, imc), agentVersion: r.Version, collects: r.Namespaces != nil}
	if !f.health.ok {
		return f
	}
	f.server, f.serverCA = r.Server, r.serverCA(ctx)
	if r.Impersonation != nil {
		f.impersonation = r.Impersonation()
	}
	if version, err := r.Member.Discovery().ServerVersion(); err == nil {
		f.version = version.GitVersion
	}
	claims, err := collectClaims(ctx, r.Member)
	if err != nil {
		log.FromContext(ctx).Info("Could not read the member's claims; the hub keeps the previous ones", "error", err.Error())
	}
	f.claims = claims
	f.namespaces = r.collectNamespaces(ctx)
	if r.isCountDue(imc) {
		f.usage = r.count(ctx)
		f.leftovers = r.leftovers(ctx)
	}
	return f
}

// isCountDue skips the count for early reports, such as those for a change of the tunnel or of
// namespaces: it lists all Pods of the member.
func (r *Reconciler) isCountDue(imc *clusterv1beta1.InternalMemberCluster) bool {
	return imc.Status.ResourceUsage.ObservationTime.IsZero() || r.Clock.Since(r.counted) >= period(imc.Spec.HeartbeatPeriodSeconds)/2
}

func (r *Reconciler) count(ctx context.Context) *usage {
	usage, err := collect(ctx, r.Member)
	if err != nil {
		log.FromContext(ctx).Info("Could not count the member's resources; the hub keeps the previous figures", "error", err.Error())
		return nil
	}
	r.counted = r.Clock.Now()
	if r.Counted != nil {
		r.Counted(usage.free)
	}
	return usage
}

func (r *Reconciler) collectNamespaces(ctx context.Context) *collection {
	if r.Namespaces == nil {
		return nil
	}
	collection, err := r.Namespaces.collect(ctx)
	if err != nil {
		log.FromContext(ctx).Info("Could not collect the member's namespaces; the hub keeps the previous ones", "error", err.Error())
		return nil
	}
	return collection
}

func (r *Reconciler) serverCA(ctx context.Context) []byte {
	if r.ServerCA == nil {
		return nil
	}
	ca, err := r.ServerCA()
	if err != nil {
		log.FromContext(ctx).Info("Could not read the CA of the member's API server; the hub keeps the previous one", "error", err.Error())
	}
	return ca
}

func (r *Reconciler) write(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster, status clusterv1beta1.InternalMemberClusterStatus) error {
	return reconcileutil.PatchStatus(ctx, r.Hub, imc, func() { imc.Status = status }, "reporting to the hub")
}

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// nextHeartbeat is the period with jitter; fraction is between 0 and 1.
func nextHeartbeat(seconds int32, fraction float64) time.Duration {
	return time.Duration(float64(period(seconds)) * (1 + jitter*(2*fraction-1)))
}

func period(seconds int32) time.Duration {
	if seconds <= 0 {
		return defaultPeriod
	}
	return time.Duration(seconds) * time.Second
}

// follow moves the agent to the URL that the hub requests, and returns the condition about it. The
// agent retries with each heartbeat.
func (r *Reconciler) follow(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) *metav1.Condition {
	server, wanted := imc.Annotations[clusterv1beta1.AnnotationHubURL]
	if !wanted || r.Move == nil {
		return nil
	}
	var ca []byte
	if text := imc.Annotations[clusterv1beta1.AnnotationHubCA]; text != "" {
		ca = []byte(text)
	}
	if err := r.Move(ctx, server, ca); err != nil {
		return &metav1.Condition{Type: clusterv1beta1.ConditionHubURLReachable, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonHubURLUnreachable, Message: err.Error()}
	}
	return &metav1.Condition{Type: clusterv1beta1.ConditionHubURLReachable, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonHubURLReachable,
		Message: "the agent uses " + server}
}
