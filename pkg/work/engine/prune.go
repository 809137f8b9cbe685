// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

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

// Removal is the result for objects that are no longer wanted.
type Removal struct {
	mu sync.Mutex // guards what follows: a wave goes in parallel
	// gone needs no entry in the ledger any more: it does not exist, or is not ours.
	gone map[manifest.Key]bool
	// released are the objects that exist and are not ours any more.
	released map[types.UID]bool
	// retained says of each of them why.
	retained []Retained
	// remaining is still there: it is terminating.
	remaining []*unstructured.Unstructured
	// kept says of each container that is still ours what keeps it, in a sentence.
	kept []string
	// denied says which right we lack for the rest, a sentence for each.
	denied []string
	// unreleased is set when an object was not released, or not looked at, that is to stay or may
	// be: the member's garbage collector must not get it.
	unreleased bool
	// waits is set when waves wait, or something is awaited of which no event tells.
	waits bool
	// patience is for how long waves wait.
	patience time.Duration
	errs     []error
}

// pruning is one removal of objects.
type pruning struct {
	work   Work
	policy metav1.DeletionPropagation
	// doomed are the objects that it is about, uids those of them that were there before.
	doomed map[manifest.Key]bool
	uids   map[types.UID]bool
	*Removal
}

func newPruning(w Work, left []Entry, policy metav1.DeletionPropagation) pruning {
	p := pruning{work: w, policy: policy, doomed: map[manifest.Key]bool{}, uids: map[types.UID]bool{},
		Removal: &Removal{gone: map[manifest.Key]bool{}, released: map[types.UID]bool{}}}
	for _, entry := range left {
		p.doomed[manifest.KeyOf(entry.Ref)] = true
		p.uids[entry.UID] = entry.UID != ""
	}
	return p
}

// takesAlong reports whether an object goes that may own others.
func (p pruning) takesAlong(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uids[uid] && !p.released[uid]
}

// prune removes what was applied and is no longer wanted, the last wave first. It does not wait
// until objects are gone: the watch tells. The last wave, which has the custom resources, is an
// exception: what serves them is needed until they are gone, to remove their finalizers.
func (e *Engine) prune(ctx context.Context, w Work, left []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	p := newPruning(w, left, policy)
	p.patience = e.effort.Removal
	byWave := make([][]Entry, e.LastWave+1)
	for _, entry := range left {
		wave := e.Wave(entry.GroupVersionResource().GroupResource())
		byWave[wave] = append(byWave[wave], entry)
	}
	for wave := e.LastWave; wave >= 0; wave-- {
		var group errgroup.Group
		group.SetLimit(e.effort.Manifests)
		for _, entry := range byWave[wave] {
			group.Go(func() error {
				end, err := e.remove(ctx, p, entry)
				p.note(e, entry, end, err)
				return nil
			})
		}
		_ = group.Wait() // the removal carries the errors
		if wave == e.LastWave && len(byWave[wave]) < len(left) && p.mustWait(e.clock.Now()) {
			p.waits = true
			break
		}
	}
	return p.Removal, errors.Join(p.errs...)
}

// mustWait reports whether custom resources have to end before what may serve them is removed.
func (p pruning) mustWait(now time.Time) bool {
	if len(p.errs) > 0 {
		return p.work.Ending.IsZero() || now.Sub(p.work.Ending) < p.patience
	}
	return slices.ContainsFunc(p.remaining, func(object *unstructured.Unstructured) bool {
		since := object.GetDeletionTimestamp()
		return since == nil || now.Sub(since.Time) < p.patience
	})
}

// ending is the result for one object.
type ending struct {
	// live is the object if it is still there and ours.
	live *unstructured.Unstructured
	// released is the object if it is there and not ours any more.
	released types.UID
	// retained says why it is not deleted, as the end of a sentence that begins with it.
	retained string
	// kept says the same of an object that is still ours.
	kept string
	// waits is set if that may soon be otherwise.
	waits bool
}

// unreleasedError is the error of an object that was not released, or not looked at.
type unreleasedError struct{ error }

func (e unreleasedError) Unwrap() error { return e.error }

func (r *Removal) note(e *Engine, entry Entry, end ending, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := manifest.KeyOf(entry.Ref)
	r.unreleased = r.unreleased || errors.As(err, &unreleasedError{})
	switch {
	case apierrors.IsForbidden(err):
		r.denied = append(r.denied, fmt.Sprintf("%s: %s", key, e.Explain(err, entry.GroupKind())))
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("removing %s: %w", key, err))
	case end.kept != "":
		r.kept = append(r.kept, fmt.Sprintf("%s %s", key, end.kept))
		r.waits = r.waits || end.waits
	case end.live != nil:
		r.remaining = append(r.remaining, end.live)
	default:
		r.gone[key] = true
		r.released[end.released] = end.released != ""
		if end.retained != "" {
			r.retained = append(r.retained, Retained{Ref: entry.Ref, Why: fmt.Sprintf("%s %s", key, end.retained)})
		}
	}
}

// join adds the result for other objects of the same work.
func (r *Removal) join(other *Removal) {
	maps.Copy(r.gone, other.gone)
	maps.Copy(r.released, other.released)
	r.retained = append(r.retained, other.retained...)
	r.remaining = append(r.remaining, other.remaining...)
	r.kept = append(r.kept, other.kept...)
	r.denied = append(r.denied, other.denied...)
	r.unreleased = r.unreleased || other.unreleased
	r.waits = r.waits || other.waits
}

// remove deletes the object of an entry, or takes our name off it if others keep it
// too, or are to, or if it is to stay.
func (e *Engine) remove(ctx context.Context, p pruning, entry Entry) (ending, error) {
	client := e.entryClient(entry)
	var live *unstructured.Unstructured
	for range attempts {
		var err error
		live, err = client.Get(ctx, entry.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ending{}, nil
		}
		if err != nil {
			return ending{}, unreleasedError{err}
		}
		end, done, err := e.removeOnce(ctx, p, client, entry, live)
		if done {
			return end, err
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return ending{}, err
		}
	}
	return ending{live: live}, nil
}

// removeOnce does what is to be done about an object as it is. It is not done if the object has
// to be looked at again.
func (e *Engine) removeOnce(ctx context.Context, p pruning, client dynamic.ResourceInterface, entry Entry, live *unstructured.Unstructured) (end ending, done bool, err error) {
	owner, free := p.work.Owner, ending{released: live.GetUID()}
	s := StandingOf(live.GetOwnerReferences(), owner)
	switch {
	case !s.Ours:
		return free, true, nil
	case e.isKept(s) || p.policy == metav1.DeletePropagationOrphan:
		return ending{}, false, unreleased(e.leave(ctx, client, live, owner, nil, e.staleMark(p.work, live)))
	case live.GetDeletionTimestamp() != nil:
		return ending{live: live}, true, nil
	}
	heir, err := p.work.HeirOf.find(ctx, entry)
	if err != nil {
		return ending{}, true, err
	}
	if heir != nil {
		return ending{}, false, unreleased(e.leave(ctx, client, live, owner, heir, e.staleMark(p.work, live)))
	}
	stay, err := e.stays(ctx, p, live)
	switch {
	case err != nil:
		return ending{}, true, unreleasedError{err}
	case stay.held:
		return ending{live: live, kept: stay.why, waits: stay.waits}, true, nil
	case stay.why != "":
		err := e.leave(ctx, client, live, owner, nil, e.unmarked(p.work, stay.mark))
		free.retained = stay.why
		return free, err == nil, unreleased(err)
	}
	policy, atOnce := p.policy, ownsNothing(entry.GroupKind())
	if atOnce && policy == metav1.DeletePropagationForeground {
		policy = metav1.DeletePropagationBackground
	}
	err = deleteExactly(ctx, client, live, policy)
	return ending{}, err == nil && atOnce && len(live.GetFinalizers()) == 0, err
}

func unreleased(err error) error {
	if err == nil {
		return nil
	}
	return unreleasedError{err}
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
// has one. It sets annotations, or removes those that are nil.
func (e *Engine) leave(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, owner metav1.OwnerReference, heir *metav1.OwnerReference, annotations map[string]any) error {
	owners := withoutOwner(live.GetOwnerReferences(), owner)
	if heir != nil {
		owners = withOwner(owners, *heir)
	}
	metadata := map[string]any{"resourceVersion": live.GetResourceVersion(), "ownerReferences": owners}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
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
func (r *Removal) IsOver() bool { return r.IsGone() && len(r.denied) == 0 }

// IsGone reports whether no object is still there of those that we may remove.
func (r *Removal) IsGone() bool { return len(r.remaining)+len(r.kept) == 0 && !r.waits }

// MayEndRecord reports whether the owner of the objects may be deleted, with which the member's
// garbage collector deletes all that it still owns.
func (r *Removal) MayEndRecord() bool { return len(r.kept) == 0 && !r.waits && !r.unreleased }

// Waits reports whether the removal waits for something that no event tells of.
func (r *Removal) Waits() bool { return r.waits }

// Retained says of each object that stays why.
func (r *Removal) Retained() []Retained {
	return slices.SortedFunc(slices.Values(r.retained), func(a, b Retained) int { return strings.Compare(a.Why, b.Why) })
}

// Left are those of the entries whose objects are there and may be ours.
func (r *Removal) Left(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(entry Entry) bool { return r.gone[manifest.KeyOf(entry.Ref)] })
}

// against says what stands against the removal of objects from a work that stays.
func (r *Removal) against() []string {
	all := append(slices.Clone(r.denied), r.kept...)
	if r.waits && len(r.remaining) > 0 {
		all = append(all, r.Describe())
	}
	return all
}

// Describe names the first object that is not gone and what holds it, or what we
// may not do; empty if there is neither.
func (r *Removal) Describe() string {
	if len(r.denied) > 0 {
		return slices.Min(r.denied)
	}
	if len(r.remaining) == 0 {
		if len(r.kept) == 0 {
			return ""
		}
		return slices.Min(r.kept)
	}
	first := slices.MinFunc(r.remaining, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(manifest.Of(a).String(), manifest.Of(b).String())
	})
	text := fmt.Sprintf("%d objects are not gone from the member yet. %s", len(r.remaining), manifest.Of(first))
	if finalizers := first.GetFinalizers(); len(finalizers) > 0 {
		text += fmt.Sprintf(" waits for finalizers %q", finalizers)
	}
	if r.waits {
		text += fmt.Sprintf(". What may serve it stays until it is gone, at most %s", r.patience)
	}
	return text + unfinished(first)
}

// unfinished says what to do about an object whose finalizers nobody removes.
func unfinished(object *unstructured.Unstructured) string {
	if !slices.ContainsFunc(object.GetFinalizers(), func(f string) bool {
		return f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents && f != "kubernetes"
	}) {
		return ""
	}
	kind := object.GroupVersionKind()
	resource, name := strings.ToLower(kind.Kind), object.GetName()
	if kind.Group != "" {
		resource += "." + kind.Version + "." + kind.Group
	}
	if object.GetNamespace() != "" {
		name += " -n " + object.GetNamespace()
	}
	return fmt.Sprintf(`. If the controller that removes them is gone, run on the member: kubectl patch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
		resource, name)
}
