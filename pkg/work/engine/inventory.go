// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// inventoryPage is the number of objects that one list request returns.
const inventoryPage = 500

// inventory reads which objects a member stores.
type inventory interface {
	// namespaced lists namespaced resources, the most likely ones to keep a namespace first, and
	// the API groups that did not answer.
	namespaced(ctx context.Context) (resources []resourceKind, unanswered []string, err error)
	// list lists object metadata. An empty namespace means all namespaces.
	list(ctx context.Context, resource schema.GroupVersionResource, namespace, from string) (*metav1.PartialObjectMetadataList, error)
}

// resourceKind is a resource and the kind of its objects.
type resourceKind struct {
	schema.GroupVersionResource
	Kind string
}

// storedOn is the inventory of a real member.
type storedOn struct {
	kinds   *discovery.DiscoveryClient
	objects metadata.Interface
}

var _ inventory = storedOn{}

func newInventory(config *rest.Config, transport *http.Client) (inventory, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(config, transport)
	return storedOn{kinds: kinds, objects: objects}, err
}

func (s storedOn) namespaced(ctx context.Context) ([]resourceKind, []string, error) {
	lists, err := s.kinds.ServerPreferredNamespacedResourcesWithContext(ctx)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return nil, nil, fmt.Errorf("asking the member for its kinds: %w", err)
	}
	groups := map[string]bool{}
	for version := range failed {
		groups[version.Group] = true
	}
	return resourcesOf(lists), slices.Sorted(maps.Keys(groups)), nil
}

func (s storedOn) list(ctx context.Context, resource schema.GroupVersionResource, namespace, from string) (*metav1.PartialObjectMetadataList, error) {
	return s.objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: inventoryPage, Continue: from})
}

// resourcesOf returns the resources whose objects can be listed and deleted, the most likely ones
// to keep a namespace first.
func resourcesOf(lists []*metav1.APIResourceList) []resourceKind {
	var resources []resourceKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !isByproduct(version.WithResource(r.Name).GroupResource()) {
				resources = append(resources, resourceKind{GroupVersionResource: version.WithResource(r.Name), Kind: r.Kind})
			}
		}
	}
	slices.SortStableFunc(resources, func(a, b resourceKind) int {
		return cmp.Compare(rankOf(a.GroupResource()), rankOf(b.GroupResource()))
	})
	return resources
}

// rankOf is lower for resources that hold data and for those that users create most.
func rankOf(resource schema.GroupResource) int {
	switch {
	case resource == schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return 0
	case resource.Group == "" || resource.Group == "apps":
		return 1
	}
	return 2
}

// isByproduct lists resources whose objects are derived from other objects. They keep no container.
func isByproduct(resource schema.GroupResource) bool {
	switch resource {
	case schema.GroupResource{Resource: "events"},
		schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
		schema.GroupResource{Resource: "endpoints"},
		schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
		schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return true
	}
	return false
}
