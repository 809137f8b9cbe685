// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// seen otherwise, since a Work has our finalizer before anything of it is applied and its
// generation only grows:
//
//   - a Work is gone, and its deletion did not come here;
//   - a Work is of an earlier generation than that from which the ledger got its last entry, or
//     of another UID.
//
// Then nobody has said that what is on the member and not in the Work is to go: it is held.
// It stays, is counted and told, and is adopted again when a Work wants it. Only an
// administrator lets it go, on the hub.

const (
	// SeenAnnotation is on an AppliedWork: UID and generation of its Work when an object was
	// entered in the ledger last, with a slash between. The agent writes it.
	SeenAnnotation = "fleetgate.io/work-seen"
	// HeldAnnotation is on an AppliedWork of which something is held: since when, in RFC 3339.
	// The agent writes it.
	HeldAnnotation = "fleetgate.io/held-since"

	// holdRecheck is how often held objects are offered to Works that want them.
	holdRecheck = 30 * time.Second
)

// errBehind is returned when the cache shows a Work as it was before we last saw it, though
// the hub has it as it should be.
var errBehind = errors.New("the cache is behind what was seen of the Work")

// seen is what is remembered of a Work beside its ledger. The zero value is nothing.
type seen struct {
	// work is the value of SeenAnnotation, held that of HeldAnnotation.
	work, held string
}

// sight says what is seen of a Work whose record is given, nil if it has none.
type sight func(record *placementv1beta1.AppliedWork) (seen, error)

func (s seen) mark(record *placementv1beta1.AppliedWork) {
	if s.work == "" {
		return
	}
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, SeenAnnotation, s.work)
	if s.held == "" {
		delete(record.Annotations, HeldAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, HeldAnnotation, s.held)
}

func (s seen) isMarkedOn(record *placementv1beta1.AppliedWork) bool {
	return s.work == "" || record.Annotations[SeenAnnotation] == s.work && record.Annotations[HeldAnnotation] == s.held
}

// mark is what SeenAnnotation says of a Work.
func mark(work *placementv1beta1.Work) string {
	return string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
}

// isBack reports whether a Work is not what follows from how it was seen last.
func isBack(work *placementv1beta1.Work, last string) bool {
	uid, number, found := strings.Cut(last, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return false // it was never seen, or by an agent that did not remember
	}
	return types.UID(uid) != work.UID || generation > work.Generation
}

// see compares a Work with how it was seen last. The hub itself is asked before it is said to
// have gone back: one of several API servers can show what was.
func (r *Reconciler) see(ctx context.Context, work *placementv1beta1.Work, m membership) sight {
	return func(record *placementv1beta1.AppliedWork) (seen, error) {
		if record == nil {
			return seen{work: mark(work)}, nil
		}
		now := seen{work: cmp.Or(record.Annotations[SeenAnnotation], mark(work)), held: record.Annotations[HeldAnnotation]}
		if isBack(work, now.work) {
			now.work = mark(work)
			live := &placementv1beta1.Work{}
			if err := r.hubReader.Get(ctx, client.ObjectKeyFromObject(work), live); err != nil {
				return seen{}, fmt.Errorf("asking the hub which generation Work %q has: %w", work.Name, err)
			}
			if mark(live) != now.work {
				return seen{}, errBehind
			}
			log.FromContext(ctx).Info("The hub has gone back: what is on the member and not in the Work any more is held",
				"Work", work.Name, "seen", record.Annotations[SeenAnnotation], "now", now.work)
			now.held = r.now()
		}
		if m.letsGo(now.held) {
			now.held = ""
		}
		return now, nil
	}
}

// noteGrowth remembers the generation of a Work that has an object which is not in the ledger
// yet: an earlier one lacks it. Others cost no request.
func (r *Reconciler) noteGrowth(ctx context.Context, p *planned) error {
	last := mark(p.work)
	if p.way.By == engine.Compare || p.record.Annotations[SeenAnnotation] == last {
		return nil
	}
	entered := map[manifest.Key]bool{}
	for _, of := range p.record.Status.AppliedResources {
		entered[manifest.KeyOf(manifest.Ref(of.WorkResourceIdentifier))] = true
	}
	if !slices.ContainsFunc(p.items, func(it engine.Item) bool { return it.Refused == nil && !entered[manifest.KeyOf(it.Ref)] }) {
		return nil
	}
	return r.records.annotate(ctx, p.record, func() { metav1.SetMetaDataAnnotation(&p.record.ObjectMeta, SeenAnnotation, last) })
}

func (r *Reconciler) now() string { return r.options.Clock.Now().UTC().Format(time.RFC3339) }

// letsGo reports whether an administrator has let go what is held since a time.
func (m membership) letsGo(since string) bool {
	held, err := time.Parse(time.RFC3339, since)
	return err == nil && !m.letGo.IsZero() && !held.After(m.letGo)
}

// settleHold counts what is held of a Work, and ends the hold once there is nothing.
func (r *Reconciler) settleHold(ctx context.Context, p *planned, result engine.Result) error {
	if !p.job.Held {
		r.holds.set(p.work.Name, 0)
		return nil
	}
	if !result.HoldEnds {
		r.holds.set(p.work.Name, len(result.Held))
		return nil
	}
	r.holds.set(p.work.Name, 0)
	return r.records.annotate(ctx, p.record, func() { delete(p.record.Annotations, HeldAnnotation) })
}

// holdVanished holds what a Work applied that is gone though nobody is known to have deleted
// it.
func (r *Reconciler) holdVanished(ctx context.Context, record *placementv1beta1.AppliedWork, m membership) (ctrl.Result, error) {
	name := record.Spec.WorkName
	if record.Annotations[HeldAnnotation] == "" {
		since := r.now()
		log.FromContext(ctx).Info("A Work is not on the hub any more, and its deletion did not come here: what it applied is held", "Work", name)
		if err := r.records.annotate(ctx, record, func() {
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, HeldAnnotation, since)
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
	r.holds.set(name, len(held))
	if len(held) > 0 {
		return ctrl.Result{RequeueAfter: holdRecheck}, nil
	}
	// All that it had is another's now, or nobody's.
	_, err = r.depart(ctx, departure{work: gone, membership: m, policy: metav1.DeletePropagationOrphan})
	return ctrl.Result{RequeueAfter: recheckDeletion}, err
}

// Held is how much is held on the member.
type Held struct {
	// Works are those of which something is held, Objects how much that is.
	Works, Objects int
	// Example is the first of these Works by name.
	Example string
}

// holds counts what is held, by Work. It is safe for concurrent use.
type holds struct {
	// told hears of every change; nil if nobody wants to.
	told func(Held)

	mu      sync.Mutex // guards objects, and is held while told is called, so that it hears the latest last
	objects map[string]int
}

func (h *holds) set(work string, objects int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects[work] == objects {
		return
	}
	if h.objects == nil {
		h.objects = map[string]int{}
	}
	if h.objects[work] = objects; objects == 0 {
		delete(h.objects, work)
	}
	if h.told == nil {
		return
	}
	sum := Held{Works: len(h.objects)}
	for name, count := range h.objects {
		sum.Objects += count
		if sum.Example == "" || name < sum.Example {
			sum.Example = name
		}
	}
	h.told(sum)
}

func (h *holds) works() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.objects))
}

// waitingWorks are those that an order of the hub about the whole member may let go on: whose
// deletion is not finished, of which something is held, and which a hub placed whose place
// this one has.
func (r *Reconciler) waitingWorks(ctx context.Context, member client.Object) []reconcile.Request {
	requests := r.deletedWorks(ctx, member)
	names := r.holds.works()
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

// letGoOf is until when what is held is let go, by the hub; zero if nothing is.
func letGoOf(member *clusterv1beta1.InternalMemberCluster) time.Time {
	until, err := time.Parse(time.RFC3339, member.Annotations[clusterv1beta1.AnnotationLetGo])
	if err != nil {
		return time.Time{}
	}
	return until
}
