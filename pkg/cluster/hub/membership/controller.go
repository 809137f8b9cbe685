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

// JoinControllerName is the name of Reconciler.
const JoinControllerName = "membercluster.join"

// EventSource is the source of events on MemberClusters, as in the API's reference: pass it to the
// recorder.
const EventSource = "mcv1beta1"

// DefaultForceDeleteWait is how long the hub waits for a leaving member's agent.
const DefaultForceDeleteWait = 15 * time.Minute

// Reconciler prepares existing MemberClusters, and cleans up after deleted ones.
type Reconciler struct {
	// Client writes, and reads MemberClusters, from a cache if it has one.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Seats defines the names of members' objects on the hub.
	Seats identity.Seats
	// Orders are the kinds of objects in a member's namespace that its agent carries out. When the
	// agent has left, the hub removes its finalizers from them.
	Orders []schema.GroupVersionKind
	// Pending describes what a deleted member's agent has to clean up before it is asked to leave;
	// empty means nothing. The hub does not wait longer for it than for the agent itself. nil means
	// that there is never anything.
	Pending func(ctx context.Context, member string) (string, error)
	// Rules are the rights of a member's identity in the member's namespace.
	Rules func(member string) []rbacv1.PolicyRule
	// ClusterRules are its rights outside of the namespace, each limited to the member's name. Only
	// agents of the previous version need them.
	ClusterRules func(member string) []rbacv1.PolicyRule
	// ForceDeleteWait is how long the hub waits for a deleted member's agent to leave. Zero means
	// DefaultForceDeleteWait.
	ForceDeleteWait time.Duration
	// AgentTokenLifetime is the lifetime that agents should request when they renew their tokens. It is
	// published on their credential Secret. Zero means that they decide.
	AgentTokenLifetime time.Duration
	// Moved is the hub's next address for members' agents, or nil.
	Moved *HubAddress
	// Secrets is an optional cache from NewMemberCache. With it, a deleted credential Secret is
	// re-created at once, so that the member can register again.
	Secrets cache.Cache
	// Concurrency is the number of members that are reconciled at a time. Zero means one.
	Concurrency int
}

// HubAddress is an address of the hub's API server.
type HubAddress struct {
	URL string
	// CA verifies it, in PEM. Empty means the system's roots.
	CA []byte
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the specs, labels and deletion of MemberClusters, their namespaces, and the
// fields of InternalMemberClusters that matter for leaving. It ignores the status of a MemberCluster,
// because this controller does not read it. It also ignores the objects that it creates for a member,
// because each pass reads all of them.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	specOrLabels := predicate.Or(predicate.GenerationChangedPredicate{}, labelsChanged(), annotationChanged(clusterv1beta1.AnnotationGone))
	for _, key := range agentAnnotations() {
		specOrLabels = predicate.Or(specOrLabels, annotationChanged(key))
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(JoinControllerName).
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(specOrLabels)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.memberOfNamespace), builder.OnlyMetadata, builder.WithPredicates(predicate.Or(changedOrGone(), terminating()))).
		Owns(&clusterv1beta1.InternalMemberCluster{}, builder.WithPredicates(matters())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	if r.Secrets != nil {
		b.WatchesRawSource(CredentialSource(r.Secrets, r.Seats, whenGone(r.memberOfCredential)))
	}
	return b.Complete(reconcileutil.RetryConflicts(r))
}

// labelsChanged passes changes of labels, except for the label with which this controller marks a
// MemberCluster.
func labelsChanged() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		known := before.GetLabels()
		if _, marked := known[clusterv1beta1.LabelMemberName]; !marked {
			known = labels.Merge(known, labels.Set{clusterv1beta1.LabelMemberName: after.GetName()})
		}
		return !maps.Equal(known, after.GetLabels())
	})
}

// changedOrGone passes everything but creations.
func changedOrGone() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// terminating passes objects that are being deleted, also those that were when the gateway started.
func terminating() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return !obj.GetDeletionTimestamp().IsZero() })
}

// annotationChanged passes changes of one annotation.
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

// matters drops heartbeats, which every member sends each minute. It passes that an agent has left
// after it was asked to, and changes of the rights that it needs.
func matters() predicate.Predicate {
	left := func(imc *clusterv1beta1.InternalMemberCluster) bool {
		return imc.Spec.State == clusterv1beta1.ClusterStateLeave && hasLeft(imc)
	}
	return predicate.And(changedOrGone(), enqueue.Updates(func(before, after *clusterv1beta1.InternalMemberCluster) bool {
		return before.Generation != after.Generation || left(before) != left(after) ||
			clusterRightsOf(before.Status.Properties) != clusterRightsOf(after.Status.Properties)
	}))
}

// Reconcile creates what one member needs on the hub, or removes it when the member has left.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mc clusterv1beta1.MemberCluster
	err := r.Client.Get(ctx, req.NamespacedName, &mc)
	if apierrors.IsNotFound(err) {
		return r.leaveNamespace(ctx, req.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, &mc))
}

func (r *Reconciler) reconcile(ctx context.Context, mc *clusterv1beta1.MemberCluster) (ctrl.Result, error) {
	if !mc.DeletionTimestamp.IsZero() {
		return r.leave(ctx, mc)
	}
	if err := reconcileutil.Patch(ctx, r.Client, mc, func() { Mark(mc) }, "marking MemberCluster %q", mc.Name); err != nil {
		return ctrl.Result{}, err
	}
	refused, err := r.join(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeReadyToJoin(ctx, mc, readyToJoin(refused))
}

// Mark adds to a MemberCluster what it needs before anything is created for it. Creating a
// MemberCluster with it saves a write.
func Mark(mc *clusterv1beta1.MemberCluster) {
	controllerutil.AddFinalizer(mc, clusterv1beta1.MemberClusterFinalizer)
	metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1beta1.LabelMemberName, mc.Name)
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

// writeReadyToJoin writes that condition, if it changed. The agent can report as soon as its
// InternalMemberCluster exists, and the report is written to the same status. So this function reads
// the status again after a conflict, instead of repeating the whole pass.
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

// event records that an object of the member was created or changed.
func (r *Reconciler) event(mc *clusterv1beta1.MemberCluster, result controllerutil.OperationResult, what, created, updated string) {
	switch result {
	case controllerutil.OperationResultCreated:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, created, "Join", "Created %s", what)
	case controllerutil.OperationResultUpdated:
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, updated, "Join", "Updated %s", what)
	}
}
