// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// prune removes what was applied and is no longer wanted, the last wave first.
// It returns what needs no entry in the ledger any more: objects that are gone
// and objects that are not ours. What is still terminating is in neither.
func (e *engine) prune(ctx context.Context, owner metav1.OwnerReference, left []entry) (map[manifest.Key]bool, error) {
	ordered := slices.Clone(left)
	slices.SortStableFunc(ordered, func(a, b entry) int {
		return manifest.Wave(resourceOf(b).GroupResource()) - manifest.Wave(resourceOf(a).GroupResource())
	})
	gone := map[manifest.Key]bool{}
	var errs []error
	for _, entry := range ordered {
		key := manifest.KeyOf(entry.WorkResourceIdentifier)
		released, err := e.remove(ctx, owner, entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("removing %s, which is no longer in the Work: %w", key, err))
		}
		if released {
			gone[key] = true
		}
	}
	return gone, errors.Join(errs...)
}

// remove deletes the object of an entry, or takes our name off it if others own
// it too. It reports whether the object is free of us.
func (e *engine) remove(ctx context.Context, owner metav1.OwnerReference, entry entry) (bool, error) {
	client := e.entryClient(entry)
	for range attempts {
		live, err := client.Get(ctx, entry.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		s := standingOf(live.GetOwnerReferences(), owner)
		if !s.ours {
			return true, nil
		}
		if s.shared() {
			err = leave(ctx, client, live, owner)
		} else if live.GetDeletionTimestamp() != nil {
			return false, nil // the watch tells when it is gone
		} else {
			err = deleteExactly(ctx, client, live)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return false, nil
}

func (e *engine) entryClient(entry entry) dynamic.ResourceInterface {
	if entry.Namespace == "" {
		return e.member.Resource(resourceOf(entry))
	}
	return e.member.Resource(resourceOf(entry)).Namespace(entry.Namespace)
}

func resourceOf(entry entry) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: entry.Group, Version: entry.Version, Resource: entry.Resource}
}

// leave takes our owner reference off an object.
func leave(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, owner metav1.OwnerReference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": withoutOwner(live.GetOwnerReferences(), owner),
	}})
	if err != nil {
		return fmt.Errorf("encoding the owner references: %w", err)
	}
	_, err = client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// deleteExactly deletes the object that was seen: not another of the same name,
// nor one that got a second owner in the meantime.
func deleteExactly(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	return client.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             ptr.To(live.GetUID()),
			ResourceVersion: ptr.To(live.GetResourceVersion()),
		},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
}
