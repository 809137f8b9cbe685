// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/template/render"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// deployPrefix begins the names of the ManifestWorks of an add-on, as in Open Cluster Management. Their
// numbers follow.
func deployPrefix(addOn *instance) string { return "addon-" + addOn.Name + "-deploy-" }

// deployed are the ManifestWorks of an add-on from the cache, by their numbers. They must not be changed.
func (r *Reconciler) deployed(ctx context.Context, addOn *instance) (map[int]*workv1.ManifestWork, error) {
	list := &workv1.ManifestWorkList{}
	if err := r.Client.List(ctx, list, client.InNamespace(addOn.Namespace), client.MatchingLabels{addonv1alpha1.AddOnNameLabel: addOn.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of ManagedClusterAddOn %s/%s: %w", addOn.Namespace, addOn.Name, err)
	}
	works := map[int]*workv1.ManifestWork{}
	for i := range list.Items {
		if suffix, is := strings.CutPrefix(list.Items[i].Name, deployPrefix(addOn)); is {
			if number, err := strconv.Atoi(suffix); err == nil && strconv.Itoa(number) == suffix {
				works[number] = &list.Items[i]
			}
		}
	}
	return works, nil
}

// deploy creates the ManifestWorks of an add-on or brings them up to date, and returns them. Those of
// which no manifest is left are deleted.
func (r *Reconciler) deploy(ctx context.Context, addOn *instance, spec workv1.ManifestWorkSpec, existing map[int]*workv1.ManifestWork) (map[int]*workv1.ManifestWork, error) {
	divided, err := r.divide(ctx, spec, existing)
	if err != nil {
		return existing, err
	}
	works := map[int]*workv1.ManifestWork{}
	for _, number := range slices.Sorted(maps.Keys(divided)) {
		name := deployPrefix(addOn) + strconv.Itoa(number)
		has, err := r.workOf(ctx, addOn, name)
		if err != nil {
			return existing, err
		}
		if works[number], err = r.deliver(ctx, addOn, name, divided[number], has); err != nil {
			return existing, err
		}
	}
	for number, work := range existing {
		if _, remains := divided[number]; remains || work.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, work, client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
			return existing, fmt.Errorf("deleting ManifestWork %s/%s, of which no manifest is left: %w", work.Namespace, work.Name, err)
		}
	}
	return works, nil
}

// divide divides a spec between ManifestWorks. Only the API server knows the manifests of those that
// exist, and it is asked only if there are several and the result would change them.
func (r *Reconciler) divide(ctx context.Context, spec workv1.ManifestWorkSpec, existing map[int]*workv1.ManifestWork) (map[int]workv1.ManifestWorkSpec, error) {
	divided, err := render.Divide(spec, nil)
	if err != nil || len(existing) == 0 || len(existing) == 1 && existing[0] != nil && len(divided) == 1 {
		return divided, err
	}
	if same, err := r.areEqual(existing, divided); same || err != nil {
		return divided, err
	}
	live := map[int]workv1.ManifestWorkSpec{}
	for number, cached := range existing {
		work, key := &workv1.ManifestWork{}, client.ObjectKeyFromObject(cached)
		exists, err := reconcileutil.GetIfExists(ctx, r.Live, key, work, "reading ManifestWork %s", key)
		if err != nil {
			return nil, err
		}
		if exists {
			live[number] = work.Spec
		}
	}
	return render.Divide(spec, live)
}

// areEqual reports whether ManifestWorks have these specs.
func (r *Reconciler) areEqual(works map[int]*workv1.ManifestWork, specs map[int]workv1.ManifestWorkSpec) (bool, error) {
	if len(works) != len(specs) {
		return false, nil
	}
	for number, work := range works {
		spec, desired := specs[number]
		if !desired {
			return false, nil
		}
		has, err := r.HashOf(work)
		if err != nil {
			return false, err
		}
		wants, err := r.HashOf(&workv1.ManifestWork{Spec: spec})
		if err != nil || has != wants {
			return false, err
		}
	}
	return true, nil
}

// workOf reads a ManifestWork from the cache; nil if it does not exist.
func (r *Reconciler) workOf(ctx context.Context, addOn *instance, name string) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{}
	key := client.ObjectKey{Namespace: addOn.Namespace, Name: name}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, key, work, "reading ManifestWork %s", key)
	if !exists {
		return nil, err
	}
	return work, nil
}

// deliver creates a ManifestWork or brings the existing one up to date, and returns it. A refusal says
// why the hub does not accept it.
func (r *Reconciler) deliver(ctx context.Context, addOn *instance, name string, spec workv1.ManifestWorkSpec, existing *workv1.ManifestWork) (*workv1.ManifestWork, error) {
	desired := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: name}, Spec: spec}
	if existing == nil {
		if err := r.own(desired, addOn); err != nil {
			return nil, err
		}
		err := r.Client.Create(ctx, desired)
		if apierrors.IsAlreadyExists(err) {
			err = apierrors.NewConflict(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, name, err) // The cache will show it.
		}
		return desired, refused(err, "creating ManifestWork %s/%s", addOn.Namespace, name)
	}
	if existing.Labels[addonv1alpha1.AddOnNameLabel] != addOn.Name {
		return nil, refuse("ManifestWork %s/%s exists and is not of this add-on: delete it", addOn.Namespace, name)
	}
	if existing.DeletionTimestamp != nil {
		return existing, nil // It is created again when it is gone.
	}
	has, err := r.HashOf(existing)
	if err != nil {
		return nil, err
	}
	wants, err := r.HashOf(desired)
	if err != nil {
		return nil, err
	}
	desired.ObjectMeta = *existing.ObjectMeta.DeepCopy()
	if err := r.own(desired, addOn); err != nil {
		return nil, err
	}
	if has == wants && maps.Equal(desired.Labels, existing.Labels) && maps.Equal(desired.Annotations, existing.Annotations) &&
		equality.Semantic.DeepEqual(desired.OwnerReferences, existing.OwnerReferences) {
		return existing, nil
	}
	maps.DeleteFunc(desired.Annotations, func(key, _ string) bool { return !isStored(key) })
	if err := refused(r.Client.Update(ctx, desired), "updating ManifestWork %s/%s", addOn.Namespace, name); err != nil {
		return nil, err
	}
	return desired, nil
}

// isStored is false for annotations that only the cache has.
func isStored(key string) bool { return !strings.HasPrefix(key, "//") }

// own gives a ManifestWork the metadata of the add-on's. An owner of the same name is a predecessor,
// with which garbage collection would delete it.
func (r *Reconciler) own(work *workv1.ManifestWork, addOn *instance) error {
	metav1.SetMetaDataLabel(&work.ObjectMeta, addonv1alpha1.AddOnNameLabel, addOn.Name)
	configurations, _ := objects.Hashes(addOn.ManagedClusterAddOn)
	if err := objects.SetHashes(work, configurations); err != nil {
		return err
	}
	owner := ownerOf(addOn.ManagedClusterAddOn)
	if slices.ContainsFunc(work.OwnerReferences, func(has metav1.OwnerReference) bool { return has.UID == owner.UID }) {
		return nil
	}
	work.OwnerReferences = append(slices.DeleteFunc(work.OwnerReferences, func(has metav1.OwnerReference) bool {
		return has.Kind == owner.Kind && has.Name == owner.Name || has.Controller != nil && *has.Controller
	}), owner)
	return nil
}

// refused turns an answer of the hub that people have to act on into a refusal.
func refused(err error, doing string, words ...any) error {
	switch {
	case err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return err
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return refuse("%s: %w", fmt.Sprintf(doing, words...), err)
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, words...), err)
}
