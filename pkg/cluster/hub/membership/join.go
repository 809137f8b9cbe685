// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// join maintains the member's objects on the hub, in the order of their use: once the
// InternalMemberCluster exists, all others do too.
func (r *Reconciler) join(ctx context.Context, mc *clusterv1beta1.MemberCluster) (*refusal.Refusal, error) {
	if refused := refuseName(r.Seats, mc.Name); refused != nil {
		return refused, nil
	}
	if refused := refuseIdentity(mc.Spec.Identity); refused != nil {
		return refused, nil
	}
	j := &joining{Reconciler: r, mc: mc}
	if refused, err := j.ensureNamespace(ctx); refused != nil || err != nil {
		return refused, err
	}
	if err := j.ensureRights(ctx); err != nil {
		return nil, err
	}
	return nil, j.ensureInternalMemberCluster(ctx)
}

// joining is one pass over a member's objects.
type joining struct {
	*Reconciler
	mc *clusterv1beta1.MemberCluster
	// empty is true if this pass created the member's namespace. Then objects are created without
	// reading them first, which halves the requests. An object that another writer created meanwhile is
	// read in the next pass.
	empty bool
}

// ensureRights writes independent objects concurrently. Roles and bindings take longest, because the
// API server compares them with the rights of their writer.
func (j *joining) ensureRights(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, inOrder := range [][]func(context.Context) error{
		{j.ensureRole, j.ensureRoleBinding},
		{j.reconcileClusterRights},
		// The quota is written last: otherwise the hub would update its usage for each object, and
		// reject them until it has counted for the first time.
		{j.ensureAccount, j.ensureCredentialSecret, j.ensureLease, j.ensureQuota},
	} {
		group.Go(func() error {
			for _, ensure := range inOrder {
				if err := ensure(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (j *joining) ensureNamespace(ctx context.Context) (*refusal.Refusal, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.Seats.Namespace(j.mc.Name)}}
	found, err := j.read(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if found {
		if refused := refuseNamespace(j.mc, namespace); refused != nil {
			return refused, nil
		}
	}
	result, err := j.write(ctx, namespace, found, func() error {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, clusterv1beta1.LabelFleetResource, clusterv1beta1.LabelFleetResourceValue)
		label(&namespace.ObjectMeta, j.mc.Name)
		return controllerutil.SetControllerReference(j.mc, namespace, j.Client.Scheme())
	})
	if err != nil {
		return nil, err
	}
	j.empty = !found
	j.event(j.mc, result, "namespace "+namespace.Name,
		clusterv1beta1.EventNamespaceCreated, clusterv1beta1.EventNamespacePatched)
	return nil, nil
}

func (j *joining) ensureAccount(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: j.objectMeta(j.mc.Name, j.Seats.Account)}
	_, err := j.ensure(ctx, account, func() error {
		label(&account.ObjectMeta, j.mc.Name)
		return nil
	})
	return err
}

// ensureCredentialSecret maintains the Secret to which the account's tokens are bound. It is empty:
// only its UID matters.
func (j *joining) ensureCredentialSecret(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: j.objectMeta(j.mc.Name, j.Seats.Credential)}
	_, err := j.ensure(ctx, secret, func() error {
		label(&secret.ObjectMeta, j.mc.Name)
		if j.AgentTokenLifetime > 0 {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, clusterv1beta1.AnnotationTokenLifetime, j.AgentTokenLifetime.String())
		}
		return nil
	})
	return err
}

// ensureLease maintains the Lease that the agent renews. The hub creates it, so that the agent needs no
// right to create Leases.
func (j *joining) ensureLease(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: j.objectMeta(j.mc.Name, j.Seats.Lease)}
	_, err := j.ensure(ctx, lease, func() error {
		label(&lease.ObjectMeta, j.mc.Name)
		return nil
	})
	return err
}

// ensureQuota limits how many objects a member's agent can create. It does not cover events, which the
// API server counts against no quota.
func (j *joining) ensureQuota(ctx context.Context) error {
	quota := &corev1.ResourceQuota{ObjectMeta: j.objectMeta(j.mc.Name, QuotaName)}
	_, err := j.ensure(ctx, quota, func() error {
		label(&quota.ObjectMeta, j.mc.Name)
		quota.Spec = corev1.ResourceQuotaSpec{Hard: hardLimits()}
		return nil
	})
	return err
}

func (j *joining) ensureRole(ctx context.Context) error {
	role := &rbacv1.Role{ObjectMeta: j.objectMeta(j.mc.Name, clusterv1beta1.RoleName(j.mc.Name))}
	result, err := j.ensure(ctx, role, func() error {
		label(&role.ObjectMeta, j.mc.Name)
		role.Rules = j.Rules(j.mc.Name)
		return nil
	})
	if err != nil {
		return err
	}
	j.event(j.mc, result, "role "+role.Name, clusterv1beta1.EventRoleCreated, clusterv1beta1.EventRoleUpdated)
	return nil
}

func (j *joining) ensureRoleBinding(ctx context.Context) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: j.objectMeta(j.mc.Name, clusterv1beta1.RoleBindingName(j.mc.Name))}
	var before []rbacv1.Subject
	result, err := j.ensure(ctx, binding, func() error {
		label(&binding.ObjectMeta, j.mc.Name)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterv1beta1.RoleName(j.mc.Name)}
		before = binding.Subjects
		binding.Subjects = []rbacv1.Subject{subjectOf(j.mc.Spec.Identity)}
		return nil
	})
	if err != nil {
		return err
	}
	if message := identityChange(before, binding.Subjects); message != "" {
		j.Recorder.Eventf(j.mc, nil, corev1.EventTypeWarning, clusterv1beta1.EventIdentityChanged, "Join", "%s", message)
	}
	j.event(j.mc, result, "role binding "+binding.Name,
		clusterv1beta1.EventRoleBindingCreated, clusterv1beta1.EventRoleBindingUpdated)
	return nil
}

// reconcileClusterRights maintains the rights outside of the namespace that only agents of the previous
// version need. New members never get them, and others lose them once their agent has shown that it
// works without them.
func (j *joining) reconcileClusterRights(ctx context.Context) error {
	if j.empty {
		return nil
	}
	imc := &clusterv1beta1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: j.Seats.Namespace(j.mc.Name), Name: j.mc.Name}
	if _, err := reconcileutil.GetIfExists(ctx, j.Live, key, imc, "reading the InternalMemberCluster of member %q", j.mc.Name); err != nil {
		return err
	}
	switch clusterRightsOf(imc.Status.Properties) {
	case rightsUseless:
		return j.removeClusterRights(ctx, j.mc)
	case rightsUnknown: // Existing ones stay, for the member's current identity.
		name := ClusterRoleName(j.mc.Name)
		if found, err := reconcileutil.GetIfExists(ctx, j.Live, client.ObjectKey{Name: name}, &rbacv1.ClusterRoleBinding{}, "reading ClusterRoleBinding %q", name); !found {
			return err
		}
	case rightsNeeded:
	}
	if err := j.ensureClusterRole(ctx); err != nil {
		return err
	}
	return j.ensureClusterRoleBinding(ctx)
}

func (j *joining) ensureClusterRole(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(j.mc.Name)}}
	_, err := j.ensure(ctx, role, func() error {
		label(&role.ObjectMeta, j.mc.Name)
		role.Rules = j.ClusterRules(j.mc.Name)
		return controllerutil.SetControllerReference(j.mc, role, j.Client.Scheme())
	})
	return err
}

func (j *joining) ensureClusterRoleBinding(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(j.mc.Name)}}
	_, err := j.ensure(ctx, binding, func() error {
		label(&binding.ObjectMeta, j.mc.Name)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(j.mc.Name)}
		binding.Subjects = []rbacv1.Subject{subjectOf(j.mc.Spec.Identity)}
		return controllerutil.SetControllerReference(j.mc, binding, j.Client.Scheme())
	})
	return err
}

func (j *joining) ensureInternalMemberCluster(ctx context.Context) error {
	hub, err := j.hubUID(ctx)
	if err != nil {
		return err
	}
	imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: j.objectMeta(j.mc.Name, j.mc.Name)}
	result, err := j.ensure(ctx, imc, func() error {
		metav1.SetMetaDataAnnotation(&imc.ObjectMeta, clusterv1beta1.AnnotationHub, hub)
		former, isFormer := j.mc.Annotations[clusterv1beta1.AnnotationFormerHub]
		annotate(imc, clusterv1beta1.AnnotationFormerHub, former, isFormer)
		released := releasedIDs(j.mc)
		annotate(imc, clusterv1beta1.AnnotationRelease, released, released != "")
		annotate(imc, clusterv1beta1.DeprecatedAnnotationLetGo, released, released != "")
		moved := ptr.Deref(j.Moved, HubAddress{})
		annotate(imc, clusterv1beta1.AnnotationHubURL, moved.URL, j.Moved != nil)
		annotate(imc, clusterv1beta1.AnnotationHubCA, string(moved.CA), j.Moved != nil)
		imc.Spec.State = clusterv1beta1.ClusterStateJoin
		imc.Spec.HeartbeatPeriodSeconds = j.mc.Spec.HeartbeatPeriodSeconds
		return controllerutil.SetControllerReference(j.mc, imc, j.Client.Scheme())
	})
	if err != nil {
		return err
	}
	j.event(j.mc, result, "InternalMemberCluster "+imc.Name,
		clusterv1beta1.EventInternalMemberClusterCreated, clusterv1beta1.EventInternalMemberClusterSpecUpdated)
	return nil
}

// annotate sets or removes an annotation.
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

// agentAnnotations are the annotations of a MemberCluster that the hub copies to the
// InternalMemberCluster, where its agent reads them.
func agentAnnotations() []string {
	return []string{clusterv1beta1.AnnotationRelease, clusterv1beta1.DeprecatedAnnotationLetGo, clusterv1beta1.AnnotationFormerHub}
}

// releasedIDs are the ids that a MemberCluster releases, separated by commas. It has both keys
// if an administrator wrote the new one, and then the one that an agent of the previous version
// reports: the ids of both count.
func releasedIDs(mc *clusterv1beta1.MemberCluster) string {
	var ids []string
	for _, key := range []string{clusterv1beta1.AnnotationRelease, clusterv1beta1.DeprecatedAnnotationLetGo} {
		if value := mc.Annotations[key]; value != "" {
			ids = append(ids, value)
		}
	}
	return strings.Join(ids, ",")
}

// hubUID identifies this hub by a namespace that each hub has from its start. Namespaces are watched
// anyway.
func (j *joining) hubUID(ctx context.Context) (string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := j.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("reading namespace %q: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// ensure creates or updates obj so that mutate has nothing to change. It reads the live object: this
// happens once per change of a MemberCluster, which is not worth a cache of every Role and Secret of
// the hub.
func (j *joining) ensure(ctx context.Context, obj client.Object, mutate func() error) (controllerutil.OperationResult, error) {
	found := false
	if !j.empty {
		var err error
		if found, err = j.read(ctx, obj); err != nil {
			return controllerutil.OperationResultNone, err
		}
	}
	return j.write(ctx, obj, found, mutate)
}

// read fills obj with the live object, and reports whether it exists.
func (j *joining) read(ctx context.Context, obj client.Object) (bool, error) {
	if found, err := reconcileutil.GetIfExists(ctx, j.Live, client.ObjectKeyFromObject(obj), obj, "reading %s", describe(obj)); !found {
		return false, err
	}
	return true, nil
}

// write creates obj unless it was found, and otherwise updates it if mutate changes it.
func (j *joining) write(ctx context.Context, obj client.Object, found bool, mutate func() error) (controllerutil.OperationResult, error) {
	none := controllerutil.OperationResultNone
	before := obj.DeepCopyObject()
	if err := mutate(); err != nil {
		return none, fmt.Errorf("preparing %s: %w", describe(obj), err)
	}
	if !found {
		if err := j.Client.Create(ctx, obj); err != nil {
			return none, fmt.Errorf("creating %s: %w", describe(obj), err)
		}
		return controllerutil.OperationResultCreated, nil
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return none, nil
	}
	if err := j.Client.Update(ctx, obj); err != nil {
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
