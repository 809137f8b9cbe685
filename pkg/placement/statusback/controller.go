// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package statusback

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/listget"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "placement.reportback"

// Reconciler copies statuses to resources on the hub.
type Reconciler struct {
	Client client.Client
	// Live reads and writes the resources themselves, which no cache stores.
	Live      client.Client
	Snapshots snapshot.Reader
	// Workers is the number of placements that are reconciled at a time.
	Workers int
}

// SetupWithManager registers the controller. It reconciles a placement when its spec changes, and when
// a Work with reportBackStrategy changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	respecified := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, respecified).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, respecified).
		Watches(&placementv1beta1.Work{}, handler.EnqueueRequestsFromMapFunc(placementOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

// placementOf queues the placement that a Work names. The name is only a trigger and not trusted.
func placementOf(_ context.Context, object client.Object) []reconcile.Request {
	work, ok := object.(*placementv1beta1.Work)
	if !ok || work.Spec.ReportBackStrategy == nil || work.Spec.ReportBackStrategy.Destination != placementv1beta1.ReportBackToOriginalResource {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: work.Labels[placementv1beta1.ParentPlacementNamespaceLabel], Name: work.Labels[placementv1beta1.ParentPlacementLabel],
	}}}
}

// Reconcile copies the statuses that a member reported for one binding to the resources on the hub.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement, err := objects.Placement(ctx, r.Client, req.NamespacedName)
	if err != nil || placement.GetDeletionTimestamp() != nil || !Wanted(placement.GetSpec()) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.report(ctx, placement); err != nil {
		return objects.Again(ctrl.Result{}, fmt.Errorf("reporting back for placement %q: %w", klog.KRef(req.Namespace, req.Name), err))
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) report(ctx context.Context, placement placementv1beta1.PlacementObject) error {
	key := client.ObjectKeyFromObject(placement)
	bindings, err := objects.Bindings(ctx, r.Client, key)
	if err != nil {
		return err
	}
	b := the(bindings)
	if b == nil || b.GetSpec().ResourceSnapshotName == "" {
		return nil // Its Works trigger the placement again.
	}
	group, err := r.Snapshots.Group(ctx, types.NamespacedName{Namespace: key.Namespace, Name: b.GetSpec().ResourceSnapshotName})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	works, err := r.worksOf(ctx, b)
	if err != nil {
		return err
	}
	found, err := reports(group, works)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Could not read a status that a member reported", "member", b.GetSpec().TargetCluster, "problem", err.Error())
	}
	for _, report := range found {
		if err := r.write(ctx, placement, report); err != nil {
			return err
		}
	}
	return nil
}

// worksOf lists the Works of a binding. They are in the namespace of the binding's member. Its agent
// may have changed their labels, which only harms itself.
func (r *Reconciler) worksOf(ctx context.Context, b placementv1beta1.BindingObject) ([]*placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	err := r.Client.List(ctx, &list, client.InNamespace(clusterv1beta1.MemberNamespace(b.GetSpec().TargetCluster)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.GetName()})
	if err != nil {
		return nil, fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	works := make([]*placementv1beta1.Work, 0, len(list.Items))
	for i := range list.Items {
		works = append(works, &list.Items[i])
	}
	return works, nil
}

// write writes the status of a resource. If the hub rejects the status, because the kind has none on
// the hub or another schema, write logs it and returns no error: the member's next report may be
// different. A resource that the placement's selectors no longer select keeps its status: the author
// check covered only what they select.
func (r *Reconciler) write(ctx context.Context, placement placementv1beta1.PlacementObject, report Report) error {
	id := report.Resource
	object, err := r.read(ctx, id)
	if err != nil || object == nil {
		return err
	}
	if same(object.Object["status"], report.Status) {
		return nil
	}
	selected, err := selection.Takes(placement.GetNamespace(), placement.GetSpec().ResourceSelectors, schema.GroupKind{Group: id.Group, Kind: id.Kind}, object,
		func(name string) (map[string]string, bool, error) { return r.namespaceLabels(ctx, name) })
	if err != nil || !selected {
		return err
	}
	object.Object["status"] = report.Status
	err = r.Live.Status().Update(ctx, object)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Info("The hub rejected the status of a resource on its member", "kind", id.Kind,
			"resource", klog.KRef(id.Namespace, id.Name), "problem", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %q: %w", id.Kind, klog.KRef(id.Namespace, id.Name), err)
	}
	return nil
}

// read returns the resource on the hub, or nil if it does not exist or is not readable. If it is
// outdated, the hub rejects the write of its status.
func (r *Reconciler) read(ctx context.Context, id placementv1beta1.ResourceIdentifier) (*unstructured.Unstructured, error) {
	kind := schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
	mapping, err := r.Live.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	key := types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
	object, err := listget.Get(ctx, listget.Through(r.Live, kind, id.Namespace), mapping.Resource, key, "0")
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Info("The gateway is not allowed to read a resource whose member reports a status", "kind", id.Kind,
			"resource", klog.KRef(id.Namespace, id.Name), "problem", err.Error())
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %q: %w", id.Kind, klog.KRef(id.Namespace, id.Name), err)
	}
	return object, nil
}

// namespaceLabels reads the labels of a namespace, and false if it is not there or not to be read.
func (r *Reconciler) namespaceLabels(ctx context.Context, name string) (map[string]string, bool, error) {
	namespace, err := r.read(ctx, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: name})
	if err != nil || namespace == nil {
		return nil, false, err
	}
	return namespace.GetLabels(), true, nil
}

// same compares as JSON, because numbers have several types.
func same(a any, b map[string]any) bool {
	if a == nil {
		return len(b) == 0
	}
	var left, right any
	for value, into := range map[*any]any{&left: a, &right: b} {
		text, err := json.Marshal(into)
		if err != nil || json.Unmarshal(text, value) != nil {
			return false
		}
	}
	return equality.Semantic.DeepEqual(left, right)
}
