// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// deployWork is the name of the ManifestWork of an add-on, as in Open Cluster Management.
func deployWork(addOn *instance) string { return "addon-" + addOn.Name + "-deploy-0" }

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
	hashes, err := json.Marshal(configurations)
	if err != nil {
		return fmt.Errorf("writing the hashes of configurations: %w", err)
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, workv1.ConfigSpecHashAnnotation, string(hashes))
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
