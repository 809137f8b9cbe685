// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// A want is what one selector of a placement wants of the hub.
type want struct {
	path *field.Path
	// verb is how the user would read it: get what is named, list the rest.
	verb     string
	resource schema.GroupResource
	// namespace is empty for cluster-scoped resources and for those of all namespaces,
	// name for all of them.
	namespace, name string
}

// question is raised by a want.
func (w want) question() Question {
	return readOrPlace(w.path, w.verb, Access{Group: w.resource.Group, Resource: w.resource.Resource, Namespace: w.namespace, Name: w.name})
}

// wide is the question for everything in a scope, "" for all namespaces.
func wide(path *field.Path, verb, scope string) Question {
	return readOrPlace(path, verb, Access{Group: anything, Resource: anything, Namespace: scope})
}

func readOrPlace(path *field.Path, verb string, of Access) Question {
	read, place := of, of
	read.Verb, place.Verb = verb, placementv1beta1.PlaceVerb
	return Question{Path: path, Any: []Access{read, place}}
}

// wanted returns what the selectors of a placement want; the namespace is the
// placement's, empty for a ClusterResourcePlacement. contents are namespaces that are
// wanted with all that is in them: of these, resource and name are empty, and the
// namespace is if labels choose it. A kind that the hub does not serve is left out:
// nothing of it can be selected. The error means that a kind could not be looked up.
func wanted(namespace string, terms []placementv1beta1.ResourceSelectorTerm, resources Resources) (single, contents []want, err error) {
	inside := selection.Inside(namespace, terms)
	for i, term := range terms {
		path := field.NewPath("spec", "resourceSelectors").Index(i)
		kind := schema.GroupVersionKind{Group: term.Group, Version: term.Version, Kind: term.Kind}
		resource, served, err := resources(kind)
		if err != nil {
			return nil, nil, fmt.Errorf("looking up %s: %w", kind, err)
		}
		if !served {
			continue
		}
		w := want{path: path, verb: "get", resource: schema.GroupResource{Group: term.Group, Resource: resource.Name}, name: term.Name}
		if term.Name == "" {
			w.verb = "list"
		}
		if resource.Namespaced {
			w.namespace = inside
		}
		single = append(single, w)
		if selection.CarriesContents(term) {
			contents = append(contents, want{path: path, verb: "get", namespace: term.Name})
		}
	}
	return single, contents, nil
}
