// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Kind is an API type that can be listed and watched.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name in URL paths.
	Resource   string
	Namespaced bool
}

// GVR is the resource that clients use for the kind.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// Kinds knows the types that the hub serves. It reads discovery once, and again after Invalidate. It is
// safe for concurrent use.
type Kinds struct {
	discovery discovery.DiscoveryInterface
	filter    Filter

	// mu guards the fields below.
	mu sync.Mutex
	// known is nil while discovery has to be read.
	known *catalog
	// before is the last catalog, for groups that are temporarily unreadable.
	before *catalog
}

// catalog is one result of discovery.
type catalog struct {
	byKind map[schema.GroupVersionKind]Kind
	// contents are the namespaced kinds that are placed with a namespace, in the hub's preferred
	// version.
	contents []Kind
	// served are the versions in the result. A kind of any other version is not known to be removed.
	served map[schema.GroupVersion]bool
	// failed are the versions that discovery could not read, with its errors.
	failed map[schema.GroupVersion]error
}

// NewKinds returns Kinds that read discovery with this client. Kinds that the filter excludes are not
// placed with namespaces.
func NewKinds(client discovery.DiscoveryInterface, filter Filter) *Kinds {
	return &Kinds{discovery: client, filter: filter}
}

// Find returns the kind, and false if the hub does not serve it or it cannot be listed and watched.
func (k *Kinds) Find(gvk schema.GroupVersionKind) (Kind, bool, error) {
	c, err := k.catalog()
	if err != nil {
		return Kind{}, false, err
	}
	kind, ok := c.byKind[gvk]
	return kind, ok, nil
}

// Contents returns the kinds that are placed with a namespace.
func (k *Kinds) Contents() ([]Kind, error) {
	c, err := k.catalog()
	if err != nil {
		return nil, err
	}
	return c.contents, nil
}

// Undiscovered returns the versions without a result, sorted: those for which discovery failed, and those
// that are registered but not in the result. An API server that has just started knows an APIService
// before it knows its resources.
func (k *Kinds) Undiscovered(registered []schema.GroupVersion) ([]Unreadable, error) {
	c, err := k.catalog()
	if err != nil {
		return nil, err
	}
	return c.undiscovered(registered), nil
}

// Refresh reads discovery again if it was incomplete, and reports whether the result changed.
func (k *Kinds) Refresh() (changed bool) {
	k.mu.Lock()
	before := k.known
	k.mu.Unlock()
	if before == nil || len(before.failed) == 0 {
		return false
	}
	k.Invalidate()
	after, err := k.catalog()
	return err == nil && !maps.EqualFunc(before.failed, after.failed, func(error, error) bool { return true })
}

// Invalidate makes the next call read discovery.
func (k *Kinds) Invalidate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
}

func (k *Kinds) catalog() (*catalog, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known != nil {
		return k.known, nil
	}
	groups, lists, err := k.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discovering the hub's types: %w", err)
	}
	failed, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	k.known = newCatalog(groups, lists, failed, k.before)
	k.known.contents = slices.DeleteFunc(k.known.contents, func(kind Kind) bool { return k.filter.leavesOut(kind.GroupVersionKind) })
	k.before = k.known
	return k.known, nil
}

// newCatalog builds a catalog from discovery's result. Kinds of unreadable groups are copied from the
// last catalog: a temporarily unavailable API service must not remove its objects from members.
func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error, before *catalog) *catalog {
	c := &catalog{byKind: map[schema.GroupVersionKind]Kind{}, served: map[schema.GroupVersion]bool{}, failed: failed}
	for _, list := range lists {
		c.add(list)
	}
	if before != nil {
		for gvk, kind := range before.byKind {
			if _, unread := failed[gvk.GroupVersion()]; unread {
				c.byKind[gvk] = kind
			}
		}
	}
	c.contents = c.preferred(groups, before)
	return c
}

func (c *catalog) add(list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return // A group without a valid name cannot be selected either.
	}
	c.served[gv] = true
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") || !watchable(resource.Verbs) {
			continue
		}
		c.byKind[gv.WithKind(resource.Kind)] = Kind{
			GroupVersionKind: gv.WithKind(resource.Kind), Resource: resource.Name, Namespaced: resource.Namespaced,
		}
	}
}

func (c *catalog) undiscovered(registered []schema.GroupVersion) []Unreadable {
	var found []Unreadable
	for gv, err := range c.failed {
		found = append(found, undiscovered(gv, err.Error()))
	}
	for _, gv := range registered {
		if _, failed := c.failed[gv]; !failed && !c.served[gv] {
			found = append(found, undiscovered(gv, "an APIService is registered, but discovery does not list its resources"))
		}
	}
	found = slices.DeleteFunc(found, func(u Unreadable) bool { return refusedGroups[u.Group] && !hasEnvelopes(u.Group) })
	sortUnreadable(found)
	return found
}

func undiscovered(gv schema.GroupVersion, fault string) Unreadable {
	return Unreadable{Kind: Kind{GroupVersionKind: gv.WithKind("")}, Fault: fault}
}

func watchable(verbs metav1.Verbs) bool {
	return slices.Contains(verbs, "get") && slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// preferred returns each namespaced kind in one version: the group's preferred version if it has the
// kind, else the first version that has it.
func (c *catalog) preferred(groups []*metav1.APIGroup, before *catalog) []Kind {
	chosen := map[schema.GroupKind]Kind{}
	for _, group := range groups {
		for _, version := range versionsOf(group) {
			c.choose(chosen, schema.GroupVersion{Group: group.Name, Version: version})
		}
	}
	if before != nil {
		for _, kind := range before.contents {
			if _, still := c.byKind[kind.GroupVersionKind]; still {
				c.chooseKind(chosen, kind)
			}
		}
	}
	contents := make([]Kind, 0, len(chosen))
	for _, kind := range chosen {
		contents = append(contents, kind)
	}
	slices.SortFunc(contents, func(a, b Kind) int { return strings.Compare(a.String(), b.String()) })
	return contents
}

func (c *catalog) choose(chosen map[schema.GroupKind]Kind, gv schema.GroupVersion) {
	for gvk, kind := range c.byKind {
		if gvk.GroupVersion() == gv {
			c.chooseKind(chosen, kind)
		}
	}
}

func (c *catalog) chooseKind(chosen map[schema.GroupKind]Kind, kind Kind) {
	group := kind.GroupKind()
	if _, done := chosen[group]; !done && kind.Namespaced && KindPropagates(group) {
		chosen[group] = kind
	}
}

func versionsOf(group *metav1.APIGroup) []string {
	versions := []string{group.PreferredVersion.Version}
	for _, version := range group.Versions {
		if version.Version != group.PreferredVersion.Version {
			versions = append(versions, version.Version)
		}
	}
	return versions
}
