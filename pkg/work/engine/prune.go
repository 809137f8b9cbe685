// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// HeirFinder finds the owner that an object has next; nil if there is none.
type HeirFinder func(context.Context, Entry) (*metav1.OwnerReference, error)

func (f HeirFinder) find(ctx context.Context, entry Entry) (*metav1.OwnerReference, error) {
	if f == nil {
		return nil, nil
	}
	return f(ctx, entry)
}

// Removal is what became of objects that are no longer wanted.
type Removal struct {
	mu sync.Mutex // guards what follows: a wave goes in parallel
	// gone needs no entry in the ledger any more: it does not exist, or is not ours.
	gone map[manifest.Key]bool
	// remaining is still there: it is terminating.
	remaining []*unstructured.Unstructured
	// denied says what we may not do about the rest, a sentence for each.
	denied []string
	errs   []error
}

// prune removes what was applied and is no longer wanted, the last wave first. It
// does not wait until objects are gone: the watch tells.
func (e *Engine) prune(ctx context.Context, owner metav1.OwnerReference, left []Entry, policy metav1.DeletionPropagation, heirOf HeirFinder) (*Removal, error) {
	r := &Removal{gone: map[manifest.Key]bool{}}
	for wave := e.LastWave; wave >= 0; wave-- {
		var group errgroup.Group
		group.SetLimit(e.effort.Manifests)
		for _, entry := range left {
			if e.Wave(entry.GroupVersionResource().GroupResource()) != wave {
				continue
			}
			group.Go(func() error {
				live, err := e.remove(ctx, owner, entry, policy, heirOf)
				r.note(e, entry, live, err)
				return nil
			})
		}
		_ = group.Wait() // the removal carries the errors
	}
	return r, errors.Join(r.errs...)
}

func (r *Removal) note(e *Engine, entry Entry, live *unstructured.Unstructured, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := manifest.KeyOf(entry.Ref)
	switch {
	case apierrors.IsForbidden(err):
		r.denied = append(r.denied, fmt.Sprintf("%s: %s", key, e.Explain(err, entry.GroupKind())))
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("removing %s: %w", key, err))
	case live != nil:
		r.remaining = append(r.remaining, live)
	default:
		r.gone[key] = true
	}
}

// remove deletes the object of an entry, or takes our name off it if others keep it
// too, or are to. It returns the object if it is still ours, and nil if it is free
// of us.
func (e *Engine) remove(ctx context.Context, owner metav1.OwnerReference, entry Entry, policy metav1.DeletionPropagation, heirOf HeirFinder) (*unstructured.Unstructured, error) {
	client := e.entryClient(entry)
	atOnce := ownsNothing(entry.GroupKind())
	if atOnce && policy == metav1.DeletePropagationForeground {
		policy = metav1.DeletePropagationBackground
	}
	var live *unstructured.Unstructured
	for range attempts {
		var err error
		live, err = client.Get(ctx, entry.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s := StandingOf(live.GetOwnerReferences(), owner)
		if !s.Ours {
			return nil, nil
		}
		switch {
		case e.isKept(s) || policy == metav1.DeletePropagationOrphan:
			err = e.leave(ctx, client, live, owner, nil)
		case live.GetDeletionTimestamp() != nil:
			return live, nil
		default:
			heir, findErr := heirOf.find(ctx, entry)
			if findErr != nil {
				return nil, findErr
			}
			if heir != nil {
				err = e.leave(ctx, client, live, owner, heir)
			} else if err = deleteExactly(ctx, client, live, policy); err == nil && atOnce && len(live.GetFinalizers()) == 0 {
				return nil, nil
			}
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return live, nil
}

// ownsNothing lists kinds that are gone as soon as they are deleted, and that nothing
// is made for: deleting one in the foreground would only wait for the member's
// garbage collector, which does about ten in a second on most clusters.
func ownsNothing(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "ConfigMap"},
		schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Kind: "ServiceAccount"},
		schema.GroupKind{Kind: "LimitRange"},
		schema.GroupKind{Kind: "ResourceQuota"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
		schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}:
		return true
	}
	return false
}

func (e *Engine) entryClient(entry Entry) dynamic.ResourceInterface {
	if entry.Namespace == "" {
		return e.member.Resource(entry.GroupVersionResource())
	}
	return e.member.Resource(entry.GroupVersionResource()).Namespace(entry.Namespace)
}

// leave takes our owner reference off an object, and puts that of an heir there, if it
// has one.
func (e *Engine) leave(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, owner metav1.OwnerReference, heir *metav1.OwnerReference) error {
	owners := withoutOwner(live.GetOwnerReferences(), owner)
	if heir != nil {
		owners = withOwner(owners, *heir)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": owners,
	}})
	if err != nil {
		return fmt.Errorf("encoding the owner references: %w", err)
	}
	_, err = client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: e.Manager})
	return err
}

// deleteExactly deletes the object that was seen: not another of the same name,
// nor one that got a second owner in the meantime.
func deleteExactly(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	return client.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             ptr.To(live.GetUID()),
			ResourceVersion: ptr.To(live.GetResourceVersion()),
		},
		PropagationPolicy: &policy,
	})
}

// IsOver reports whether nothing is left that we may remove, nor that we may not.
func (r *Removal) IsOver() bool { return len(r.remaining)+len(r.denied) == 0 }

// IsGone reports whether no object is still there of those that we may remove.
func (r *Removal) IsGone() bool { return len(r.remaining) == 0 }

// Left are those of the entries whose objects are there and may be ours.
func (r *Removal) Left(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(entry Entry) bool { return r.gone[manifest.KeyOf(entry.Ref)] })
}

// Describe names the first object that is not gone and what holds it, or what we
// may not do; empty if there is neither.
func (r *Removal) Describe() string {
	if len(r.denied) > 0 {
		return slices.Min(r.denied)
	}
	if len(r.remaining) == 0 {
		return ""
	}
	first := slices.MinFunc(r.remaining, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(manifest.Of(a).String(), manifest.Of(b).String())
	})
	text := fmt.Sprintf("%d objects are not gone from the member yet. %s", len(r.remaining), manifest.Of(first))
	if finalizers := first.GetFinalizers(); len(finalizers) > 0 {
		text += fmt.Sprintf(" waits for finalizers %q", finalizers)
	}
	return text
}
