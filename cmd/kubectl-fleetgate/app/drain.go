// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

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
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// retryEvictionAfter is the pause before an eviction that a budget has blocked is tried again.
const retryEvictionAfter = 5 * time.Second

type drainOptions struct {
	*session
	Timeout time.Duration
}

func newDrainCommand(s *session) *cobra.Command {
	o := &drainOptions{session: s}
	command := &cobra.Command{
		Use:   "drain MEMBER",
		Short: "Cordon a member and evict its placements",
		Long: `Cordon the member and evict its ClusterResourcePlacements, with one eviction for each.
Evictions that a disruption budget blocks are retried until --timeout. The command lists
the placements that cannot be evicted: those of type PickFixed, which name their members,
and ResourcePlacements, for which evictions do not exist.`,
		Example:           "  kubectl fleetgate drain member-1 --timeout=10m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE:              s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error { return o.run(ctx, h, args[0]) }),
	}
	command.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to retry evictions and to wait until the member has removed the resources.")
	return command
}

func (o *drainOptions) run(ctx context.Context, h *overview.Hub, name string) error {
	if err := h.ChangeTaints(ctx, name, func(taints []clusterv1beta1.Taint) []clusterv1beta1.Taint { return withTaint(taints, cordoned()) }); err != nil {
		return err
	}
	o.printf("member %s cordoned\n", name)
	d := &draining{drainOptions: o, hub: h, member: name, evictions: map[string]*eviction{}, remaining: map[string]string{}}
	if err := o.await(ctx, o.Timeout, d.step); err != nil {
		return fmt.Errorf("draining member %q: %w", name, err)
	}
	if len(d.remaining) > 0 {
		for _, placement := range slices.Sorted(maps.Keys(d.remaining)) {
			o.printf("placement %s not evicted: %s\n", placement, d.remaining[placement])
		}
		return fmt.Errorf("member %q is not empty: %d placements remain", name, len(d.remaining))
	}
	o.printf("member %s drained\n", name)
	return nil
}

// draining is a drain in progress.
type draining struct {
	*drainOptions
	hub    *overview.Hub
	member string
	// evictions are by placement; remaining is why a placement cannot be evicted.
	evictions map[string]*eviction
	remaining map[string]string
}

// eviction is one that the drain creates.
type eviction struct {
	name string
	// created is when; zero until then.
	created time.Time
	// executed is true once the gateway has executed it.
	executed bool
}

// step creates the evictions that are missing, and returns what the drain waits for.
func (d *draining) step(ctx context.Context) (bool, string, error) {
	placed, err := d.hub.PlacedOn(ctx, d.member)
	if err != nil {
		return false, "", err
	}
	var waiting []string
	seen := map[string]bool{}
	for _, p := range placed {
		if seen[p.Placement] || p.Placement == "" || d.remaining[p.Placement] != "" {
			continue
		}
		seen[p.Placement] = true
		why, err := d.evict(ctx, p.Placement)
		if err != nil {
			return false, "", err
		}
		if why != "" {
			waiting = append(waiting, p.Placement+": "+why)
		}
	}
	if len(waiting) == 0 {
		return true, "", nil
	}
	return false, fmt.Sprintf("%d placements remain on member %q, first %s", len(waiting), d.member, waiting[0]), nil
}

// evict creates the eviction of one placement, reads its result and retries it. It returns what
// the placement waits for; empty if it cannot be evicted, which remaining then explains.
func (d *draining) evict(ctx context.Context, placement string) (waitsFor string, err error) {
	if strings.Contains(placement, "/") {
		d.remaining[placement] = "evictions do not support ResourcePlacements; delete the placement, or change its policy to select other members"
		return "", nil
	}
	e := d.evictions[placement]
	if e == nil {
		// The name is chosen before the object is created, so that a creation whose response was
		// lost is not repeated.
		e = &eviction{name: "drain-" + d.member + "-" + rand.String(8)}
		d.evictions[placement] = e
	}
	if e.created.IsZero() {
		object := &placementv1beta1.ClusterResourcePlacementEviction{
			ObjectMeta: metav1.ObjectMeta{Name: e.name},
			Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: d.member},
		}
		if err := d.hub.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("evicting placement %q from member %q: %w", placement, d.member, err)
		}
		e.created = d.Clock.Now()
		return waitsForGateway, nil
	}
	if e.executed {
		return waitsForRemoval, nil
	}
	object := &placementv1beta1.ClusterResourcePlacementEviction{}
	if err := d.hub.Get(ctx, client.ObjectKey{Name: e.name}, object); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading eviction %q: %w", e.name, err)
	}
	return d.evaluate(ctx, placement, e, object)
}

// What an eviction waits for.
const (
	waitsForGateway = "the gateway has not processed the eviction yet"
	waitsForRemoval = "the member is removing the resources"
)

func (d *draining) evaluate(ctx context.Context, placement string, e *eviction, object *placementv1beta1.ClusterResourcePlacementEviction) (string, error) {
	valid := meta.FindStatusCondition(object.Status.Conditions, placementv1beta1.ConditionEvictionValid)
	executed := meta.FindStatusCondition(object.Status.Conditions, placementv1beta1.ConditionEvictionExecuted)
	switch {
	case valid != nil && valid.Status == metav1.ConditionFalse:
		d.remaining[placement] = valid.Message
		return "", nil
	case executed == nil:
		return waitsForGateway, nil
	case executed.Status == metav1.ConditionTrue:
		e.executed = true
		d.printf("placement %s evicted\n", placement)
		return waitsForRemoval, nil
	case d.Clock.Since(e.created) > retryEvictionAfter:
		// The result of an eviction is final: a retry needs another object.
		if err := d.hub.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting eviction %q: %w", e.name, err)
		}
		delete(d.evictions, placement)
	}
	return executed.Message, nil
}
