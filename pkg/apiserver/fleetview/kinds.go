// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// readVerbs are the verbs that a view supports.
var readVerbs = []string{"get", "list", "watch"}

// union is all kinds that any member has. Of the versions of a group, the most frequently preferred
// one comes first. If members describe a kind differently, the description of the first member by
// name counts.
func union(all []*apidiscoveryv2.APIGroupDiscoveryList) []apidiscoveryv2.APIGroupDiscovery {
	type group struct {
		name      string
		preferred map[string]int
		versions  map[string]*apidiscoveryv2.APIVersionDiscovery
	}
	var groups []*group
	byName := map[string]*group{}
	for _, document := range all {
		for _, item := range document.Items {
			g := byName[item.Name]
			if g == nil {
				g = &group{name: item.Name, preferred: map[string]int{}, versions: map[string]*apidiscoveryv2.APIVersionDiscovery{}}
				byName[item.Name] = g
				groups = append(groups, g)
			}
			for i, v := range item.Versions {
				if i == 0 {
					g.preferred[v.Version]++
				}
				g.versions[v.Version] = joined(g.versions[v.Version], v)
			}
		}
	}
	var items []apidiscoveryv2.APIGroupDiscovery
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			if len(v.Resources) > 0 {
				item.Versions = append(item.Versions, *v)
			}
		}
		sortVersions(item.Versions, mostOf(g.preferred))
		if len(item.Versions) > 0 {
			items = append(items, item)
		}
	}
	return items
}

func sortVersions(versions []apidiscoveryv2.APIVersionDiscovery, preferred string) {
	slices.SortFunc(versions, func(a, b apidiscoveryv2.APIVersionDiscovery) int {
		switch preferred {
		case a.Version:
			return -1
		case b.Version:
			return 1
		}
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
}

// joined adds the kinds of a version to those already known. Documents are shared, so it copies
// them.
func joined(known *apidiscoveryv2.APIVersionDiscovery, more apidiscoveryv2.APIVersionDiscovery) *apidiscoveryv2.APIVersionDiscovery {
	if known == nil {
		known = &apidiscoveryv2.APIVersionDiscovery{Version: more.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	}
	for _, resource := range more.Resources {
		if slices.ContainsFunc(known.Resources, func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == resource.Resource }) {
			continue
		}
		if resource.Verbs = onlyRead(resource.Verbs); len(resource.Verbs) == 0 {
			continue
		}
		var below []apidiscoveryv2.APISubresourceDiscovery
		for _, sub := range resource.Subresources {
			if sub.Verbs = onlyRead(sub.Verbs); len(sub.Verbs) > 0 && !slices.Contains(writing, sub.Subresource) {
				below = append(below, sub)
			}
		}
		resource.Subresources = below
		known.Resources = append(known.Resources, resource)
	}
	return known
}

func onlyRead(verbs []string) []string {
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return !slices.Contains(readVerbs, verb) })
}

// legacyForm is the response for clients without aggregated discovery; nil if there is no such
// group or version.
func legacyForm(groups []apidiscoveryv2.APIGroupDiscovery, parts []string) any {
	const core = "api"
	if parts[0] == core && len(parts) == 1 {
		versions := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
		for _, g := range groups {
			for _, v := range g.Versions {
				versions.Versions = append(versions.Versions, v.Version)
			}
		}
		return versions
	}
	if parts[0] != core && len(parts) == 1 {
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, g := range groups {
			list.Groups = append(list.Groups, *legacyGroup(g))
		}
		return list
	}
	name, ofVersion := parts[1], parts[len(parts)-1]
	if parts[0] == core {
		name = ""
	}
	for _, g := range groups {
		if g.Name != name {
			continue
		}
		if parts[0] != core && len(parts) == 2 {
			return legacyGroup(g)
		}
		for _, v := range g.Versions {
			if v.Version == ofVersion {
				return legacyResources(strings.TrimPrefix(name+"/"+v.Version, "/"), v)
			}
		}
	}
	return nil
}

func legacyGroup(of apidiscoveryv2.APIGroupDiscovery) *metav1.APIGroup {
	group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: of.Name}
	for _, v := range of.Versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: of.Name + "/" + v.Version, Version: v.Version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func legacyResources(groupVersion string, of apidiscoveryv2.APIVersionDiscovery) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion}
	for _, r := range of.Resources {
		resource := metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.ResponseKind != nil {
			resource.Kind = r.ResponseKind.Kind
		}
		list.APIResources = append(list.APIResources, resource)
		for _, s := range r.Subresources {
			below := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: resource.Namespaced, Verbs: s.Verbs}
			if s.ResponseKind != nil {
				below.Group, below.Version, below.Kind = s.ResponseKind.Group, s.ResponseKind.Version, s.ResponseKind.Kind
			}
			list.APIResources = append(list.APIResources, below)
		}
	}
	return list
}
