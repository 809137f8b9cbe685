// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// JoinControllerName is the name of the controller that Reconciler is.
const JoinControllerName = "membercluster.join"

// EventSource is the name under which events on MemberClusters are recorded, as
// the API's reference has it: give it to the recorder.
const EventSource = "mcv1beta1"

// DefaultForceDeleteWait is how long a leaving member's agent is waited for.
const DefaultForceDeleteWait = 15 * time.Minute

// Reconciler joins MemberClusters that exist and lets those go that are deleted.
type Reconciler struct {
	// Client writes; it reads MemberClusters, from a cache if it has one.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Recorder records what has happened to a MemberCluster.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Seats say where members live on the hub.
	Seats identity.Seats
	// Orders are the kinds of objects by which a member is told, in its namespace, what to
	// do. Finalizers of theirs, which are the agent's, are removed when it has left.
	Orders []schema.GroupVersionKind
	// Pending says what the agent of a member that is deleted has to clean up before it is asked
	// to leave, in words; empty for nothing. It is waited for no longer than for the agent
	// itself. Nil: there never is anything.
	Pending func(ctx context.Context, member string) (string, error)
	// Rules are the rights of a member's identity in the member's namespace.
	Rules func(member string) []rbacv1.PolicyRule
	// ClusterRules are its rights outside of it, each limited to the member's name, which
	// only agents of the version before need.
	ClusterRules func(member string) []rbacv1.PolicyRule
	// ForceDeleteWait is how long a deleted member's agent may take to leave before
	// it is given up. Zero means DefaultForceDeleteWait.
	ForceDeleteWait time.Duration
	// AgentTokenLifetime is how long agents are to ask for when they renew their
	// tokens; it is told to them on their credential Secret. Zero means that they
	// decide.
	AgentTokenLifetime time.Duration
	// Moved, if set, is where members' agents are to reach the hub from now on.
	Moved *HubAddress
	// Secrets, if set, is a cache such as NewMemberCache makes: a credential Secret
	// that somebody deletes is then made again at once, so that the member can
	// register anew.
	Secrets cache.Cache
	// Concurrency is how many members are worked on at a time. Zero means one.
	Concurrency int
}

// HubAddress is a way to the hub's API server.
type HubAddress struct {
	URL string
	// CA, PEM, verifies it. Empty: everybody trusts it.
	CA []byte
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the specs and labels of MemberClusters, whether they are gone,
// their namespaces, and what of the InternalMemberClusters matters for leaving. The
// status of a MemberCluster starts nothing: this controller does not read it. Nor does what
// it makes for a member start it again: each pass reads all of that.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	specOrLabels := predicate.Or(predicate.GenerationChangedPredicate{}, labelsChanged(), annotationChanged(clusterv1beta1.AnnotationGone))
	for _, key := range agentAnnotations() {
		specOrLabels = predicate.Or(specOrLabels, annotationChanged(key))
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(JoinControllerName).
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(specOrLabels)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.memberOfNamespace), builder.OnlyMetadata, builder.WithPredicates(changedOrGone())).
		Owns(&clusterv1beta1.InternalMemberCluster{}, builder.WithPredicates(matters())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	if r.Secrets != nil {
		b.WatchesRawSource(CredentialSource(r.Secrets, r.Seats, whenGone(r.memberOfCredential)))
	}
	return b.Complete(r)
}

// labelsChanged tells of updates that change labels, but for the one by which this
// controller marks a MemberCluster.
func labelsChanged() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		known := before.GetLabels()
		if _, marked := known[clusterv1beta1.LabelMemberName]; !marked {
			known = labels.Merge(known, labels.Set{clusterv1beta1.LabelMemberName: after.GetName()})
		}
		return !maps.Equal(known, after.GetLabels())
	})
}

// changedOrGone tells of all but what is there for the first time.
func changedOrGone() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// annotationChanged tells of updates that change one annotation.
func annotationChanged(name string) predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		return before.GetAnnotations()[name] != after.GetAnnotations()[name]
	})
}

func (r *Reconciler) memberOfNamespace(_ context.Context, namespace client.Object) []reconcile.Request {
	member, ok := r.Seats.MemberOf(namespace.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: member}}}
}

// matters lets heartbeats pass by, which come every minute from every member: of what an agent
// reports, whether it has left once it was asked to, and what rights it needs.
func matters() predicate.Predicate {
	left := func(imc *clusterv1beta1.InternalMemberCluster) bool {
		return imc.Spec.State == clusterv1beta1.ClusterStateLeave && hasLeft(imc)
	}
	return predicate.And(changedOrGone(), enqueue.Updates(func(before, after *clusterv1beta1.InternalMemberCluster) bool {
		return before.Generation != after.Generation || left(before) != left(after) ||
			clusterRightsOf(before.Status.Properties) != clusterRightsOf(after.Status.Properties)
	}))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, &mc))
}

func (r *Reconciler) reconcile(ctx context.Context, mc *clusterv1beta1.MemberCluster) (ctrl.Result, error) {
	if !mc.DeletionTimestamp.IsZero() {
		return r.leave(ctx, mc)
	}
	if err := r.ensureMarks(ctx, mc); err != nil {
		return ctrl.Result{}, err
	}
	refused, err := r.join(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeReadyToJoin(ctx, mc, readyToJoin(refused))
}

// Mark puts on a MemberCluster what it has to have before anything is made for it. Who
// makes one with it saves a write.
func Mark(mc *clusterv1beta1.MemberCluster) {
	controllerutil.AddFinalizer(mc, clusterv1beta1.MemberClusterFinalizer)
	metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1beta1.LabelMemberName, mc.Name)
}

// ensureMarks adds the finalizer before anything is made that it must clean up.
func (r *Reconciler) ensureMarks(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	return reconcileutil.Patch(ctx, r.Client, mc, func() { Mark(mc) }, "marking MemberCluster %q", mc.Name)
}

func readyToJoin(refused *refusal.Refusal) metav1.Condition {
	if refused != nil {
		return metav1.Condition{
			Type:    clusterv1beta1.ConditionReadyToJoin,
			Status:  metav1.ConditionFalse,
			Reason:  refused.Reason,
			Message: refused.Message,
		}
	}
	return metav1.Condition{
		Type:    clusterv1beta1.ConditionReadyToJoin,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonMemberClusterReadyToJoin,
		Message: "the member's namespace, account and rights are in place",
	}
}

// writeReadyToJoin writes that one condition, if it changed. An agent may report as soon as its
// InternalMemberCluster is there, which is written to the same status at that moment: who
// comes second reads it anew, rather than everything that was made.
func (r *Reconciler) writeReadyToJoin(ctx context.Context, mc *clusterv1beta1.MemberCluster, condition metav1.Condition) error {
	var was, changed bool
	condition.ObservedGeneration = mc.Generation
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		was = meta.IsStatusConditionTrue(mc.Status.Conditions, condition.Type)
		if changed = meta.SetStatusCondition(&mc.Status.Conditions, condition); !changed {
			return nil
		}
		err := r.Client.Status().Update(ctx, mc)
		if apierrors.IsConflict(err) {
			return errors.Join(err, r.Live.Get(ctx, client.ObjectKeyFromObject(mc), mc))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the status of MemberCluster %q: %w", mc.Name, err)
	}
	if changed && condition.Status == metav1.ConditionTrue && !was {
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, clusterv1beta1.EventMemberClusterReadyToJoin, "Join",
			"Member cluster is ready to join")
	}
	return nil
}

// event records that something of the member's was made or changed.
func (r *Reconciler) event(mc *clusterv1beta1.MemberCluster, result controllerutil.OperationResult, what, created, updated string) {
	switch result {
	case controllerutil.OperationResultCreated:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, created, "Join", "Created %s", what)
	case controllerutil.OperationResultUpdated:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, updated, "Join", "Updated %s", what)
	}
}
