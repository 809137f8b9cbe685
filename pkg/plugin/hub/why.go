// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
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

// WhyPlacement reads what package why wants to know of a placement, or of it on one member.
func (h *Hub) WhyPlacement(ctx context.Context, name, member string, clock clock.PassiveClock) (*why.Facts, error) {
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
		_, err := h.Member(ctx, member)
		return nil, errors.Join(err)
	}
	f.Evictions = evictions.Items
	return f, refuse(f, clock)
}

// refuse asks the scheduler's own rules why members are not picked.
func refuse(f *why.Facts, clock clock.PassiveClock) error {
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

// WhyObject reads what package why wants to know of an object on a member: from the hub
// where it comes from, from the member itself who wrote it.
func (h *Hub) WhyObject(ctx context.Context, kind, namespace, name, member string) (*why.ObjectFacts, error) {
	if _, err := h.Member(ctx, member); err != nil {
		return nil, err
	}
	var works placementv1beta1.WorkList
	if err := h.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member))); err != nil {
		return nil, fmt.Errorf("listing the Works of member %q: %w", member, err)
	}
	f := &why.ObjectFacts{Kind: kind, Namespace: namespace, Name: name, Member: member, Works: works.Items, PlacementOf: PlacementOfWork}
	if finds := f.Finds(); len(finds) > 0 {
		id := finds[0].Manifest.Identifier
		f.Fields, f.Unread = h.fieldsOf(ctx, member, &id)
	}
	return f, nil
}

// fieldsOf asks the member itself, through the hub, who has written an object.
func (h *Hub) fieldsOf(ctx context.Context, member string, id *placementv1beta1.WorkResourceIdentifier) ([]metav1.ManagedFieldsEntry, error) {
	asker, err := metadata.NewForConfig(h.MemberConfig(member))
	if err != nil {
		return nil, err
	}
	object, err := asker.Resource(schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.ManagedFields, nil
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
