// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
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

// ControllerName is the name of the controller that Reconciler is.
const ControllerName = "internalmembercluster.heartbeat"

const (
	// defaultPeriod stands for an InternalMemberCluster without a period.
	defaultPeriod = time.Minute
	// jitter spreads the heartbeats of many members.
	jitter = 0.05
	// firstRetry and lastRetry bound the wait after a report that did not get through.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// Reconciler reports one member.
type Reconciler struct {
	// Hub reads the member's InternalMemberCluster and writes its status.
	Hub client.Client
	// Member is a client of the member's own API server.
	Member kubernetes.Interface
	// Name is the member's name.
	Name string
	// Version is the agent's own.
	Version string
	// Server is the URL of the member's API server, as the agent reaches it.
	Server string
	// ServerCA returns the PEM certificates that verify that server. Nil means that it
	// is not reported.
	ServerCA func() ([]byte, error)
	// Tunnel, if set, is reported too.
	Tunnel *Tunnel
	// Retained, if set, is reported too.
	Retained *Retained
	// Namespaces, if set, are reported too. Somebody has it Run.
	Namespaces *Namespaces
	// Claims, if set, has the member reported when what it says of itself changes.
	Claims *Claims
	// Impersonation, if set, returns how the gateway acts as its callers on the member, or
	// nothing while that is not known.
	Impersonation func() string
	// Move, if set, leads to the hub by another URL and CA if it is there, and says why not
	// otherwise. It must be quick when nothing changes.
	Move func(ctx context.Context, server string, ca []byte) error
	// Clock tells the time.
	Clock clock.PassiveClock
	// Join, if set, begins the agent's work; it is called before each report of having
	// joined and must be quick when there is nothing to begin.
	Join func(ctx context.Context) error
	// Leave, if set, ends the agent's work without undoing it: when it returns, nothing
	// on the member may be deleted because the hub deletes the order for it.
	Leave func(ctx context.Context) error
	// HubRestored, if set, is called when the hub has lost writes, as after a restore: watches of the
	// hub can then miss changes. It must not block.
	HubRestored func()
	// Left, if set, is told that the agent has left and the hub knows it. It must not block.
	Left func()

	// counted is when the member's resources were counted last.
	counted time.Time
	// renewals are the times that the Lease on the hub can have: that of the last write, and
	// that of the last of which we know that it came there.
	renewals renewals
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the spec of the member's InternalMemberCluster, on a manager
// of the hub's API server whose cache holds the member's namespace only.
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
		//lint:ignore nilerr The agent ends here, which is no failure.
		return ctrl.Result{}, nil
	}
	if apierrors.IsConflict(err) {
		// The cache of a hub that went back never comes right by itself: the Lease tells.
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
		log.FromContext(ctx).Info("The hub asks for a state that this agent does not know; doing nothing", "state", imc.Spec.State)
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
	report := joinedReport(imc, r.look(ctx, imc), r.Clock.Now())
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
	log.FromContext(ctx).Info("Left the hub; what was placed on this member stays", "member", r.Name)
	if r.Left != nil {
		r.Left()
	}
	return nil
}

// look finds out what there is to report. What cannot be found out is left out: that
// the member's API server is in trouble must still reach the hub.
func (r *Reconciler) look(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) facts {
	f := facts{health: probe(ctx, r.Member), tunnel: r.Tunnel.condition(), tunnelRight: r.Tunnel.right(), retained: r.Retained.condition(retention.Released(imc)), follows: r.follow(ctx, imc), agentVersion: r.Version, collects: r.Namespaces != nil}
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
		log.FromContext(ctx).Info("Reading the member's claims failed; the hub keeps the former ones", "error", err.Error())
	}
	f.claims = claims
	f.namespaces = r.collectNamespaces(ctx)
	if r.isCountDue(imc) {
		f.usage = r.count(ctx)
	}
	return f
}

// isCountDue leaves out reports before their turn, as a change of the tunnel or of a
// namespace causes: counting lists every pod of the member.
func (r *Reconciler) isCountDue(imc *clusterv1beta1.InternalMemberCluster) bool {
	return imc.Status.ResourceUsage.ObservationTime.IsZero() || r.Clock.Since(r.counted) >= period(imc.Spec.HeartbeatPeriodSeconds)/2
}

func (r *Reconciler) count(ctx context.Context) *usage {
	usage, err := collect(ctx, r.Member)
	if err != nil {
		log.FromContext(ctx).Info("Counting the member's resources failed; the hub keeps the former figures", "error", err.Error())
		return nil
	}
	r.counted = r.Clock.Now()
	return usage
}

func (r *Reconciler) collectNamespaces(ctx context.Context) *collection {
	if r.Namespaces == nil {
		return nil
	}
	collection, err := r.Namespaces.collect(ctx)
	if err != nil {
		log.FromContext(ctx).Info("Collecting the member's namespaces failed; the hub keeps the former ones", "error", err.Error())
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
		log.FromContext(ctx).Info("Reading the CA of the member's API server failed; the hub keeps the former one", "error", err.Error())
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

// nextHeartbeat is the period, up to jitter shorter or longer; fraction is from 0 to 1.
func nextHeartbeat(seconds int32, fraction float64) time.Duration {
	return time.Duration(float64(period(seconds)) * (1 + jitter*(2*fraction-1)))
}

func period(seconds int32) time.Duration {
	if seconds <= 0 {
		return defaultPeriod
	}
	return time.Duration(seconds) * time.Second
}
