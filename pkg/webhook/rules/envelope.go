// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A Resource is how the hub serves a kind.
type Resource struct {
	// Name is the plural in the API's paths.
	Name string
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
}

// Resources finds the resource of a kind, and false if the hub does not serve it.
// An error means that it could not be found out.
type Resources func(schema.GroupVersionKind) (Resource, bool, error)

// An Access is something that the author of an envelope has to be allowed on the
// hub: what is in an envelope will exist on members, made by the gateway, so whoever
// writes it must have the right to make it.
type Access struct {
	// Path is where the object stands that needs it.
	Path *field.Path
	// Verb, Group, Resource, Namespace and Name are those of the request that the
	// author would have to make. Namespace is empty for cluster-scoped resources.
	Verb, Group, Resource, Namespace, Name string
}

// String says it in the words of a refusal.
func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	text := fmt.Sprintf("%s %s", a.Verb, resource)
	if a.Name != "" {
		text += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	return text
}

// ChangedEntries returns the keys of what an update adds or changes, sorted: who
// only takes something out, or labels the envelope, needs no right to the rest.
func ChangedEntries(older, newer map[string]placementv1beta1.EnvelopedObject) []string {
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(newer)) {
		before, there := older[key]
		if !there || !sameJSON(before.Raw, newer[key].Raw) {
			changed = append(changed, key)
		}
	}
	return changed
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	return jsonEqual(left, right)
}

func jsonEqual(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

// ValidateEnvelope returns what is wrong with the entries of an envelope under the
// given keys, and what its author has to be allowed. The namespace is the
// envelope's; a ClusterResourceEnvelope has none. The error means that a kind could
// not be looked up.
func ValidateEnvelope(namespace string, data map[string]placementv1beta1.EnvelopedObject, keys []string, resources Resources) (field.ErrorList, []Access, error) {
	var all field.ErrorList
	var needed []Access
	for _, key := range keys {
		path := field.NewPath("data").Key(key)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data[key].Raw); err != nil || object.GetAPIVersion() == "" {
			all = append(all, field.Invalid(path, object.GetKind(), "is no Kubernetes object with apiVersion and kind"))
			continue
		}
		if object.IsList() {
			all = append(all, field.Invalid(path, object.GetKind(), "is a list: give each object an entry of its own"))
			continue
		}
		problems := validateEnveloped(namespace, object, path)
		all = append(all, problems...)
		if len(problems) > 0 {
			continue
		}
		scope, accesses, err := accessTo(object, path, resources)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, scope...)
		needed = append(needed, accesses...)
	}
	return all, needed, nil
}

// validateEnveloped checks what can be told from the object alone. Nothing fills in
// a namespace later.
func validateEnveloped(namespace string, object *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var all field.ErrorList
	at := path.Child("metadata")
	if why := manifest.Reserved(object); why != "" {
		all = append(all, field.Forbidden(path, why))
	}
	if object.GetName() == "" {
		all = append(all, field.Required(at.Child("name"), "an object in an envelope has a name of its own; generateName is not enough"))
	}
	switch {
	case namespace == "" && object.GetNamespace() != "":
		all = append(all, field.Forbidden(at.Child("namespace"), "a ClusterResourceEnvelope holds cluster-scoped objects: use a ResourceEnvelope in that namespace"))
	case namespace != "" && object.GetNamespace() != namespace:
		all = append(all, field.Invalid(at.Child("namespace"), object.GetNamespace(), fmt.Sprintf("a ResourceEnvelope holds objects of its own namespace, %q", namespace)))
	}
	return all
}

func accessTo(object *unstructured.Unstructured, path *field.Path, resources Resources) (field.ErrorList, []Access, error) {
	kind := object.GroupVersionKind()
	resource, served, err := resources(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("looking up %s: %w", kind, err)
	}
	create := Access{Path: path, Verb: "create", Group: kind.Group, Namespace: object.GetNamespace()}
	if !served {
		// What cannot be named on the hub is allowed to who may create all of its group.
		create.Resource = "*"
		return nil, []Access{create}, nil
	}
	if resource.Namespaced != (object.GetNamespace() != "") {
		scope := "cluster-scoped"
		if resource.Namespaced {
			scope = "namespaced"
		}
		return field.ErrorList{field.Invalid(path, kind.String(), "is "+scope+" on the hub, so it does not fit into this kind of envelope")}, nil, nil
	}
	create.Resource, create.Name = resource.Name, object.GetName()
	return nil, append([]Access{create}, escalation(object, create)...), nil
}

// escalation is what the API server itself would ask beyond create: roles hold
// rights, bindings hand them on.
func escalation(object *unstructured.Unstructured, create Access) []Access {
	if create.Group != rbacv1.GroupName {
		return nil
	}
	switch object.GetKind() {
	case "Role", "ClusterRole":
		create.Verb = "escalate"
		return []Access{create}
	case "RoleBinding", "ClusterRoleBinding":
		bind := Access{Path: create.Path.Child("roleRef"), Verb: "bind", Group: rbacv1.GroupName, Resource: "roles", Namespace: create.Namespace}
		if kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); kind == "ClusterRole" {
			bind.Resource = "clusterroles"
		}
		// A name that cannot be read is none, which asks for the right to bind all.
		bind.Name, _, _ = unstructured.NestedString(object.Object, "roleRef", "name")
		return []Access{bind}
	}
	return nil
}
