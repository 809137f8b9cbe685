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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Removal is the result of removing objects.
type Removal struct {
	mu sync.Mutex // guards what follows: a wave runs in parallel
	// gone are objects that need no ledger entry: they do not exist, or are not ours.
	gone map[manifest.Key]bool
	// released are objects that exist and are no longer ours.
	released map[types.UID]bool
	// retained are the released objects with the reason why they stay.
	retained []Retained
	// remaining are objects that are terminating.
	remaining []*unstructured.Unstructured
	// kept has one sentence per container that is still ours: why it is kept.
	kept []string
	// denied has one sentence per object that the agent lacks a right to remove.
	denied []string
	// unreleased is set if an object that stays, or may stay, could not be read or released. The
	// record must not be deleted then, or the member's garbage collector deletes the object.
	unreleased bool
	// waits is set if waves wait, or if the removal waits for something without an event.
	waits bool
	// backoff is how long waves wait.
	backoff time.Duration
	errs    []error
}

// pruning is one removal of objects.
type pruning struct {
	work   Work
	policy metav1.DeletionPropagation
	// removing are the objects to remove; uids are their UIDs, if known.
	removing map[manifest.Key]bool
	uids     map[types.UID]bool
	*Removal
}

func newPruning(w Work, left []Entry, policy metav1.DeletionPropagation) pruning {
	p := pruning{work: w, policy: policy, removing: map[manifest.Key]bool{}, uids: map[types.UID]bool{},
		Removal: &Removal{gone: map[manifest.Key]bool{}, released: map[types.UID]bool{}}}
	for _, entry := range left {
		p.removing[manifest.KeyOf(entry.Ref)] = true
		p.uids[entry.UID] = entry.UID != ""
	}
	return p
}

// deletesDependents reports whether the removal deletes the object with this UID, so that its dependents
// are deleted too.
func (p pruning) deletesDependents(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uids[uid] && !p.released[uid]
}

// prune removes objects that were applied and are no longer wanted, in reverse order of waves. It
// does not wait for deletions to complete; the watch reports them. Only the last wave, with the
// custom resources, must be gone first: the objects that serve them are needed to remove their
// finalizers.
func (e *Engine) prune(ctx context.Context, w Work, left []Entry, policy metav1.DeletionPropagation) (*Removal, error) {
	p := newPruning(w, left, policy)
	p.backoff = e.tuning.Removal
	byWave := make([][]Entry, len(e.Waves)+1)
	for _, entry := range left {
		wave := e.Waves.Of(entry.GroupVersionResource().GroupResource())
		byWave[wave] = append(byWave[wave], entry)
	}
	for wave := len(e.Waves); wave >= 0; wave-- {
		var group errgroup.Group
		group.SetLimit(e.tuning.Manifests)
		for _, entry := range byWave[wave] {
			group.Go(func() error {
				end, err := e.remove(ctx, p, entry)
				p.note(e, entry, end, err)
				return nil
			})
		}
		_ = group.Wait() // the removal carries the errors
		if wave == len(e.Waves) && len(byWave[wave]) < len(left) && p.mustWait(e.clock.Now()) {
			p.waits = true
			break
		}
	}
	return p.Removal, errors.Join(p.errs...)
}

// mustWait reports whether custom resources have to be gone before the objects that may serve them
// are removed.
func (p pruning) mustWait(now time.Time) bool {
	if len(p.errs) > 0 {
		return p.work.Ending.IsZero() || now.Sub(p.work.Ending) < p.backoff
	}
	return slices.ContainsFunc(p.remaining, func(object *unstructured.Unstructured) bool {
		since := object.GetDeletionTimestamp()
		return since == nil || now.Sub(since.Time) < p.backoff
	})
}

// ending is the result for one object.
type ending struct {
	// live is the object if it still exists and is ours.
	live *unstructured.Unstructured
	// released is the UID of the object if it exists and is no longer ours.
	released types.UID
	// retained is why the object stays, as a predicate of which the object is the subject.
	retained string
	// kept is the same for an object that is still ours.
	kept string
	// waits is set if this can change without an event.
	waits bool
}

// unreleasedError is the error of an object that could not be read or released.
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

// remove deletes the object of an entry. It only removes our owner reference if other owners keep
// the object, a next owner takes it, or it stays on the member.
func (e *Engine) remove(ctx context.Context, p pruning, entry Entry) (ending, error) {
	var live *unstructured.Unstructured
	for range attempts {
		var client dynamic.ResourceInterface
		var err error
		client, live, err = e.findEntry(ctx, entry)
		if err != nil {
			return ending{}, unreleasedError{err}
		}
		if live == nil {
			return ending{}, nil
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

// removeOnce does one step for the object as read. It returns false if the object must be read
// again.
func (e *Engine) removeOnce(ctx context.Context, p pruning, client dynamic.ResourceInterface, entry Entry, live *unstructured.Unstructured) (end ending, done bool, err error) {
	owner, free := p.work.Record, ending{released: live.GetUID()}
	s := OwnershipOf(live.GetOwnerReferences(), owner)
	switch {
	case !s.Ours:
		return free, true, nil
	case e.isKept(s) || p.policy == metav1.DeletePropagationOrphan:
		return ending{}, false, unreleased(e.leave(ctx, client, live, owner, nil, e.staleMark(p.work, live)))
	case live.GetDeletionTimestamp() != nil:
		return ending{live: live}, true, nil
	}
	next, err := p.work.Owner.NextOwner(ctx, entry)
	if err != nil {
		return ending{}, true, err
	}
	if next != nil {
		return ending{}, false, unreleased(e.leave(ctx, client, live, owner, next, e.staleMark(p.work, live)))
	}
	stay, err := e.stays(ctx, p, live)
	switch {
	case err != nil:
		return ending{}, true, unreleasedError{err}
	case stay.retained:
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

// ownsNothing lists kinds without dependents and finalizers. A foreground deletion would only wait
// for the member's garbage collector, which processes about ten objects per second on most
// clusters.
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

// findEntry reads the object of an entry, and returns the client for its resource. It returns no object
// if there is none. If the member no longer serves the entry's version of the kind, the object still
// exists, in another version.
func (e *Engine) findEntry(ctx context.Context, entry Entry) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	client := e.clientOf(entry.GroupVersionResource(), entry.Namespace)
	live, err := client.Get(ctx, entry.Name, metav1.GetOptions{})
	if isUnserved(err) {
		mapping, unknown := e.kinds.now(entry.GroupKind())
		switch {
		case apimeta.IsNoMatchError(unknown):
			return client, nil, nil // without the kind there are no objects
		case unknown != nil:
			return client, nil, fmt.Errorf("looking for another version of %s: %w", entry.GroupKind(), unknown)
		case mapping.Resource == entry.GroupVersionResource():
			return client, nil, nil // objects of the kind cannot be read: they are not stored
		}
		client = e.clientOf(mapping.Resource, entry.Namespace)
		live, err = client.Get(ctx, entry.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return client, nil, nil
	}
	return client, live, err
}

func (e *Engine) clientOf(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return e.member.Resource(resource)
	}
	return e.member.Resource(resource).Namespace(namespace)
}

// leave removes our owner reference from an object and adds that of the next owner, if there is one. It
// sets annotations, or deletes those with a nil value.
func (e *Engine) leave(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, owner metav1.OwnerReference, next *metav1.OwnerReference, annotations map[string]any) error {
	owners := withoutOwner(live.GetOwnerReferences(), owner)
	if next != nil {
		owners = withOwner(owners, *next)
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

// deleteExactly deletes the object only in the version that was read: not a re-created one, nor one
// with a new owner.
func deleteExactly(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	return client.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             ptr.To(live.GetUID()),
			ResourceVersion: ptr.To(live.GetResourceVersion()),
		},
		PropagationPolicy: &policy,
	})
}

// IsOver reports whether no object remains, with or without the right to remove it.
func (r *Removal) IsOver() bool { return r.IsGone() && len(r.denied) == 0 }

// IsGone reports whether none of the objects that the agent has the right to remove remains.
func (r *Removal) IsGone() bool { return len(r.remaining)+len(r.kept) == 0 && !r.waits }

// MayEndRecord reports whether the record can be deleted. The member's garbage collector then
// deletes all objects that the record still owns.
func (r *Removal) MayEndRecord() bool { return len(r.kept) == 0 && !r.waits && !r.unreleased }

// Waits reports whether the removal waits for something without an event.
func (r *Removal) Waits() bool { return r.waits }

// Retained returns the objects that stay and why, sorted.
func (r *Removal) Retained() []Retained {
	return slices.SortedFunc(slices.Values(r.retained), func(a, b Retained) int { return strings.Compare(a.Why, b.Why) })
}

// Left returns the entries whose objects exist and may be ours.
func (r *Removal) Left(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(entry Entry) bool { return r.gone[manifest.KeyOf(entry.Ref)] })
}

// against lists what blocks the removal of objects from a work that continues to exist.
func (r *Removal) against() []string {
	all := append(slices.Clone(r.denied), r.kept...)
	if r.waits && len(r.remaining) > 0 {
		all = append(all, r.Describe())
	}
	return all
}

// Describe names the first object that is not gone and what blocks it, or the right that the agent
// lacks. It is empty if nothing blocks the removal.
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
	text := fmt.Sprintf("%d objects still exist on the member. %s", len(r.remaining), manifest.Of(first))
	if finalizers := first.GetFinalizers(); len(finalizers) > 0 {
		text += fmt.Sprintf(" waits for finalizers %q", finalizers)
	}
	if r.waits {
		text += fmt.Sprintf(". Objects that it may need stay until then, for at most %s", r.backoff)
	}
	return text + unfinished(first)
}

// unfinished returns the remedy for an object whose finalizers nobody removes.
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
	return fmt.Sprintf(`. If the controller that removes them no longer exists, run on the member: kubectl patch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
		resource, name)
}

// keepRuns keeps the ledger entries of completed objects that now belong to another work. That work
// may still have to read them, to learn that the object has run.
func (r *Removal) keepRuns(ctx context.Context, left []Entry, owner Owner) {
	for _, entry := range left {
		key := manifest.KeyOf(entry.Ref)
		if entry.Run.Result == "" || !r.gone[key] {
			continue
		}
		if next, err := owner.NextOwner(ctx, entry); next != nil || err != nil {
			delete(r.gone, key) // the next reconcile gets the same error
		}
	}
}
