// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
)

// WhyObject reads the facts about an object on a member: its origin from the hub, its field managers
// from the member. Kind is a resource argument as for kubectl: deploy, deployments.apps or
// Deployment.
func (h *Hub) WhyObject(ctx context.Context, kind, namespace, name, member string) (*explain.ObjectFacts, error) {
	if _, err := h.Member(ctx, member); err != nil {
		return nil, err
	}
	var works placementv1beta1.WorkList
	if err := h.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member))); err != nil {
		return nil, fmt.Errorf("listing the Works of member %q: %w", member, err)
	}
	f := &explain.ObjectFacts{Kind: kind, Namespace: namespace, Name: name, Member: member, Works: works.Items, PlacementOf: PlacementOfWork}
	mapping, err := h.kindOf(member, kind)
	switch {
	case err == nil:
		f.Mapping = mapping
		f.Fields, f.Unread = h.fieldsOf(ctx, f)
	case meta.IsNoMatchError(err) && len(f.Finds()) == 0:
		return nil, fmt.Errorf("neither member %q nor the hub has a kind %q: list the kinds with kubectl api-resources", member, kind)
	default:
		f.Unread = err
	}
	return f, nil
}

// Knows reports whether the hub has a kind of that name.
func (h *Hub) Knows(kind string) bool {
	_, err := mappingOf(h.RESTMapper(), kind)
	return err == nil
}

// kindOf resolves a resource argument on the member, or else on the hub: Works can describe objects
// of a member that is unreachable or lacks the kind.
func (h *Hub) kindOf(member, kind string) (*meta.RESTMapping, error) {
	mapping, err := h.kindOfMember(member, kind)
	if err == nil {
		return mapping, nil
	}
	if mapping, hubErr := mappingOf(h.RESTMapper(), kind); hubErr == nil {
		return mapping, nil
	}
	return nil, err
}

func (h *Hub) kindOfMember(member, kind string) (*meta.RESTMapping, error) {
	config := rest.CopyConfig(h.MemberConfig(member))
	config.Timeout = memberTimeout
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", member, err)
	}
	groups, err := restmapper.GetAPIGroupResources(discoveryClient)
	if err != nil {
		return nil, fmt.Errorf("discovering the kinds of member %q: %w", member, err)
	}
	return mappingOf(restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), discoveryClient, nil), kind)
}

// mappingOf resolves a resource argument as kubectl does: a resource, a kind or a short name, with or
// without group and version.
func mappingOf(mapper meta.RESTMapper, argument string) (*meta.RESTMapping, error) {
	versioned, plain := schema.ParseResourceArg(strings.ToLower(argument))
	if versioned != nil {
		if kind, err := mapper.KindFor(*versioned); err == nil {
			return mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
	}
	kind, err := mapper.KindFor(plain.WithVersion(""))
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// fieldsOf reads the field managers of an object from the member, through the hub.
func (h *Hub) fieldsOf(ctx context.Context, f *explain.ObjectFacts) ([]metav1.ManagedFieldsEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	metadataClient, err := metadata.NewForConfig(h.MemberConfig(f.Member))
	if err != nil {
		return nil, err
	}
	namespace := f.Namespace
	if f.Mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	object, err := metadataClient.Resource(f.Mapping.Resource).Namespace(namespace).Get(ctx, f.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.ManagedFields, nil
}
