// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// askAgainAfter is how long a budget that said no is left alone.
const askAgainAfter = 5 * time.Second

type drainOptions struct {
	*session
	Timeout time.Duration
}

func newDrainCommand(s *session) *cobra.Command {
	o := &drainOptions{session: s}
	command := &cobra.Command{
		Use:   "drain MEMBER",
		Short: "Move what is placed on a member to others, within the budgets",
		Long: `Drain cordons the member and evicts its ClusterResourcePlacements, one eviction for
each. A disruption budget that says no is asked again until --timeout. What cannot be
evicted is told at the end: placements that name their members (PickFixed), and
ResourcePlacements, which have no evictions.`,
		Example:           "  kubectl fleetgate drain member-1 --timeout=10m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE:              s.onHub(func(ctx context.Context, h *hub.Hub, args []string) error { return o.run(ctx, h, args[0]) }),
	}
	command.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to ask budgets again, and to wait until the member has let go.")
	return command
}

func (o *drainOptions) run(ctx context.Context, h *hub.Hub, name string) error {
	if err := h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, cordoned()) }); err != nil {
		return err
	}
	o.say("member %s cordoned\n", name)
	d := &draining{drainOptions: o, hub: h, member: name, asked: map[string]*asked{}, left: map[string]string{}}
	if err := o.await(ctx, o.Timeout, d.step); err != nil {
		return fmt.Errorf("draining member %q: %w", name, err)
	}
	if len(d.left) > 0 {
		for _, placement := range slices.Sorted(maps.Keys(d.left)) {
			o.say("placement %s stays: %s\n", placement, d.left[placement])
		}
		return fmt.Errorf("member %q is not empty: %d placements stay", name, len(d.left))
	}
	o.say("member %s drained\n", name)
	return nil
}

// draining is a drain under way.
type draining struct {
	*drainOptions
	hub    *hub.Hub
	member string
	// asked are the evictions by placement; left is why a placement cannot be evicted.
	asked map[string]*asked
	left  map[string]string
}

// asked is an eviction, and when it was made; zero until it was.
type asked struct {
	eviction string
	at       time.Time
	// done is true once it was executed.
	done bool
}

// step asks for what has not been asked for, and says what is still there.
func (d *draining) step(ctx context.Context) (bool, string, error) {
	placed, err := d.hub.PlacedOn(ctx, d.member)
	if err != nil {
		return false, "", err
	}
	var waits []string
	seen := map[string]bool{}
	for _, p := range placed {
		if seen[p.Placement] || p.Placement == "" || d.left[p.Placement] != "" {
			continue
		}
		seen[p.Placement] = true
		why, err := d.evict(ctx, p.Placement)
		if err != nil {
			return false, "", err
		}
		if why != "" {
			waits = append(waits, p.Placement+": "+why)
		}
	}
	if len(waits) == 0 {
		return true, "", nil
	}
	return false, fmt.Sprintf("%d placements are on member %q, first %s", len(waits), d.member, waits[0]), nil
}

// evict looks after one placement: asks, reads the answer, asks again. It returns what the
// placement waits for; empty if it cannot be evicted, which is in left then.
func (d *draining) evict(ctx context.Context, placement string) (waitsFor string, err error) {
	if strings.Contains(placement, "/") {
		d.left[placement] = "it is a ResourcePlacement, which has no evictions: delete it, or have its policy choose other members"
		return "", nil
	}
	a := d.asked[placement]
	if a == nil {
		// It has a name before it is made: one that was made without our hearing of it is not
		// made twice.
		a = &asked{eviction: "drain-" + d.member + "-" + rand.String(8)}
		d.asked[placement] = a
	}
	if a.at.IsZero() {
		eviction := &placementv1beta1.ClusterResourcePlacementEviction{
			ObjectMeta: metav1.ObjectMeta{Name: a.eviction},
			Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: d.member},
		}
		if err := d.hub.Create(ctx, eviction); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("evicting placement %q from member %q: %w", placement, d.member, err)
		}
		a.at = d.Clock.Now()
		return "the gateway has not answered", nil
	}
	if a.done {
		return "the member takes it away", nil
	}
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{}
	if err := d.hub.Get(ctx, client.ObjectKey{Name: a.eviction}, eviction); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading eviction %q: %w", a.eviction, err)
	}
	return d.answer(ctx, placement, a, eviction)
}

func (d *draining) answer(ctx context.Context, placement string, a *asked, eviction *placementv1beta1.ClusterResourcePlacementEviction) (string, error) {
	valid := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionEvictionValid)
	executed := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionEvictionExecuted)
	switch {
	case valid != nil && valid.Status == metav1.ConditionFalse:
		d.left[placement] = valid.Message
		return "", nil
	case executed == nil:
		return "the gateway has not answered", nil
	case executed.Status == metav1.ConditionTrue:
		a.done = true
		d.say("placement %s evicted\n", placement)
		return "the member takes it away", nil
	case d.Clock.Since(a.at) > askAgainAfter:
		// An answer is for good: another question is another object.
		if err := d.hub.Delete(ctx, eviction); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("removing eviction %q: %w", a.eviction, err)
		}
		delete(d.asked, placement)
	}
	return executed.Message, nil
}
