// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// EnsureRoles creates or restores the roles that all clusters share.
func (r *Reconciler) EnsureRoles(ctx context.Context) error {
	for _, role := range Roles() {
		if err := r.ensure(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

// ensureNamespace creates the namespace of a cluster, or returns why it cannot be the cluster's.
func (r *Reconciler) ensureNamespace(ctx context.Context, cluster string) (*refusal.Refusal, error) {
	if refused := refuseName(cluster); refused != nil {
		return refused, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: cluster}, namespace)
	if err == nil {
		return refuseNamespace(namespace), nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading namespace %q: %w", cluster, err)
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: clusterLabels(cluster)}}
	r.label(made)
	if err := r.Rights.Create(ctx, made); err != nil {
		return nil, fmt.Errorf("creating namespace %q: %w", cluster, err)
	}
	return nil, nil
}

// ensure creates an object, or updates an existing one: only differences are written.
func (r *Reconciler) ensure(ctx context.Context, wanted client.Object) error {
	r.label(wanted)
	key, kind := client.ObjectKeyFromObject(wanted), fmt.Sprintf("%T", wanted)
	live := emptyLike(wanted)
	err := r.Objects.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		if err = r.Rights.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
			return wrap(err, "creating", kind, key)
		}
		// It lacks the label, or the cache is not up to date.
		err = r.Live.Get(ctx, key, live)
	}
	if err != nil {
		return wrap(err, "reading", kind, key)
	}
	if live.GetDeletionTimestamp() != nil {
		// A cluster that was denied, and is accepted again before its works are gone.
		return r.removeBindingFinalizer(ctx, live)
	}
	if refersElsewhere(live, wanted) {
		// That field is immutable.
		return wrap(r.Rights.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())}), "replacing", kind, key)
	}
	if !update(live, wanted) {
		return nil
	}
	return wrap(r.Rights.Update(ctx, live), "updating", kind, key)
}

// ensureScores binds exactly the scorers of a cluster. Klusterlets are none.
func (r *Reconciler) ensureScores(ctx context.Context, cluster string, scorers []rbacv1.Subject) error {
	if len(scorers) == 0 {
		return r.delete(ctx, scoreBinding(cluster, nil))
	}
	return r.ensure(ctx, scoreBinding(cluster, scorers))
}

// ensureReporting binds exactly the reporters of a cluster. Most clusters have none.
func (r *Reconciler) ensureReporting(ctx context.Context, cluster string, accepted bool, reporters []rbacv1.Subject) error {
	if len(reporters) == 0 {
		return r.endReporting(ctx, cluster)
	}
	if err := r.ensure(ctx, reportRole(cluster, accepted)); err != nil {
		return err
	}
	return r.ensure(ctx, reportBinding(cluster, reporters))
}

func (r *Reconciler) endReporting(ctx context.Context, cluster string) error {
	if err := r.delete(ctx, reportBinding(cluster, nil)); err != nil {
		return err
	}
	return r.delete(ctx, reportRole(cluster, false))
}

// label adds the common labels to an object before its creation.
func (r *Reconciler) label(made client.Object) {
	labels := maps.Clone(r.Labels)
	if labels == nil {
		return
	}
	maps.Copy(labels, made.GetLabels())
	made.SetLabels(labels)
}

func wrap(err error, doing, kind string, key client.ObjectKey) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, kind, key, err)
}

func emptyLike(object client.Object) client.Object {
	switch object.(type) {
	case *rbacv1.ClusterRole:
		return &rbacv1.ClusterRole{}
	case *rbacv1.ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{}
	default:
		return &rbacv1.RoleBinding{}
	}
}

func refersElsewhere(live, wanted client.Object) bool {
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRoleBinding:
		return live.(*rbacv1.ClusterRoleBinding).RoleRef != wanted.RoleRef
	case *rbacv1.RoleBinding:
		return live.(*rbacv1.RoleBinding).RoleRef != wanted.RoleRef
	}
	return false
}

// update updates live to what is wanted, and reports whether that changed anything. Labels and
// finalizers of others stay.
func update(live, wanted client.Object) bool {
	before := live.DeepCopyObject()
	labels := live.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for name, value := range wanted.GetLabels() {
		labels[name] = value
	}
	live.SetLabels(labels)
	for _, finalizer := range wanted.GetFinalizers() {
		controllerutil.AddFinalizer(live, finalizer)
	}
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRole:
		role := live.(*rbacv1.ClusterRole)
		role.Rules, role.AggregationRule = wanted.Rules, nil
	case *rbacv1.ClusterRoleBinding:
		live.(*rbacv1.ClusterRoleBinding).Subjects = wanted.Subjects
	case *rbacv1.RoleBinding:
		live.(*rbacv1.RoleBinding).Subjects = wanted.Subjects
	}
	return !equality.Semantic.DeepEqual(before, live)
}

// delete deletes an object if it exists.
func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	key, live := client.ObjectKeyFromObject(object), emptyLike(object)
	if err := r.Objects.Get(ctx, key, live); err != nil || live.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	return wrap(client.IgnoreNotFound(r.Rights.Delete(ctx, object)), "deleting", fmt.Sprintf("%T", object), key)
}

// removeBindingFinalizer removes the finalizer of a binding that waits for works to be gone.
func (r *Reconciler) removeBindingFinalizer(ctx context.Context, held client.Object) error {
	return reconcileutil.RemoveFinalizer(ctx, r.Rights, held, workFinalizer, "releasing %T %s", held, client.ObjectKeyFromObject(held))
}
