// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A hub can go back: its etcd is restored from a backup, or lost. Two signs of it cannot be
// seen otherwise, since a Work has our finalizer before anything of it is applied, its
// generation only grows, and so does its epoch:
//
//   - a Work is gone, and its deletion did not come here;
//   - a Work is of an earlier generation or epoch than that from which the ledger got its last
//     entry, or of another UID.
//
// Then nobody has said that what is on the member and not in the Work is to go: it is held.
// It stays, is counted and told, and is adopted again when a Work wants it. Only an
// administrator lets it go, on the hub.

const (
	// HeldAnnotation is on an AppliedWork of which something is held: since when, in RFC 3339, by
	// the member's clock, for people; the id by which it is let go; and "another-work" if the
	// hub did not go back as far as can be seen. There are slashes between. An agent of before
	// wrote the time alone. The agent writes it.
	HeldAnnotation = "fleetgate.io/held-since"

	// anotherWork is the last part of HeldAnnotation where a Work has come in the place of
	// another, as when a member leaves and joins again.
	anotherWork = "another-work"

	// holdRecheck is how often held objects are offered to Works that want them.
	holdRecheck = 30 * time.Second
	// heldTogether is for how long what is held gets one id: the Works of a member are looked
	// at one after another.
	heldTogether = time.Minute
)

// hold is what HeldAnnotation says.
type hold struct {
	since, id string
	// another is set when a Work has come in the place of another.
	another bool
}

// holdOf is what is held by a record, nothing if there is none.
func holdOf(record *placementv1beta1.AppliedWork) hold {
	if record == nil {
		return hold{}
	}
	parts := append(strings.SplitN(record.Annotations[HeldAnnotation], "/", 3), "", "")
	return hold{since: parts[0], id: parts[1], another: parts[2] == anotherWork}
}

// text is the value of HeldAnnotation; empty if nothing is held.
func (h hold) text() string {
	switch {
	case !h.is():
		return ""
	case h.another:
		return h.since + "/" + h.id + "/" + anotherWork
	}
	return h.since + "/" + h.id
}

// is reports whether something is held.
func (h hold) is() bool { return h != hold{} }

// newHold is one that begins now. Its id was never told before, so that no word of before
// lets it go.
func (r *Reconciler) newHold(m membership) hold {
	now := r.options.Clock.Now()
	return hold{since: now.UTC().Format(time.RFC3339), id: r.holds.idAt(now, m)}
}

// goesOn is a hold that is not let go: one that an agent of before began gets an id.
func (r *Reconciler) goesOn(h hold, m membership) hold {
	if h.is() && h.id == "" {
		h.id = r.holds.idAt(r.options.Clock.Now(), m)
	}
	return h
}

// letsGo reports whether an administrator has let go what is held. What an agent of before
// holds has no id, and goes by the time until which it is let go.
func (m membership) letsGo(h hold) bool {
	if h.id != "" {
		return slices.Contains(m.letGo, h.id)
	}
	since, err := time.Parse(time.RFC3339, h.since)
	return err == nil && slices.ContainsFunc(m.letGo, func(word string) bool {
		until, err := time.Parse(time.RFC3339, word)
		return err == nil && !since.After(until)
	})
}

// letGoOf is what the hub lets go: ids, with commas between, of this member or of others.
func letGoOf(member *clusterv1beta1.InternalMemberCluster) []string {
	return strings.Split(member.Annotations[clusterv1beta1.AnnotationLetGo], ",")
}

// settleHold counts what is held of a Work, and ends the hold once there is nothing.
func (r *Reconciler) settleHold(ctx context.Context, p *planned, result engine.Result) error {
	if !p.job.Held {
		r.holds.set(p.work.Name, hold{}, 0)
		return nil
	}
	if !result.HoldEnds {
		r.holds.set(p.work.Name, holdOf(p.record), len(result.Held))
		return nil
	}
	r.holds.set(p.work.Name, hold{}, 0)
	return r.records.annotate(ctx, p.record, func() { delete(p.record.Annotations, HeldAnnotation) })
}

// holdVanished holds what a Work applied that is gone though nobody is known to have deleted
// it.
func (r *Reconciler) holdVanished(ctx context.Context, record *placementv1beta1.AppliedWork, m membership) (ctrl.Result, error) {
	name, h := record.Spec.WorkName, r.goesOn(holdOf(record), m)
	if !h.is() {
		h = r.newHold(m)
		log.FromContext(ctx).Info("A Work is not on the hub any more, and its deletion did not come here: what it applied is held", "Work", name)
	}
	if h != holdOf(record) {
		if err := r.records.annotate(ctx, record, func() {
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, HeldAnnotation, h.text())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	gone := &metav1.ObjectMeta{Name: name}
	held, err := r.engine.Hold(ctx, engine.Work{
		Name: name, Owner: ownerOf(record), Ledger: ledger{r.records, record}, HeirOf: siblings{r.records}.heirsOf(gone)})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.holds.set(name, h, len(held))
	if len(held) > 0 {
		return ctrl.Result{RequeueAfter: holdRecheck}, nil
	}
	// All that it had is another's now, or nobody's.
	_, err = r.depart(ctx, departure{work: gone, record: record, membership: m, policy: metav1.DeletePropagationOrphan})
	return ctrl.Result{RequeueAfter: recheckDeletion}, err
}

// departHeld removes what a deleted Work applied, but for what is held and what that is in. It
// returns what is left to wait for, nil if nothing is: then the rest is what a Work applied
// that is gone.
func (r *Reconciler) departHeld(ctx context.Context, d departure, held []engine.Entry) (*engine.Removal, error) {
	isDoomed := func(entry engine.Entry) bool {
		return !slices.ContainsFunc(held, func(h engine.Entry) bool { return h == entry || takes(entry, h) })
	}
	removed, err := r.engine.RemoveSome(ctx, engine.Work{
		Name: d.work.GetName(), Owner: ownerOf(d.record), Ledger: ledger{r.records, d.record}, HeirOf: siblings{r.records}.heirsOf(d.work),
	}, isDoomed, d.policy)
	if err != nil || !removed.IsOver() {
		return removed, err
	}
	return nil, nil
}

// beyond are the entries of a ledger that its Work does not ask for.
func beyond(entries []engine.Entry, work *placementv1beta1.Work) []engine.Entry {
	named := sets.New(objectsOf(work)...)
	return slices.DeleteFunc(entries, func(entry engine.Entry) bool { return named.Has(manifest.KeyOf(entry.Ref).String()) })
}

// takes reports whether an object takes another with it when it is removed: a namespace what
// is in it, a definition what is of its kind.
func takes(object, other engine.Entry) bool {
	switch object.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return object.Name == other.Namespace
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return object.Name == other.GroupVersionResource().GroupResource().String()
	}
	return false
}

// Held is how much is held on the member.
type Held struct {
	// Works are those of which something is held, Objects how much that is.
	Works, Objects int
	// Example is the first of these Works by name.
	Example string
	// LetGo lets all of it go, as the value of the MemberCluster's annotation; empty if
	// nothing is held.
	LetGo string
	// WentBack is set when something is held since the hub went back, and not only since Works
	// came in the place of others.
	WentBack bool
}

// holds counts what is held, by Work, and gives it ids. It is safe for concurrent use.
type holds struct {
	// told hears of every change; nil if nobody wants to.
	told func(Held)
	// newID makes an id that nobody had before.
	newID func() string

	mu    sync.Mutex // guards what follows, and is held while told is called, so that it hears the latest last
	works map[string]heldWork
	// id is what is held got since begun.
	id    string
	begun time.Time
}

type heldWork struct {
	hold
	objects int
}

// newHoldID is random: a clock can say one time twice.
func newHoldID() string { return string(uuid.NewUUID())[:8] }

// idAt is the id of what is held from now on: another one than what was let go has, and than
// what was held a while ago, since that was told without this.
func (h *holds) idAt(now time.Time, m membership) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id == "" || now.Sub(h.begun).Abs() > heldTogether || slices.Contains(m.letGo, h.id) {
		h.id, h.begun = h.newID(), now
	}
	return h.id
}

func (h *holds) set(work string, of hold, objects int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := heldWork{of, objects}
	if objects == 0 {
		held = heldWork{}
	}
	if h.works[work] == held {
		return
	}
	if h.works == nil {
		h.works = map[string]heldWork{}
	}
	if h.works[work] = held; objects == 0 {
		delete(h.works, work)
	}
	if h.told != nil {
		h.told(h.sum())
	}
}

// sum adds up what is held. The caller has the lock.
func (h *holds) sum() Held {
	sum, ids := Held{Works: len(h.works)}, sets.Set[string]{}
	for name, of := range h.works {
		sum.Objects += of.objects
		sum.WentBack = sum.WentBack || !of.another
		ids.Insert(of.id)
		if sum.Example == "" || name < sum.Example {
			sum.Example = name
		}
	}
	sum.LetGo = strings.Join(sets.List(ids), ",")
	return sum
}

func (h *holds) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.works))
}

// waitingWorks are those that an order of the hub about the whole member may let go on: whose
// deletion is not finished, of which something is held, and which a hub placed whose place
// this one has.
func (r *Reconciler) waitingWorks(ctx context.Context, member client.Object) []reconcile.Request {
	requests := r.deletedWorks(ctx, member)
	names := r.holds.names()
	if former := member.GetAnnotations()[clusterv1beta1.AnnotationFormerHub]; former != "" {
		records := &placementv1beta1.AppliedWorkList{}
		if err := r.records.member.List(ctx, records); err != nil {
			log.FromContext(ctx).Error(err, "Listing what the former hub placed; it is found at the next look")
		}
		for i := range records.Items {
			if record := &records.Items[i]; record.Annotations[HubAnnotation] == former && record.Spec.WorkNamespace == r.options.HubNamespace {
				names = append(names, record.Spec.WorkName)
			}
		}
	}
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.options.HubNamespace, Name: name}})
	}
	return requests
}
