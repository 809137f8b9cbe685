// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
)

// Kind is a kind that can be listed across members.
type Kind struct {
	// Name is in the form of kubectl api-resources: pods, deployments.apps.
	Name string
	// Path is that of its group and version, such as api/v1 or apis/apps/v1.
	Path string
	// Resource is the last part of the path to a list.
	Resource   string
	Namespaced bool
}

// FleetKinds lists the kinds that any member serves, from the view of the whole fleet, by name.
func (h *Hub) FleetKinds(ctx context.Context) ([]Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	all, err := memberconfig.View("")
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(LeadTo(h.Config, all))
	if err != nil {
		return nil, fmt.Errorf("connecting to the fleet view: %w", err)
	}
	lists, err := discoveryClient.ServerPreferredResourcesWithContext(ctx)
	if len(lists) == 0 && err != nil { // Some groups may fail on all members.
		return nil, fmt.Errorf("discovering the kinds of the members: %w", err)
	}
	return kindsOf(lists), nil
}

func kindsOf(lists []*metav1.APIResourceList) []Kind {
	var kinds []Kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // A kind with an invalid version cannot be requested.
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "list") {
				kinds = append(kinds, kindOf(version, r))
			}
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.Name, b.Name) })
	return kinds
}

func kindOf(version schema.GroupVersion, r *metav1.APIResource) Kind {
	path := "apis/" + version.String()
	if version.Group == "" {
		path = "api/" + version.Version
	}
	return Kind{Name: version.WithResource(r.Name).GroupResource().String(), Path: path, Resource: r.Name, Namespaced: r.Namespaced}
}
