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
	// Resource is the plural name in its path.
	Resource   string
	Namespaced bool
}

// GVR is what clients need to reach the kind.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// Kinds knows the types that the hub serves. It asks the hub once and again
// after Invalidate; use it from any goroutine.
type Kinds struct {
	discovery discovery.DiscoveryInterface
	filter    Filter

	// mu guards what follows.
	mu sync.Mutex
	// known is nil while the hub has to be asked.
	known *catalog
	// before is the last catalog, for groups that cannot be read for a moment.
	before *catalog
}

// catalog is one answer of discovery.
type catalog struct {
	byKind map[schema.GroupVersionKind]Kind
	// contents are the namespaced kinds that a namespace carries, in the version
	// that the hub prefers.
	contents []Kind
	// served are the versions that the hub answered for. Whatever is in another one is not
	// known to be gone.
	served map[schema.GroupVersion]bool
	// failed are the versions that the hub could not answer for, with its answers.
	failed map[schema.GroupVersion]error
}

// NewKinds returns Kinds that ask through this client. What the filter leaves out is no content of
// namespaces.
func NewKinds(client discovery.DiscoveryInterface, filter Filter) *Kinds {
	return &Kinds{discovery: client, filter: filter}
}

// Find returns the kind, and false if the hub does not serve it or it cannot be
// listed and watched.
func (k *Kinds) Find(gvk schema.GroupVersionKind) (Kind, bool, error) {
	c, err := k.catalog()
	if err != nil {
		return Kind{}, false, err
	}
	kind, ok := c.byKind[gvk]
	return kind, ok, nil
}

// Contents returns the kinds that a namespace carries with it.
func (k *Kinds) Contents() ([]Kind, error) {
	c, err := k.catalog()
	if err != nil {
		return nil, err
	}
	return c.contents, nil
}

// Unanswered returns the versions for which the hub has no answer, sorted: those of which
// discovery failed, and those that are registered and not in its answer. An API server that has
// just started knows an APIService before it knows what is behind it.
func (k *Kinds) Unanswered(registered []schema.GroupVersion) ([]Unreadable, error) {
	c, err := k.catalog()
	if err != nil {
		return nil, err
	}
	return c.unanswered(registered), nil
}

// Refresh asks the hub again if it could not answer for everything, and reports whether it can
// answer for something else than before.
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

// Invalidate makes the next question ask the hub.
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

// newCatalog builds a catalog from discovery's answer. Kinds of groups that
// could not be read are taken over from the last one: an API service that is
// down for a moment must not take its objects off the members.
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
		return // A group that nobody can name cannot be selected either.
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

func (c *catalog) unanswered(registered []schema.GroupVersion) []Unreadable {
	var found []Unreadable
	for gv, err := range c.failed {
		found = append(found, unanswered(gv, err.Error()))
	}
	for _, gv := range registered {
		if _, failed := c.failed[gv]; !failed && !c.served[gv] {
			found = append(found, unanswered(gv, "an APIService is registered, and discovery does not know what it serves"))
		}
	}
	found = slices.DeleteFunc(found, func(u Unreadable) bool { return refusedGroups[u.Group] })
	sortUnreadable(found)
	return found
}

func unanswered(gv schema.GroupVersion, fault string) Unreadable {
	return Unreadable{Kind: Kind{GroupVersionKind: gv.WithKind("")}, Fault: fault}
}

func watchable(verbs metav1.Verbs) bool {
	return slices.Contains(verbs, "get") && slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// preferred takes each namespaced kind in one version: the group's preferred
// one if it has the kind there, else the first that has it.
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
