// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// OfEnveloped returns the questions for an object in an envelope at a path. Agents create the object
// on members, or overwrite the one that is there, so its author must have permission to create and
// to update it. The resource is that of its kind, nil if the hub does not serve it. The scope of the
// questions follows from the kind: agents ignore metadata.namespace of a cluster-scoped kind, so it
// must not narrow the check. An object of which a member would check more than RBAC of the agent,
// because it is itself a hub, takes an administrator.
func OfEnveloped(path *field.Path, object *unstructured.Unstructured, resource *Resource) []Question {
	if reserved.ChecksWriter(object.GroupVersionKind().GroupKind()) {
		return toWrite(path, Access{Verb: "create", Group: anything, Resource: anything})
	}
	create := Access{Verb: "create", Group: object.GroupVersionKind().Group, Resource: anything, Namespace: writtenIn(object.GetNamespace(), resource)}
	if resource == nil {
		// A user who may write a whole group in all namespaces may also deliver a kind of it that
		// the hub does not serve.
		return toWrite(path, create)
	}
	create.Resource, create.Name = resource.Name, object.GetName()
	questions := toWrite(path, create)
	if create.Group != rbacv1.GroupName {
		return questions
	}
	// The API server itself would check this in addition to create: roles hold permissions,
	// bindings grant them.
	switch object.GetKind() {
	case "Role", "ClusterRole":
		create.Verb = "escalate"
		return append(questions, needs(path, create))
	case "RoleBinding", "ClusterRoleBinding":
		bind := Access{Verb: "bind", Group: rbacv1.GroupName, Resource: "roles", Namespace: create.Namespace}
		if kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); kind == "ClusterRole" {
			bind.Resource = "clusterroles"
		}
		// A name that cannot be read counts as none, which requires permission to bind all.
		bind.Name, _, _ = unstructured.NestedString(object.Object, "roleRef", "name")
		return append(questions, needs(path.Child("roleRef"), bind))
	}
	return questions
}

// toWrite is the questions for an object that may exist on a member.
func toWrite(path *field.Path, create Access) []Question {
	update := create
	update.Verb = "update"
	return []Question{needs(path, create), needs(path, update)}
}
