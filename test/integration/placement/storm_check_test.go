// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// check compares status, bindings, snapshots, Works and the members' objects with the wanted
// placements.
func (s *storm) check(ctx context.Context) error {
	settings := &corev1.ConfigMap{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: s.shop(), Name: "settings"}, settings); err != nil {
		return err
	}
	works := map[client.ObjectKey]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		of, err := s.checkPlacement(ctx, name, settings.Data["colour"])
		if err != nil {
			return fmt.Errorf("placement %s, which wants %+v: %w", name, *s.wanted[name], err)
		}
		for _, key := range of {
			works[key] = true
		}
	}
	return s.checkWorks(ctx, works)
}

// checkStrictly also requires that no ineligible member has a placement, because the policies changed
// after the members.
func (s *storm) checkStrictly(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		bindings, err := bindingsOf(ctx, name)
		if err != nil {
			return err
		}
		for member, b := range bindings {
			if m := s.members[member]; b.Spec.State != placementv1beta1.BindingUnscheduled && (m == nil || !m.fits(s.wanted[name])) {
				return fmt.Errorf("placement %s, which wants %+v, is on %s: %+v", name, *s.wanted[name], member, m)
			}
		}
	}
	return s.check(ctx)
}

// rolledOut is the progress of a placement's rollout.
type rolledOut struct {
	bindings map[string]placementv1beta1.ClusterResourceBinding
	// index is the index of the latest resource snapshot.
	index string
	// held is true while so few members are available that maxUnavailable forbids to remove or change
	// one. A PickN placement with too few members stays in that state, because missing members count as
	// unavailable.
	held bool
	// on have the placement, stale of them not the latest version, and leaving should lose it.
	on, stale, leaving []string
}

// checkPlacement returns the Works that must exist.
func (s *storm) checkPlacement(ctx context.Context, name, colour string) ([]client.ObjectKey, error) {
	r, err := s.look(ctx, name)
	if err != nil {
		return nil, err
	}
	var works []client.ObjectKey
	for member, b := range r.bindings {
		if err := s.checkMember(ctx, &b, name, colour, slices.Contains(r.on, member) && !slices.Contains(r.stale, member)); err != nil {
			return nil, err
		}
		works = append(works, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(member), Name: name + "-work"})
	}
	if err := s.checkChoice(name, r.on); err != nil {
		return nil, err
	}
	if !r.held && len(r.leaving)+len(r.stale) > 0 {
		return nil, fmt.Errorf("%v should lose it, and %v should have the latest version", r.leaving, r.stale)
	}
	return works, s.checkStatus(ctx, name, r)
}

// look sorts the bindings of a placement; all must be ready.
func (s *storm) look(ctx context.Context, name string) (*rolledOut, error) {
	r := &rolledOut{}
	var err error
	if r.bindings, err = bindingsOf(ctx, name); err != nil {
		return nil, err
	}
	if r.index, err = checkSnapshots(ctx, name); err != nil {
		return nil, err
	}
	for _, member := range slices.Sorted(maps.Keys(r.bindings)) {
		b := r.bindings[member]
		available := meta.FindStatusCondition(b.Status.Conditions, placementv1beta1.ConditionAvailable)
		ready := available != nil && available.Status == metav1.ConditionTrue && available.ObservedGeneration == b.Generation
		if s.members[member] == nil || b.DeletionTimestamp != nil || !ready || b.Spec.State == placementv1beta1.BindingScheduled {
			return nil, fmt.Errorf("binding to %s, member %+v: %s, ready %t, deleted %v", member, s.members[member], b.Spec.State, ready, b.DeletionTimestamp)
		}
		if b.Spec.State == placementv1beta1.BindingUnscheduled {
			r.leaving = append(r.leaving, member)
			continue
		}
		r.on = append(r.on, member)
		if b.Spec.ResourceSnapshotName != name+"-"+r.index+"-snapshot" {
			r.stale = append(r.stale, member)
		}
	}
	r.held, err = s.held(name, r)
	return r, err
}

func (s *storm) held(name string, r *rolledOut) (bool, error) {
	p := s.wanted[name]
	target := len(r.on)
	if p.n > 0 {
		target = int(p.n)
	}
	unavailable := intstr.FromString("100%")
	if p.careful {
		unavailable = intstr.FromString("25%")
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(&unavailable, target, true)
	return len(r.bindings) <= target-most, err
}

// checkMember checks the Work of a member, and the member's objects.
func (s *storm) checkMember(ctx context.Context, b *placementv1beta1.ClusterResourceBinding, name, colour string, latest bool) error {
	member := b.Spec.TargetCluster
	work, err := workOf(ctx, member, name)
	if err != nil {
		return fmt.Errorf("the Work on %s: %w", member, err)
	}
	wanted := manifestsOf(work)
	settings := wanted["ConfigMap "+s.shop()+"/settings"]
	if work.DeletionTimestamp != nil || len(wanted) != 4 || latest && !strings.Contains(settings, `"`+colour+`"`) {
		return fmt.Errorf("the Work on %s has not %q: deleted %v, %d manifests, settings %s", member, colour, work.DeletionTimestamp, len(wanted), settings)
	}
	of, from := work.Labels[placementv1beta1.ParentBindingLabel], work.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation]
	if of != b.Name || from != b.Spec.ResourceSnapshotName {
		return fmt.Errorf("the Work on %s has binding %s and snapshot %s, want %s and %s", member, of, from, b.Name, b.Spec.ResourceSnapshotName)
	}
	if has := s.ground.of(client.ObjectKeyFromObject(work)); !maps.Equal(has, wanted) {
		return fmt.Errorf("member %s has %v, its Work %v", member, has, wanted)
	}
	return nil
}

// checkChoice requires that the placement has the wanted number of members, or as many as possible.
func (s *storm) checkChoice(name string, on []string) error {
	p := s.wanted[name]
	if p.n > 0 && len(on) > int(p.n) {
		return fmt.Errorf("it is on too many members: %v", on)
	}
	for member, m := range s.members {
		if m.fits(p) && !slices.Contains(on, member) && (p.n == 0 || len(on) < int(p.n)) {
			return fmt.Errorf("it is on %v, and %s is eligible too", on, member)
		}
	}
	return nil
}

// checkSnapshots requires one latest snapshot of each kind, and returns the index of the resource
// snapshot.
func checkSnapshots(ctx context.Context, name string) (string, error) {
	mine := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name, placementv1beta1.IsLatestSnapshotLabel: "true"}
	var policies placementv1beta1.ClusterSchedulingPolicySnapshotList
	var resources placementv1beta1.ClusterResourceSnapshotList
	if err := hub.List(ctx, &policies, mine); err != nil {
		return "", err
	}
	if err := hub.List(ctx, &resources, mine); err != nil {
		return "", err
	}
	if len(policies.Items) != 1 || len(resources.Items) != 1 {
		return "", fmt.Errorf("%d policy snapshots and %d resource snapshots are the latest", len(policies.Items), len(resources.Items))
	}
	return resources.Items[0].Labels[placementv1beta1.ResourceIndexLabel], nil
}

const notStarted = "RolloutStarted=False/RolloutNotStartedYet"

func (s *storm) checkStatus(ctx context.Context, name string, r *rolledOut) error {
	crp, err := statusOf(ctx, name)
	if err != nil {
		return err
	}
	var told []string
	missing := 0
	for _, m := range crp.Status.PlacementStatuses {
		if m.ClusterName == "" {
			missing++
			continue
		}
		told = append(told, m.ClusterName)
		want := memberTrue
		if slices.Contains(r.stale, m.ClusterName) {
			want = []string{memberTrue[0], notStarted}
		}
		if conditions := brief(m.Conditions, "", crp.Generation); !slices.Equal(conditions, want) {
			return fmt.Errorf("its status has %v for %s", conditions, m.ClusterName)
		}
	}
	slices.Sort(told)
	short := max(0, int(s.wanted[name].n)-len(r.on))
	if !slices.Equal(told, r.on) || missing > short || crp.Status.ObservedResourceIndex != r.index {
		return fmt.Errorf("it is on %v, %d too few, at resources %s, and its status has %v, %d, %s", r.on, short, r.index, told, missing, crp.Status.ObservedResourceIndex)
	}
	want := slices.Clone(allTrue)
	if short > 0 {
		want[0] = "Scheduled=False/SchedulingPolicyUnfulfilled"
	}
	switch {
	case len(r.on) == 0:
		want = want[:1]
	case len(r.stale) > 0:
		want = []string{want[0], notStarted}
	}
	if conditions := brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation); !slices.Equal(conditions, want) {
		return fmt.Errorf("its status has %v, want %v", conditions, want)
	}
	return nil
}

// checkWorks requires exactly these Works, and that members have only objects of Works.
func (s *storm) checkWorks(ctx context.Context, wanted map[client.ObjectKey]bool) error {
	there := map[string]bool{}
	for _, member := range s.all() {
		var works placementv1beta1.WorkList
		if err := hub.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member))); err != nil {
			return err
		}
		for i := range works.Items {
			key := client.ObjectKeyFromObject(&works.Items[i])
			there[key.String()] = true
			// The Works of a member that left are deleted with its namespace, which is not part of
			// placement.
			if s.members[member] != nil && (!wanted[key] || works.Items[i].DeletionTimestamp != nil) {
				return fmt.Errorf("work %s of binding %s still exists", key, works.Items[i].Labels[placementv1beta1.ParentBindingLabel])
			}
		}
	}
	for _, key := range s.ground.all() {
		if !there[key] {
			return fmt.Errorf("a member still has objects of the deleted work %s", key)
		}
	}
	return nil
}
