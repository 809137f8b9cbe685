// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/simulate"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
)

// WhyPlacement reads the facts about a placement, or about a placement on one member, without the
// refusals. If the placement is bound to that member, it reads no other members.
func (h *Hub) WhyPlacement(ctx context.Context, name, member string) (*explain.Facts, error) {
	f := &explain.Facts{Name: name, Member: member, Refusals: map[string]explain.Refusal{}}
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	err := together(ctx,
		func(ctx context.Context) (err error) { f.Placement, err = h.Placement(ctx, name); return err },
		func(ctx context.Context) (err error) {
			if f.Bindings, err = objects.LiveBindings(ctx, h, keyOf(name)); err == nil && member != "" {
				f.Members, err = h.membersFor(ctx, f)
			}
			return err
		},
		func(ctx context.Context) (err error) {
			if member == "" {
				f.Members, err = h.Members(ctx)
			}
			return err
		},
		func(ctx context.Context) error {
			// Evictions are optional: the user may lack permission to read them.
			if err := h.List(ctx, &evictions); err != nil && !apierrors.IsForbidden(err) {
				return fmt.Errorf("listing evictions: %w", err)
			}
			return nil
		},
	)
	if err != nil {
		return nil, err
	}
	f.Evictions = evictions.Items
	f.Removals, err = h.removals(ctx, f)
	return f, err
}

// removals are what Works say of objects that are not gone, where a placement leaves members.
func (h *Hub) removals(ctx context.Context, f *explain.Facts) ([]explain.Removal, error) {
	if f.Placement.GetDeletionTimestamp() == nil && !slices.ContainsFunc(f.Bindings, func(b placementv1beta1.BindingObject) bool {
		return b.GetDeletionTimestamp() != nil || b.GetSpec().State == placementv1beta1.BindingUnscheduled
	}) {
		return nil, nil
	}
	var works placementv1beta1.WorkList
	// A user without the right to read Works gets the rest of the answer.
	err := h.List(ctx, &works, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: f.Placement.GetName()})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	var all []explain.Removal
	for i := range works.Items {
		w := &works.Items[i]
		member, _ := clusterv1beta1.MemberOfNamespace(w.Namespace)
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionRemoved)
		if c != nil && w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] == f.Placement.GetNamespace() && (f.Member == "" || f.Member == member) {
			all = append(all, explain.Removal{Member: member, Message: c.Message})
		}
	}
	return all, nil
}

// membersFor returns the members that matter for an answer about one: only that one if the placement
// is bound to it, else all, since the scheduler chooses among them.
func (h *Hub) membersFor(ctx context.Context, f *explain.Facts) ([]clusterv1beta1.MemberCluster, error) {
	one, err := h.Member(ctx, f.Member)
	if err != nil {
		return nil, err
	}
	if f.Bound() {
		return []clusterv1beta1.MemberCluster{*one}, nil
	}
	all, err := h.Members(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(m clusterv1beta1.MemberCluster) bool { return m.Name == f.Member }) {
		all = append(all, *one) // It was deleted in between.
	}
	return all, nil
}

// Refuse runs the scheduler to find out why members are not selected. It is slow for many members.
func Refuse(f *explain.Facts, clock clock.PassiveClock) error {
	input := &simulate.Input{Placements: []placementv1beta1.PlacementObject{f.Placement}, Members: f.Members, Bindings: f.Bindings}
	results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: clock.Now()})
	if err != nil {
		return fmt.Errorf("simulating the scheduling decision: %w", err)
	}
	for _, result := range results {
		for _, c := range result.Clusters {
			if !c.Selected {
				f.Refusals[c.Name] = explain.Refusal{Rule: c.Rule, Reason: c.Reason}
			}
		}
	}
	return nil
}

// WhyMember reads the facts about a member, or about a name that no member has.
func (h *Hub) WhyMember(ctx context.Context, name string) (*explain.MemberFacts, error) {
	f := &explain.MemberFacts{Name: name}
	var registrations registrationv1alpha1.ClusterRegistrationList
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	var clusters registrationv1alpha1.ClusterList
	reads := []func(context.Context) error{func(ctx context.Context) (err error) {
		f.Member, f.Tunnel, err = h.memberWithTunnel(ctx, name)
		return err
	}}
	for _, list := range []client.ObjectList{&registrations, &tokens, &clusters} {
		reads = append(reads, func(ctx context.Context) error {
			// Registrations are optional: the user may lack permission to read them.
			if err := h.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
				return fmt.Errorf("listing registrations: %w", err)
			}
			return nil
		})
	}
	if err := together(ctx, reads...); err != nil {
		return nil, err
	}
	f.Registrations, f.Tokens = registrations.Items, tokens.Items
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Name == name || c.Annotations[clusterv1beta1.LabelMember] == name {
			f.Cluster = c
		}
	}
	return f, nil
}

// memberWithTunnel reads a member and the gateway's status of its tunnel. Each is nil if it does not
// exist or, for the tunnel, could not be read.
func (h *Hub) memberWithTunnel(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, *gatewayv1alpha1.ClusterGatewayStatus, error) {
	member := &clusterv1beta1.MemberCluster{}
	if err := h.Get(ctx, client.ObjectKey{Name: name}, member); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	gateway := &gatewayv1alpha1.ClusterGateway{}
	if err := h.Get(ctx, client.ObjectKey{Name: name}, gateway); err != nil {
		//lint:ignore nilerr An unreachable gateway is shown as such.
		return member, nil, nil
	}
	return member, &gateway.Status, nil
}

// MemberConfig is the configuration for a member through the hub, with the same credentials.
func (h *Hub) MemberConfig(member string) *rest.Config {
	return LeadTo(h.Config, memberconfig.Target{Name: member})
}

// LeadTo changes a configuration for the hub into one for a member or a view.
func LeadTo(config *rest.Config, to memberconfig.Target) *rest.Config {
	config = rest.CopyConfig(config)
	behindHub, _ := to.Paths()
	config.Host = strings.TrimSuffix(config.Host, "/") + behindHub
	return config
}
