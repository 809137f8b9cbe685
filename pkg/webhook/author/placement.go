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

// A want is what one selector of a placement selects on the hub.
type want struct {
	path *field.Path
	// verb is how the user would read it: get named objects, list the rest.
	verb     string
	resource schema.GroupResource
	// namespace is empty for cluster-scoped resources and for all namespaces, name for all names.
	namespace, name string
	// contents means everything in the namespace, or in any namespace that labels match: then
	// resource and name are empty.
	contents bool
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

// reporting is the permission to write the status of the wanted objects, if the placement mirrors
// it: the member's status becomes the status of the object on the hub, and the author who chooses
// the member chooses the content.
func reporting(spec *placementv1beta1.PlacementSpec, wants []want) []Question {
	back := spec.Strategy.ReportBackStrategy
	if back == nil || back.Type != placementv1beta1.ReportBackMirror || back.Destination != placementv1beta1.ReportBackToOriginalResource {
		return nil
	}
	var all []Question
	for _, w := range wants {
		status := Access{Verb: "update", Group: w.resource.Group, Resource: w.resource.Resource, Subresource: "status", Namespace: w.namespace, Name: w.name}
		if w.contents {
			status.Group, status.Resource = anything, anything
		}
		all = append(all, needs(field.NewPath("spec", "strategy", "reportBackStrategy"), status))
	}
	return all
}

// wanted returns the wants of a placement's selectors; the namespace is the placement's, empty for
// a ClusterResourcePlacement. contents are namespaces that are placed with everything in them. It
// leaves out kinds that the hub does not serve, because they cannot be selected. The error means
// that a kind could not be looked up.
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
			contents = append(contents, want{path: path, verb: "get", namespace: term.Name, contents: true})
		}
	}
	return single, contents, nil
}
