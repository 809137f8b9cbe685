// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OfEnveloped returns the questions for an object in an envelope at a path: it will
// exist on members, made by the gateway, so whoever writes it must have the right to
// make it. The resource is that of its kind, nil if the hub does not serve it. The scope of the
// questions follows from the kind: agents ignore metadata.namespace of a cluster-scoped kind, so it
// must not narrow what is asked.
func OfEnveloped(path *field.Path, object *unstructured.Unstructured, resource *Resource) []Question {
	create := Access{Verb: "create", Group: object.GroupVersionKind().Group, Resource: anything, Namespace: writtenIn(object.GetNamespace(), resource)}
	if resource == nil {
		// Whoever may create all of a group in all namespaces may have members get a kind of it
		// that the hub does not serve.
		return []Question{needs(path, create)}
	}
	create.Resource, create.Name = resource.Name, object.GetName()
	questions := []Question{needs(path, create)}
	if create.Group != rbacv1.GroupName {
		return questions
	}
	// This is what the API server itself would ask beyond create: roles hold rights,
	// bindings hand them on.
	switch object.GetKind() {
	case "Role", "ClusterRole":
		create.Verb = "escalate"
		return append(questions, needs(path, create))
	case "RoleBinding", "ClusterRoleBinding":
		bind := Access{Verb: "bind", Group: rbacv1.GroupName, Resource: "roles", Namespace: create.Namespace}
		if kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); kind == "ClusterRole" {
			bind.Resource = "clusterroles"
		}
		// A name that cannot be read is none, which asks for the right to bind all.
		bind.Name, _, _ = unstructured.NestedString(object.Object, "roleRef", "name")
		return append(questions, needs(path.Child("roleRef"), bind))
	}
	return questions
}
