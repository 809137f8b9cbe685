// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the name of the controller.
const Name = "managedcluster.namespaces"

const (
	// recheckInterval is the interval of checks while sets request namespaces.
	recheckInterval = time.Minute
)

// Reconciler creates the namespaces on a member that ManagedClusterSets request. All fields are
// required.
type Reconciler struct {
	// Hub writes to the hub, and reads the member's ManagedCluster, possibly from a cache.
	Hub client.Client
	// Member reads and writes the member.
	Member client.Client
	// HubHash distinguishes the hub from other hubs of the member.
	HubHash string
	// House are the namespaces of the agent.
	House []string
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the ManagedClusters in the manager's cache: only the member's.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(requestChanged())).
		Complete(reconcileutil.RetryConflicts(r)))
}

// requestChanged selects changes of requested namespaces and of the acceptance of the cluster.
func requestChanged() predicate.Predicate {
	return enqueue.Updates(func(before, now *clusterv1.ManagedCluster) bool {
		return isAccepted(before) != isAccepted(now) || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(before.Status.ManagedNamespaces, now.Status.ManagedNamespaces)
	})
}

// isAccepted reports whether the agent has its rights on the hub.
func isAccepted(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// Reconcile implements reconcile.Reconciler. If the ManagedCluster does not exist, it does nothing:
// when a member leaves its hub, the agent's shutdown calls Release.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Hub.Get(ctx, req.NamespacedName, cluster)
	switch {
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case cluster.DeletionTimestamp != nil:
		return ctrl.Result{}, r.Release(ctx)
	case !isAccepted(cluster):
		return ctrl.Result{}, nil
	}
	names := wantedOn(cluster)
	became, failure := r.ensureNamespaces(ctx, names)
	err = r.report(ctx, cluster, became)
	if apierrors.IsConflict(err) && failure == nil {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, err)
	}
	if err := errors.Join(failure, err); err != nil || len(names) == 0 {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheckInterval}, nil
}

// Release marks all namespaces of the hub on the member as no longer requested.
func (r *Reconciler) Release(ctx context.Context) error {
	_, err := r.ensureNamespaces(ctx, nil)
	return err
}

// ensureNamespaces ensures the named namespaces and marks others that the hub requested before as dropped. The
// returned conditions include rejections by the member. An error means that the result is unknown
// for names without a condition.
func (r *Reconciler) ensureNamespaces(ctx context.Context, names []string) (map[string]metav1.Condition, error) {
	became := map[string]metav1.Condition{}
	labelled, err := r.labelled(ctx)
	if isRefused(err) {
		// Without the right to list namespaces, none was created, or the right was revoked.
		for _, name := range names {
			became[name] = notAllowed(err)
		}
		return became, nil
	}
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, name := range names {
		condition, err := r.ensure(ctx, name, labelled[name])
		if err != nil {
			failures = append(failures, err)
			continue
		}
		became[name] = condition
	}
	for _, name := range slices.Sorted(maps.Keys(labelled)) {
		if labelled[name].Labels[Label(r.HubHash)] == wanted && (!slices.Contains(names, name) || refuseName(name, r.House) != "") {
			failures = append(failures, r.drop(ctx, name))
		}
	}
	return became, errors.Join(failures...)
}

// labelled returns the namespaces with the hub's label, by name.
func (r *Reconciler) labelled(ctx context.Context) (map[string]*corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	if err := r.Member.List(ctx, list, client.HasLabels{Label(r.HubHash)}); err != nil {
		return nil, fmt.Errorf("listing managed namespaces: %w", err)
	}
	named := map[string]*corev1.Namespace{}
	for i := range list.Items {
		named[list.Items[i].Name] = &list.Items[i]
	}
	return named, nil
}

// ensure ensures a namespace with the label. known is the namespace if it has the label already,
// otherwise nil.
func (r *Reconciler) ensure(ctx context.Context, name string, known *corev1.Namespace) (metav1.Condition, error) {
	if why := refuseName(name, r.House); why != "" {
		return failed(why), nil
	}
	if known == nil || known.Labels[Label(r.HubHash)] != wanted {
		var err error
		if known, err = r.write(ctx, name); isRefused(err) {
			return notAllowed(err), nil
		} else if err != nil {
			return metav1.Condition{}, err
		}
	}
	if known.DeletionTimestamp != nil {
		return failed("it is being deleted; it is re-created when it is gone"), nil
	}
	return applied(), nil
}

// write labels a namespace, or creates it.
func (r *Reconciler) write(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := r.Member.Patch(ctx, namespace, r.labelling(wanted))
	if apierrors.IsNotFound(err) {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label(r.HubHash): wanted}}}
		if err = r.Member.Create(ctx, namespace); err == nil {
			log.FromContext(ctx).Info("Created a namespace that a ManagedClusterSet requests", "namespace", name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making managed namespace %q: %w", name, err)
	}
	return namespace, nil
}

// drop marks a namespace as no longer requested.
func (r *Reconciler) drop(ctx context.Context, name string) error {
	err := r.Member.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, r.labelling(dropped))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("labeling namespace %q as no longer managed: %w", name, err)
	}
	log.FromContext(ctx).Info("No ManagedClusterSet requests the namespace any more; it stays", "namespace", name)
	return nil
}

func (r *Reconciler) labelling(value string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, Label(r.HubHash), value))
}

// report writes changed conditions to the hub.
func (r *Reconciler) report(ctx context.Context, cluster *clusterv1.ManagedCluster, became map[string]metav1.Condition) error {
	return client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Hub, cluster, func() {
		setConditions(cluster, became)
	}, "reporting managed namespaces on ManagedCluster %q", cluster.Name))
}

// isRefused reports whether the member rejected the request permanently.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func notAllowed(err error) metav1.Condition {
	if apierrors.IsForbidden(err) {
		return failed(fmt.Sprintf("%v; if the agent lacks a right, set rbac.managedNamespaces=true of its chart", err))
	}
	return failed(err.Error())
}
