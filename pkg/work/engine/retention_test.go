// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func TestTakes(t *testing.T) {
	entry := func(group, resource, kind, namespace, name string) Entry {
		return Entry{Ref: manifest.Ref{Group: group, Version: "v1", Resource: resource, Kind: kind, Namespace: namespace, Name: name}}
	}
	inside, widget := entry("", "configmaps", "ConfigMap", "ns", "a"), entry("example.com", "widgets", "Widget", "", "w")
	for of, tc := range map[string]struct {
		object, other Entry
		want          bool
	}{
		"a namespace and its contents":             {entry("", "namespaces", "Namespace", "", "ns"), inside, true},
		"another namespace":                        {entry("", "namespaces", "Namespace", "", "other"), inside, false},
		"a definition and its objects":             {entry("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "", "widgets.example.com"), widget, true},
		"another definition":                       {entry("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "", "gadgets.example.com"), widget, false},
		"an object that has the name of the other": {entry("", "secrets", "Secret", "ns", "a"), inside, false},
	} {
		if got := takes(tc.object, tc.other); got != tc.want {
			t.Errorf("%s: %t", of, got)
		}
	}
}
