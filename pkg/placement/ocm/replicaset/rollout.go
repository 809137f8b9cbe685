// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/ocm/decisions"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// placed is the result of one Placement.
type placed struct {
	name string
	// decided is nil if there is no such Placement.
	decided *decided
	// current are the clusters whose ManifestWork equals the current template, succeeded those of
	// them that are done, applied those that have applied it.
	current, succeeded, applied sets.Set[string]
	plan                        rolloutstrategy.Plan
	// refused says why the strategy is not followed.
	refused string
	// retained is the number of clusters that keep a ManifestWork without a decision, because the
	// decisions are incomplete.
	retained int
	// suspended says why a large removal waits for a confirmation; empty if none does.
	suspended string
}

// rollOut brings ManifestWorks and status up to date, and returns when to reconcile again.
func (r *Reconciler) rollOut(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (time.Duration, error) {
	if !labelFits(set) {
		return 0, r.writeStatus(ctx, set, unnameable(set))
	}
	set, err := withWrittenNamespaces(set, r.Client.RESTMapper())
	if err != nil {
		return 0, err
	}
	works, err := r.worksOf(ctx, set)
	if err != nil {
		return 0, err
	}
	specHash, err := hash.JSON(&set.Spec.ManifestWorkTemplate)
	if err != nil {
		return 0, err
	}
	now := r.Clock.Now()
	changes := &changes{set: set, now: now, left: map[workName]bool{}}
	var all []*placed
	named := sets.New[string]() // as a label value
	for _, ref := range set.Spec.PlacementRefs {
		if named.Has(naming.LabelValue(ref.Name)) {
			continue
		}
		named.Insert(naming.LabelValue(ref.Name))
		p, err := r.place(ctx, set, ref, specHash, works, changes)
		if err != nil {
			return 0, err
		}
		all = append(all, p)
	}
	unnamed := slices.DeleteFunc(slices.Clone(works), func(work *workv1.ManifestWork) bool { return named.Has(work.Labels[workv1alpha1.PlacementNameLabel]) })
	retained := removeUnnamed(unnamed, all, changes)
	results := r.write(ctx, changes)
	for i := range changes.give {
		if given := changes.give[i]; !results.failed(i) {
			given.of.current.Insert(given.cluster)
		}
	}
	works = slices.DeleteFunc(works, func(work *workv1.ManifestWork) bool { return changes.left[nameOf(work)] })
	if err := r.writeStatus(ctx, set, desiredStatus(set, all, works, retained, results.message())); err != nil {
		return 0, err
	}
	if retry, err := results.retry(); retry > 0 || err != nil {
		return retry, err
	}
	return until(all, now), nil
}

// until is the time to the next deadline, 0 if there is none.
func until(all []*placed, now time.Time) time.Duration {
	var next time.Duration
	for _, p := range all {
		if at := p.plan.Next; !at.IsZero() && (next == 0 || at.Sub(now) < next) {
			next = at.Sub(now)
		}
	}
	return next
}

// worksOf lists the ManifestWorks of a set from the cache, sorted by name. They are not copied.
func (r *Reconciler) worksOf(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) ([]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	if err := r.Client.List(ctx, &list, client.MatchingFields{worksBySet: labelValue(set)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of ManifestWorkReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	works := make([]*workv1.ManifestWork, 0, len(list.Items))
	for i := range list.Items {
		works = append(works, &list.Items[i])
	}
	slices.SortFunc(works, func(a, b *workv1.ManifestWork) int {
		if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return works, nil
}

// place adds the changes for one Placement.
func (r *Reconciler) place(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, ref workv1alpha1.LocalPlacementReference, hash string,
	works []*workv1.ManifestWork, changes *changes) (*placed, error) {
	d, err := r.decisionsOf(ctx, client.ObjectKey{Namespace: set.Namespace, Name: ref.Name})
	if err != nil {
		return nil, err
	}
	p := &placed{name: ref.Name, decided: d, current: sets.New[string](), succeeded: sets.New[string](), applied: sets.New[string]()}
	if d == nil {
		return p, nil
	}
	here, more := onePerCluster(set, ref.Name, works)
	for _, work := range more {
		changes.remove(work)
	}
	if err := r.removeUndecided(ctx, set, p, here, changes); err != nil {
		return nil, err
	}
	labels, statuses := desiredLabels(set, ref.Name), map[string]rolloutstrategy.ClusterRolloutStatus{}
	for cluster, work := range here {
		if !d.clusters.Has(cluster) {
			continue
		}
		if have, err := HashOf(work); err != nil {
			return nil, err
		} else if have != hash && work.DeletionTimestamp == nil {
			continue
		}
		statuses[cluster] = rolloutStatusOf(work)
		if work.DeletionTimestamp != nil {
			continue
		}
		p.current.Insert(cluster)
		if statuses[cluster].State == rolloutstrategy.Succeeded {
			p.succeeded.Insert(cluster)
		}
		if isApplied(work) {
			p.applied.Insert(cluster)
		}
		if !hasLabels(work, labels) {
			changes.give = append(changes.give, delivery{of: p, cluster: cluster, work: work, labels: true})
		}
	}
	how, err := decisions.Strategy(ref.RolloutStrategy)
	if err == nil {
		p.plan, err = rolloutstrategy.Next(how, d.groups, statuses, changes.now)
	}
	if err != nil {
		p.refused = err.Error()
		//lint:ignore nilerr It is reported in the status; only another strategy helps.
		return p, nil
	}
	for _, cluster := range p.plan.Turn {
		changes.give = append(changes.give, delivery{of: p, cluster: cluster, work: here[cluster]})
	}
	return p, nil
}

// removeUndecided removes the ManifestWorks of clusters that the Placement does not select, unless its
// decisions are incomplete or the removal has to be confirmed.
func (r *Reconciler) removeUndecided(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, p *placed, here map[string]*workv1.ManifestWork, changes *changes) error {
	var leaving []*workv1.ManifestWork
	for cluster, work := range here {
		if !p.decided.clusters.Has(cluster) && work.DeletionTimestamp == nil {
			leaving = append(leaving, work)
		}
	}
	if p.decided.short != "" {
		p.retained = len(leaving)
		return nil
	}
	var err error
	if p.suspended, err = r.suspendRemoval(ctx, set, p, leaving, len(here)); p.suspended != "" || err != nil {
		return err
	}
	for _, work := range leaving {
		changes.remove(work)
	}
	return nil
}

// removeUnnamed removes the ManifestWorks of Placements that the set no longer names. Each stays until
// the named Placements have decided, and until the ManifestWork that replaces it is applied. Otherwise,
// other names would remove the manifests from all clusters first. It returns what is retained and why;
// empty if nothing is.
func removeUnnamed(works []*workv1.ManifestWork, all []*placed, changes *changes) string {
	retained, why := 0, ""
	for _, work := range works {
		if reason := notReplaced(work.Namespace, all); reason != "" && work.DeletionTimestamp == nil {
			retained, why = retained+1, cmp.Or(why, reason)
			continue
		}
		changes.remove(work)
	}
	if retained == 0 {
		return ""
	}
	return fmt.Sprintf("%d ManifestWorks of Placements that are no longer named are retained until others replace them: %s", retained, why)
}

// notReplaced says why a cluster still needs the ManifestWork of a Placement that is no longer named;
// empty if it does not.
func notReplaced(cluster string, all []*placed) string {
	for _, p := range all {
		switch {
		case p.decided == nil:
			return fmt.Sprintf("there is no Placement %q", p.name)
		case p.decided.short != "":
			return fmt.Sprintf("Placement %q: %s", p.name, p.decided.short)
		case p.decided.clusters.Has(cluster) && !p.applied.Has(cluster):
			return fmt.Sprintf("the ManifestWork of Placement %q in namespace %q is not applied yet", p.name, cluster)
		}
	}
	return ""
}

// onePerCluster are the ManifestWorks of a Placement by cluster, and the surplus ones. Another
// controller may have created ManifestWorks with other names before. They are kept; if there are
// several, the one with our name, or otherwise the first.
func onePerCluster(set *workv1alpha1.ManifestWorkReplicaSet, placement string, works []*workv1.ManifestWork) (map[string]*workv1.ManifestWork, []*workv1.ManifestWork) {
	here := map[string]*workv1.ManifestWork{}
	var more []*workv1.ManifestWork
	for _, work := range works {
		if work.Labels[workv1alpha1.PlacementNameLabel] != naming.LabelValue(placement) {
			continue
		}
		before, errNotOwned := here[work.Namespace]
		switch {
		case !errNotOwned:
			here[work.Namespace] = work
		case work.Name == desiredName(set, placement, work.Namespace):
			here[work.Namespace], more = work, append(more, before)
		default:
			more = append(more, work)
		}
	}
	return here, more
}

func (r *Reconciler) writeStatus(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, status workv1alpha1.ManifestWorkReplicaSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	set.Status = status
	if err := r.Client.Status().Update(ctx, set); err != nil {
		return fmt.Errorf("writing the status of ManifestWorkReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

// errNotOwned refuses to overwrite a ManifestWork that is not the set's.
func errNotOwned(work client.Object) error {
	return refusal.New(workv1alpha1.ReasonNotAsExpected,
		"ManifestWork %s/%s is not of this ManifestWorkReplicaSet: rename one of the two, or delete it", work.GetNamespace(), work.GetName())
}

// isRefused is true for an error that only time or people can fix.
func isRefused(err error) bool {
	var no *refusal.Refusal
	return errors.As(err, &no)
}
