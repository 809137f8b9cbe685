// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// byAddOn finds the RoleBindings of an add-on of a cluster, as cluster/name.
const byAddOn = "addon"

// Bindings writes the RoleBindings of agents of add-ons.
type Bindings struct {
	// Manager writes with the rights of ManagerAccount. The hub then refuses what would give an agent
	// more than that account has.
	Manager client.Client
	// Cache has the RoleBindings with TemplateLabel.
	Cache cache.Cache
}

// AddIndexes adds the index that this package reads to Cache.
func (b *Bindings) AddIndexes(ctx context.Context) error {
	if err := b.Cache.IndexField(ctx, &rbacv1.RoleBinding{}, byAddOn, keysOf); err != nil {
		return fmt.Errorf("indexing RoleBindings by add-on: %w", err)
	}
	return nil
}

// keysOf is the key of a RoleBinding in the index, if any. Anybody may have set its labels. Of one by Open
// Cluster Management nobody knows the cluster.
func keysOf(binding client.Object) []string {
	of := addOnOf(binding)
	if len(of) == 0 || binding.GetLabels()[addonv1alpha1.AddOnNamespaceLabel] == "" {
		return nil
	}
	return []string{of[0].String()}
}

// keep creates, changes and deletes RoleBindings so that an add-on of a cluster has exactly these. It continues
// after a failure, so that rights end in any case. A refusal names the right that is missing.
func (b *Bindings) keep(ctx context.Context, addOn types.NamespacedName, desired []*rbacv1.RoleBinding) error {
	list := &rbacv1.RoleBindingList{}
	if err := b.Cache.List(ctx, list, client.MatchingFields{byAddOn: addOn.String()}); err != nil {
		return fmt.Errorf("listing the RoleBindings of add-on %s: %w", addOn, err)
	}
	var failed []error
	for i := range list.Items {
		existing := &list.Items[i]
		wanted := slices.ContainsFunc(desired, func(d *rbacv1.RoleBinding) bool {
			return d.Namespace == existing.Namespace && d.Name == existing.Name && d.RoleRef == existing.RoleRef
		})
		if !wanted {
			failed = append(failed, b.delete(ctx, existing))
		}
	}
	for _, binding := range desired {
		i := slices.IndexFunc(list.Items, func(has rbacv1.RoleBinding) bool {
			return has.Namespace == binding.Namespace && has.Name == binding.Name && has.RoleRef == binding.RoleRef
		})
		if i < 0 {
			failed = append(failed, missing(binding, b.create(ctx, binding)))
		} else {
			failed = append(failed, missing(binding, b.update(ctx, &list.Items[i], binding)))
		}
	}
	return errors.Join(failed...)
}

func (b *Bindings) delete(ctx context.Context, binding *rbacv1.RoleBinding) error {
	if err := b.Manager.Delete(ctx, binding, client.Preconditions{UID: &binding.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}

func (b *Bindings) create(ctx context.Context, binding *rbacv1.RoleBinding) error {
	err := b.Manager.Create(ctx, binding)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The cache does not have it yet, or it is Open Cluster Management's, or somebody else's.
	existing := &rbacv1.RoleBinding{}
	if err := b.Manager.Get(ctx, client.ObjectKeyFromObject(binding), existing); err != nil {
		return err
	}
	_, labelled := existing.Labels[addonv1alpha1.TemplateLabel]
	switch {
	case !labelled || !slices.Equal(addOnOf(existing), addOnOf(binding)):
		return refusal.New(addonv1alpha1.ReasonSetPermissionFailed, "RoleBinding %s/%s exists and is not of this add-on: delete it", binding.Namespace, binding.Name)
	case existing.RoleRef == binding.RoleRef:
		return b.update(ctx, existing, binding)
	}
	if err := b.delete(ctx, existing); err != nil {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, binding.Name, err)
}

func (b *Bindings) update(ctx context.Context, existing, desired *rbacv1.RoleBinding) error {
	if equality.Semantic.DeepEqual(existing.Subjects, desired.Subjects) && maps.Equal(existing.Labels, desired.Labels) &&
		equality.Semantic.DeepEqual(existing.OwnerReferences, desired.OwnerReferences) {
		return nil
	}
	changed := existing.DeepCopy()
	changed.Subjects, changed.Labels, changed.OwnerReferences = desired.Subjects, desired.Labels, desired.OwnerReferences
	return b.Manager.Update(ctx, changed)
}

// missing turns an answer of the hub about a RoleBinding into a refusal with a remedy.
func missing(binding *rbacv1.RoleBinding, err error) error {
	role := fmt.Sprintf("%s %q", binding.RoleRef.Kind, binding.RoleRef.Name)
	answer := func(remedy string) error {
		return refusal.New(addonv1alpha1.ReasonSetPermissionFailed, "%s. %s, or remove it from the AddOnTemplate", limited(fmt.Sprintf("RoleBinding %s/%s: %v", binding.Namespace, binding.Name, err)), remedy)
	}
	switch {
	case err == nil || refusal.Of(err) != nil || apierrors.IsConflict(err):
		return err
	case apierrors.IsForbidden(err):
		return answer(fmt.Sprintf("Bind %s to ServiceAccount %s/%s", role, addonv1alpha1.HubNamespace, addonv1alpha1.ManagerAccount))
	case apierrors.IsNotFound(err):
		return answer("Create " + role + " and the namespace")
	case apierrors.IsInvalid(err):
		return answer("Correct " + role)
	}
	return fmt.Errorf("writing RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
}
