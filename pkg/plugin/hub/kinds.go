// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"fleetgate.io/fleetgate/pkg/memberconfig"
)

// Kind is one that can be listed over members.
type Kind struct {
	// Name is as kubectl api-resources has it: pods, deployments.apps.
	Name string
	// Path leads to its group and version, such as api/v1 or apis/apps/v1.
	Path string
	// Resource is the last part of the path to a list.
	Resource   string
	Namespaced bool
}

// FleetKinds are the kinds that any member has, as the view of the whole fleet tells them, by
// name.
func (h *Hub) FleetKinds(ctx context.Context) ([]Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	all, err := memberconfig.View("")
	if err != nil {
		return nil, err
	}
	asker, err := discovery.NewDiscoveryClientForConfig(LeadTo(h.Config, all))
	if err != nil {
		return nil, fmt.Errorf("reaching the view of the fleet: %w", err)
	}
	lists, err := asker.ServerPreferredResourcesWithContext(ctx)
	if len(lists) == 0 && err != nil { // Of some groups it may be that nobody answers.
		return nil, fmt.Errorf("asking the members which kinds they have: %w", err)
	}
	return kindsOf(lists), nil
}

func kindsOf(lists []*metav1.APIResourceList) []Kind {
	var kinds []Kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // Nobody can ask for one of a version that is none.
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
