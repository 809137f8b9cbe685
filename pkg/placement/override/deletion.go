// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// An author who writes a rule of type Delete requests the deletion on the members that it selects then.
// A label that changes later can make the rule select other members, and the user who changes it may be
// unaware of the override. So a snapshot records the members that were requested.

// maxRecorded limits the record to half of what an object's annotations may hold. Without a record, all
// deletions of the snapshot's rules with a label selector count as caused by labels.
const maxRecorded = 128 << 10

func deletesOn(snapshot client.Object) sets.Set[string] {
	recorded := snapshot.GetAnnotations()[placementv1beta1.DeletesOnAnnotation]
	if recorded == "" {
		return nil
	}
	return sets.New(strings.Split(recorded, ",")...)
}

// DeletedByLabels returns those of a placement's resources that the overrides delete on a member only
// since its labels changed.
func (s Set) DeletedByLabels(member Member, resources []placementv1beta1.ResourceIdentifier) ([]placementv1beta1.ResourceIdentifier, error) {
	var requested, byLabels Set
	for _, o := range s {
		deletes, byLabel, err := o.deletes(member)
		switch {
		case err != nil:
			return nil, err
		case deletes && byLabel && !o.deletesOn.Has(member.Name):
			byLabels = append(byLabels, o)
		case deletes:
			requested = append(requested, o)
		}
	}
	var all []placementv1beta1.ResourceIdentifier
	for _, id := range resources {
		concerns := func(o Override) bool { return o.concerns(id) }
		if slices.ContainsFunc(byLabels, concerns) && !slices.ContainsFunc(requested, concerns) {
			all = append(all, id)
		}
	}
	return all, nil
}

// deletes reports whether a rule of type Delete selects the member, and whether only by its labels. A
// rule that selects every member does not depend on them.
func (o Override) deletes(member Member) (deletes, byLabel bool, err error) {
	rules, err := o.rulesFor(member)
	byLabel = true
	for _, rule := range rules {
		if rule.OverrideType == placementv1beta1.DeleteOverrideType {
			deletes = true
			byLabel = byLabel && len(rule.ClusterSelector.ClusterSelectorTerms) > 0
		}
	}
	return deletes, deletes && byLabel, err
}

// recordDeletions notes in a new snapshot on which members its author requests deletions.
func recordDeletions(ctx context.Context, reader client.Reader, snapshot client.Object, o Override) error {
	if !slices.ContainsFunc(o.rules, func(rule placementv1beta1.OverrideRule) bool {
		return rule.OverrideType == placementv1beta1.DeleteOverrideType
	}) {
		return nil
	}
	var members clusterv1beta1.MemberClusterList
	if err := reader.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the members on which override snapshot %q deletes: %w", o.Snapshot, err)
	}
	names := sets.New[string]()
	for i := range members.Items {
		member := &members.Items[i]
		if _, byLabel, err := o.deletes(Member{Name: member.Name, Labels: member.Labels}); err == nil && byLabel {
			names.Insert(member.Name)
		}
	}
	record(snapshot, names)
	return nil
}

func record(snapshot client.Object, members sets.Set[string]) {
	text := strings.Join(sets.List(members), ",")
	if len(text) == 0 || len(text) > maxRecorded {
		return
	}
	reconcileutil.SetAnnotation(snapshot, placementv1beta1.DeletesOnAnnotation, text)
}

// Confirm records in the snapshots of the overrides that a user confirmed their deletions on members.
func (s Set) Confirm(ctx context.Context, c client.Client, members []Member) error {
	return s.note(ctx, c, members, func(o Override, snapshot client.Object, names []string) {
		record(snapshot, o.deletesOn.Union(sets.New(names...)))
		delete(snapshot.GetAnnotations(), placementv1beta1.RecentRemovalsAnnotation) // The user knows of these.
	})
}

// NoteDeletion records in the snapshots of the overrides that they delete on a member now because its
// labels changed. The next such deletion counts it.
func (s Set) NoteDeletion(ctx context.Context, c client.Client, member Member, now time.Time) error {
	return s.note(ctx, c, []Member{member}, func(_ Override, snapshot client.Object, names []string) {
		recent := placementv1beta1.ParseRecentRemovals(snapshot.GetAnnotations()[placementv1beta1.RecentRemovalsAnnotation], now)
		recent.Add(now, names...)
		reconcileutil.SetAnnotation(snapshot, placementv1beta1.RecentRemovalsAnnotation, recent.String())
	})
}

// DeletedRecently are those of the members on which the overrides deleted recently because labels
// changed.
func (s Set) DeletedRecently(members []string, now time.Time) sets.Set[string] {
	all := sets.New[string]()
	for _, o := range s {
		recent := placementv1beta1.ParseRecentRemovals(o.recent, now)
		for _, member := range members {
			if recent.Has(member) {
				all.Insert(member)
			}
		}
	}
	return all
}

// note changes the snapshots of the overrides that delete on some of the members only because labels
// changed. A snapshot that was deleted meanwhile deletes nothing more.
func (s Set) note(ctx context.Context, c client.Client, members []Member, change func(o Override, snapshot client.Object, names []string)) error {
	for _, o := range s {
		var names []string
		for _, member := range members {
			if _, byLabel, err := o.deletes(member); err == nil && byLabel && !o.deletesOn.Has(member.Name) {
				names = append(names, member.Name)
			}
		}
		if len(names) == 0 {
			continue
		}
		snapshot := namespaced().emptySnapshot()
		if o.Snapshot.Namespace == "" {
			snapshot = clusterScoped().emptySnapshot()
		}
		err := c.Get(ctx, o.Snapshot, snapshot)
		if err == nil {
			err = reconcileutil.Patch(ctx, c, snapshot, func() { change(o, snapshot, names) },
				"recording deletions in override snapshot %q", o.Snapshot)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
