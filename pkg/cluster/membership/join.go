// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/refusal"
)

// join keeps all that the member needs on the hub, in the order in which it can be
// used: whoever finds the InternalMemberCluster finds the rest too.
func (r *Reconciler) join(ctx context.Context, mc *clusterv1beta1.MemberCluster) (*refusal.Refusal, error) {
	if refused := refuseName(r.Seats, mc.Name); refused != nil {
		return refused, nil
	}
	if refused := refuseIdentity(mc.Spec.Identity); refused != nil {
		return refused, nil
	}
	if refused, err := r.ensureNamespace(ctx, mc); refused != nil || err != nil {
		return refused, err
	}
	if err := r.ensureRights(ctx, mc); err != nil {
		return nil, err
	}
	return nil, r.ensureInternalMemberCluster(ctx, mc)
}

// ensureRights makes what does not depend on each other at the same time: the API
// server takes longest for roles and bindings, whose writers' rights it compares with
// what they hand on.
func (r *Reconciler) ensureRights(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, inOrder := range [][]func(context.Context, *clusterv1beta1.MemberCluster) error{
		{r.ensureRole, r.ensureRoleBinding},
		{r.reconcileClusterRights},
		{r.ensureAccount, r.ensureCredentialSecret, r.ensureLease},
		{r.ensureQuota},
	} {
		group.Go(func() error {
			for _, ensure := range inOrder {
				if err := ensure(ctx, mc); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *Reconciler) ensureNamespace(ctx context.Context, mc *clusterv1beta1.MemberCluster) (*refusal.Refusal, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Seats.Namespace(mc.Name)}}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil {
		if refused := refuseNamespace(mc, namespace); refused != nil {
			return refused, nil
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading namespace %q: %w", namespace.Name, err)
	}
	result, err := r.ensure(ctx, namespace, func() error {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, clusterv1beta1.LabelFleetResource, clusterv1beta1.LabelFleetResourceValue)
		label(&namespace.ObjectMeta, mc.Name)
		return controllerutil.SetControllerReference(mc, namespace, r.Client.Scheme())
	})
	if err != nil {
		return nil, err
	}
	r.event(mc, result, "namespace "+namespace.Name,
		clusterv1beta1.EventNamespaceCreated, clusterv1beta1.EventNamespacePatched)
	return nil, nil
}

func (r *Reconciler) ensureAccount(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	account := &corev1.ServiceAccount{ObjectMeta: r.objectMeta(mc.Name, r.Seats.Account)}
	_, err := r.ensure(ctx, account, func() error {
		label(&account.ObjectMeta, mc.Name)
		return nil
	})
	return err
}

// ensureCredentialSecret keeps the Secret to which the account's tokens are bound.
// It holds nothing: its UID is what counts.
func (r *Reconciler) ensureCredentialSecret(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	secret := &corev1.Secret{ObjectMeta: r.objectMeta(mc.Name, r.Seats.Credential)}
	_, err := r.ensure(ctx, secret, func() error {
		label(&secret.ObjectMeta, mc.Name)
		if r.AgentTokenLifetime > 0 {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, clusterv1beta1.AnnotationTokenLifetime, r.AgentTokenLifetime.String())
		}
		return nil
	})
	return err
}

// ensureLease keeps the Lease that the agent renews. The hub makes it, so that the agent
// needs no right to make any.
func (r *Reconciler) ensureLease(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	lease := &coordinationv1.Lease{ObjectMeta: r.objectMeta(mc.Name, r.Seats.Lease)}
	_, err := r.ensure(ctx, lease, func() error {
		label(&lease.ObjectMeta, mc.Name)
		return nil
	})
	return err
}

// ensureQuota bounds how much of the hub a member's agent may fill. Events are not in it:
// the API server counts them against no quota.
func (r *Reconciler) ensureQuota(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	quota := &corev1.ResourceQuota{ObjectMeta: r.objectMeta(mc.Name, QuotaName)}
	_, err := r.ensure(ctx, quota, func() error {
		label(&quota.ObjectMeta, mc.Name)
		quota.Spec = corev1.ResourceQuotaSpec{Hard: hardLimits()}
		return nil
	})
	return err
}

func (r *Reconciler) ensureRole(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	role := &rbacv1.Role{ObjectMeta: r.objectMeta(mc.Name, clusterv1beta1.RoleName(mc.Name))}
	result, err := r.ensure(ctx, role, func() error {
		label(&role.ObjectMeta, mc.Name)
		role.Rules = r.Rules(mc.Name)
		return nil
	})
	if err != nil {
		return err
	}
	r.event(mc, result, "role "+role.Name, clusterv1beta1.EventRoleCreated, clusterv1beta1.EventRoleUpdated)
	return nil
}

func (r *Reconciler) ensureRoleBinding(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: r.objectMeta(mc.Name, clusterv1beta1.RoleBindingName(mc.Name))}
	result, err := r.ensure(ctx, binding, func() error {
		label(&binding.ObjectMeta, mc.Name)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterv1beta1.RoleName(mc.Name)}
		binding.Subjects = []rbacv1.Subject{subjectOf(mc.Spec.Identity)}
		return nil
	})
	if err != nil {
		return err
	}
	r.event(mc, result, "role binding "+binding.Name,
		clusterv1beta1.EventRoleBindingCreated, clusterv1beta1.EventRoleBindingUpdated)
	return nil
}

// reconcileClusterRights keeps what an agent needs outside of its namespace, which only those
// of the version before do: new members never get it, and others lose it once their agent
// has shown that it does without.
func (r *Reconciler) reconcileClusterRights(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	imc := &clusterv1beta1.InternalMemberCluster{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Seats.Namespace(mc.Name), Name: mc.Name}, imc)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the InternalMemberCluster of member %q: %w", mc.Name, err)
	}
	switch clusterRightsOf(imc.Status.Properties) {
	case rightsUseless:
		return r.removeClusterRights(ctx, mc)
	case rightsUnknown: // Those that are there stay, for the identity that the member has now.
		err := r.Live.Get(ctx, client.ObjectKey{Name: ClusterRoleName(mc.Name)}, &rbacv1.ClusterRoleBinding{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading ClusterRoleBinding %q: %w", ClusterRoleName(mc.Name), err)
		}
	case rightsNeeded:
	}
	if err := r.ensureClusterRole(ctx, mc); err != nil {
		return err
	}
	return r.ensureClusterRoleBinding(ctx, mc)
}

func (r *Reconciler) ensureClusterRole(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(mc.Name)}}
	_, err := r.ensure(ctx, role, func() error {
		label(&role.ObjectMeta, mc.Name)
		role.Rules = r.ClusterRules(mc.Name)
		return controllerutil.SetControllerReference(mc, role, r.Client.Scheme())
	})
	return err
}

func (r *Reconciler) ensureClusterRoleBinding(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(mc.Name)}}
	_, err := r.ensure(ctx, binding, func() error {
		label(&binding.ObjectMeta, mc.Name)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(mc.Name)}
		binding.Subjects = []rbacv1.Subject{subjectOf(mc.Spec.Identity)}
		return controllerutil.SetControllerReference(mc, binding, r.Client.Scheme())
	})
	return err
}

func (r *Reconciler) ensureInternalMemberCluster(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	hub, err := r.hubUID(ctx)
	if err != nil {
		return err
	}
	imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: r.objectMeta(mc.Name, mc.Name)}
	result, err := r.ensure(ctx, imc, func() error {
		metav1.SetMetaDataAnnotation(&imc.ObjectMeta, clusterv1beta1.AnnotationHub, hub)
		for _, word := range wordsForAgents() {
			said, is := mc.Annotations[word]
			annotate(imc, word, said, is)
		}
		moved := ptr.Deref(r.Moved, HubAddress{})
		annotate(imc, clusterv1beta1.AnnotationHubURL, moved.URL, r.Moved != nil)
		annotate(imc, clusterv1beta1.AnnotationHubCA, string(moved.CA), r.Moved != nil)
		imc.Spec.State = clusterv1beta1.ClusterStateJoin
		imc.Spec.HeartbeatPeriodSeconds = mc.Spec.HeartbeatPeriodSeconds
		return controllerutil.SetControllerReference(mc, imc, r.Client.Scheme())
	})
	if err != nil {
		return err
	}
	r.event(mc, result, "InternalMemberCluster "+imc.Name,
		clusterv1beta1.EventInternalMemberClusterCreated, clusterv1beta1.EventInternalMemberClusterSpecUpdated)
	return nil
}

// annotate sets an annotation of an object, or takes it off.
func annotate(obj client.Object, key, value string, is bool) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[key] = value; !is {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
}

// wordsForAgents are the annotations of a MemberCluster by which an administrator tells the
// member's agent something.
func wordsForAgents() []string {
	return []string{clusterv1beta1.AnnotationLetGo, clusterv1beta1.AnnotationFormerHub}
}

// hubUID tells this hub from every other by a namespace that each has from its first
// moment on. Namespaces are watched anyway.
func (r *Reconciler) hubUID(ctx context.Context) (string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("reading namespace %q: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// ensure creates or updates obj so that mutate finds nothing more to change. It
// reads the live object: these are read once per change of a MemberCluster, which
// is not worth a cache of every Role and Secret of the hub.
func (r *Reconciler) ensure(ctx context.Context, obj client.Object, mutate func() error) (controllerutil.OperationResult, error) {
	none := controllerutil.OperationResultNone
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		if err := mutate(); err != nil {
			return none, fmt.Errorf("preparing %s: %w", describe(obj), err)
		}
		if err := r.Client.Create(ctx, obj); err != nil {
			return none, fmt.Errorf("creating %s: %w", describe(obj), err)
		}
		return controllerutil.OperationResultCreated, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", describe(obj), err)
	}
	before := obj.DeepCopyObject()
	if err := mutate(); err != nil {
		return none, fmt.Errorf("preparing %s: %w", describe(obj), err)
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return none, nil
	}
	if err := r.Client.Update(ctx, obj); err != nil {
		return none, fmt.Errorf("updating %s: %w", describe(obj), err)
	}
	return controllerutil.OperationResultUpdated, nil
}

func describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if obj.GetNamespace() == "" {
		return fmt.Sprintf("%s %q", kind, obj.GetName())
	}
	return fmt.Sprintf("%s %q in namespace %q", kind, obj.GetName(), obj.GetNamespace())
}
