// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/memberconfig"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
	"fleetgate.io/fleetgate/pkg/placement/simulate"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// WhyPlacement reads what package why wants to know of a placement, or of it on one member, but
// for refusals.
func (h *Hub) WhyPlacement(ctx context.Context, name, member string) (*why.Facts, error) {
	placement, err := h.Placement(ctx, name)
	if err != nil {
		return nil, err
	}
	f := &why.Facts{Placement: placement, Name: NameOf(placement), Member: member, Refusals: map[string]why.Refusal{}}
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	err = together(ctx,
		func(ctx context.Context) (err error) { f.Bindings, err = h.BindingsOf(ctx, placement); return err },
		func(ctx context.Context) (err error) { f.Members, err = h.Members(ctx); return err },
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
	if member != "" && !slices.ContainsFunc(f.Members, func(m clusterv1beta1.MemberCluster) bool { return m.Name == member }) {
		late, err := h.Member(ctx, member)
		if err != nil {
			return nil, err
		}
		f.Members = append(f.Members, *late) // It has come since they were listed.
	}
	f.Evictions = evictions.Items
	return f, nil
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
	member := &clusterv1beta1.MemberCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, member)
	if err == nil {
		f.Member = member
		gateway := &gatewayv1alpha1.ClusterGateway{}
		if err := h.Get(ctx, client.ObjectKey{Name: name}, gateway); err == nil {
			f.Tunnel = &gateway.Status
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	var registrations registrationv1alpha1.ClusterRegistrationList
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	var clusters registrationv1alpha1.ClusterList
	for _, list := range []client.ObjectList{&registrations, &tokens, &clusters} {
		// Who may not read registrations is told of the member alone.
		if err := h.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("listing registrations: %w", err)
		}
	}
	f.Registrations, f.Tokens = registrations.Items, tokens.Items
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Name == name || c.Annotations[clusterv1beta1.LabelMember] == name {
			f.Cluster = c
		}
	}
	return f, nil
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
