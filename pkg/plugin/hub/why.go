// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

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
	"fleetgate.io/fleetgate/pkg/memberconfig"
	"fleetgate.io/fleetgate/pkg/placement/family"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/simulate"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// WhyPlacement reads what package why wants to know of a placement, or of it on one member, but
// for refusals. Of the members it reads only that one where the placement is there.
func (h *Hub) WhyPlacement(ctx context.Context, name, member string) (*why.Facts, error) {
	f := &why.Facts{Name: name, Member: member, Refusals: map[string]why.Refusal{}}
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	err := together(ctx,
		func(ctx context.Context) (err error) { f.Placement, err = h.Placement(ctx, name); return err },
		func(ctx context.Context) (err error) {
			if f.Bindings, err = family.LiveBindings(ctx, h, keyOf(name)); err == nil && member != "" {
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
			// Who may not read evictions is told all but what they say.
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
func (h *Hub) removals(ctx context.Context, f *why.Facts) ([]why.Removal, error) {
	if f.Placement.GetDeletionTimestamp() == nil && !slices.ContainsFunc(f.Bindings, func(b placementv1beta1.BindingObject) bool {
		return b.GetDeletionTimestamp() != nil || b.GetSpec().State == placementv1beta1.BindingUnscheduled
	}) {
		return nil, nil
	}
	var works placementv1beta1.WorkList
	// Who may not read Works is told all but what they say.
	err := h.List(ctx, &works, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: f.Placement.GetName()})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	var all []why.Removal
	for i := range works.Items {
		w := &works.Items[i]
		member, _ := clusterv1beta1.MemberOfNamespace(w.Namespace)
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionRemoved)
		if c != nil && w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] == f.Placement.GetNamespace() && (f.Member == "" || f.Member == member) {
			all = append(all, why.Removal{Member: member, Message: c.Message})
		}
	}
	return all, nil
}

// membersFor are the members that there is to know of for an answer about one: that itself, and
// where the placement is not there all, since the scheduler chooses among them.
func (h *Hub) membersFor(ctx context.Context, f *why.Facts) ([]clusterv1beta1.MemberCluster, error) {
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
		all = append(all, *one) // It has gone since.
	}
	return all, nil
}

// Refuse asks the scheduler's own rules why members are not picked. Of many members that
// takes a while.
func Refuse(f *why.Facts, clock clock.PassiveClock) error {
	input := &simulate.Input{Placements: []placementv1beta1.PlacementObject{f.Placement}, Members: f.Members, Bindings: f.Bindings}
	results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: clock.Now()})
	if err != nil {
		return fmt.Errorf("asking the scheduler's rules: %w", err)
	}
	for _, result := range results {
		for _, c := range result.Clusters {
			if !c.Selected {
				f.Refusals[c.Name] = why.Refusal{Rule: c.Rule, Reason: c.Reason}
			}
		}
	}
	return nil
}

// WhyMember reads what package why wants to know of a member, or of a name that no member has.
func (h *Hub) WhyMember(ctx context.Context, name string) (*why.MemberFacts, error) {
	f := &why.MemberFacts{Name: name}
	var registrations registrationv1alpha1.ClusterRegistrationList
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	var clusters registrationv1alpha1.ClusterList
	reads := []func(context.Context) error{func(ctx context.Context) (err error) {
		f.Member, f.Tunnel, err = h.memberWithTunnel(ctx, name)
		return err
	}}
	for _, list := range []client.ObjectList{&registrations, &tokens, &clusters} {
		reads = append(reads, func(ctx context.Context) error {
			// Who may not read registrations is told of the member alone.
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

// memberWithTunnel reads a member and what the gateway says of its tunnel; nil for what is not
// there, or not said.
func (h *Hub) memberWithTunnel(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, *gatewayv1alpha1.ClusterGatewayStatus, error) {
	member := &clusterv1beta1.MemberCluster{}
	if err := h.Get(ctx, client.ObjectKey{Name: name}, member); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	gateway := &gatewayv1alpha1.ClusterGateway{}
	if err := h.Get(ctx, client.ObjectKey{Name: name}, gateway); err != nil {
		//lint:ignore nilerr A gateway that is away is something to show.
		return member, nil, nil
	}
	return member, &gateway.Status, nil
}

// MemberConfig leads to a member, through the hub, as the same user.
func (h *Hub) MemberConfig(member string) *rest.Config {
	return LeadTo(h.Config, memberconfig.Target{Name: member})
}

// LeadTo changes a configuration for the hub so that it leads to a member, or to many.
func LeadTo(config *rest.Config, to memberconfig.Target) *rest.Config {
	config = rest.CopyConfig(config)
	behindHub, _ := to.Paths()
	config.Host = strings.TrimSuffix(config.Host, "/") + behindHub
	return config
}
