// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// anything is RBAC's wildcard for groups, resources and verbs. A SubjectAccessReview for it is
// allowed only by a rule with the wildcard.
const anything = "*"

// A Resource is how the hub serves a kind.
type Resource struct {
	// Name is the plural in the API's paths.
	Name string
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
}

// writtenIn is the namespace in which members get an object whose manifest names this one. It is
// empty, which checks all namespaces, for a cluster-scoped kind and for one that the hub does not
// serve: a member may serve it in either scope.
func writtenIn(namespace string, resource *Resource) string {
	return manifest.WrittenNamespace(namespace, resource != nil && resource.Namespaced)
}

// Resources finds the resource of a kind, and false if the hub does not serve it. An error means
// that this could not be determined.
type Resources func(schema.GroupVersionKind) (Resource, bool, error)

// An Access is a request to the hub for which a user needs permission.
type Access struct {
	// Verb, Group, Resource, Namespace and Name are those of the request. Namespace is empty for
	// cluster-scoped resources and for all namespaces, Name for all names.
	Verb, Group, Resource, Namespace, Name string
	// Subresource is empty for the resource itself.
	Subresource string
}

// String formats the access for messages.
func (a Access) String() string { return a.Verb + " " + a.object() }

func (a Access) object() string {
	if a.Group == anything && a.Resource == anything {
		text := "everything (*)"
		if a.Subresource != "" {
			text += "/" + a.Subresource
		}
		if a.Namespace == "" {
			return text + " in all namespaces"
		}
		return fmt.Sprintf("%s in namespace %q", text, a.Namespace)
	}
	text := schema.GroupResource{Group: a.Group, Resource: a.Resource}.String()
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.Name != "" {
		text += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	return text
}

// A Question is raised by a field of an object. One of its accesses, which differ only in their
// verbs, must be allowed.
type Question struct {
	Path *field.Path
	Any  []Access
}

// needs is the question for a single access.
func needs(path *field.Path, access Access) Question {
	return Question{Path: path, Any: []Access{access}}
}

// String formats the question for messages.
func (q Question) String() string {
	verbs := make([]string, len(q.Any))
	for i, access := range q.Any {
		verbs[i] = access.Verb
	}
	return strings.Join(verbs, " or ") + " " + q.Any[0].object()
}

// sameObject is true if another question is about the same object at the same field.
func (q Question) sameObject(other Question) bool {
	return q.Path.String() == other.Path.String() && q.Any[0].object() == other.Any[0].object()
}
