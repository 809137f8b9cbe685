// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// scope is the scope of a kind in a cluster, empty if the cluster does not serve it.
type scope string

const (
	namespaced    scope = "Namespaced"
	clusterScoped scope = "Cluster"
)

const (
	groupServed  = "rights.example.org"
	groupUnknown = "unknown.example.org"
	groupChecked = "fleet.azure.com"
)

// kind is a kind of the pool.
type kind struct {
	schema.GroupVersionKind
	resource        string
	onHub, onMember scope
	// fields are the fields of its objects, as YAML.
	fields string
}

func everywhere(group, name, resource string, s scope, fields string) kind {
	return kind{schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, resource, s, s, fields}
}

const podTemplate = "{metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: 'example.org/a:1'}]}}"

// pool are the kinds of random objects.
var pool = []kind{
	everywhere("", "ConfigMap", "configmaps", namespaced, "data: {a: b}"),
	everywhere("", "Secret", "secrets", namespaced, "data: {a: Yg==}"),
	everywhere("", "ServiceAccount", "serviceaccounts", namespaced, "automountServiceAccountToken: false"),
	everywhere("apps", "Deployment", "deployments", namespaced, "spec: {replicas: 0, selector: {matchLabels: {app: a}}, template: "+podTemplate+"}"),
	everywhere(rbacv1.GroupName, "Role", "roles", namespaced, "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]"),
	everywhere(rbacv1.GroupName, "RoleBinding", "rolebindings", namespaced, "subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory}]"),
	everywhere(rbacv1.GroupName, "ClusterRole", "clusterroles", clusterScoped, "rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]"),
	everywhere(rbacv1.GroupName, "ClusterRoleBinding", "clusterrolebindings", clusterScoped, "subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory}]"),
	everywhere("", "Namespace", "namespaces", clusterScoped, "{}"),
	everywhere(groupServed, "Widget", "widgets", namespaced, "spec: {size: 1}"),
	everywhere(groupServed, "Gadget", "gadgets", clusterScoped, "spec: {size: 1}"),
	// A hub checks more than RBAC of the user who writes one of these.
	everywhere(groupChecked, "MemberCluster", "memberclusters", clusterScoped, "spec: {size: 1}"),
	// The member serves this kind in another scope than the hub.
	{schema.GroupVersionKind{Group: groupServed, Version: "v1", Kind: "Grown"}, "growns", namespaced, clusterScoped, "spec: {size: 1}"},
	{schema.GroupVersionKind{Group: groupUnknown, Version: "v1", Kind: "Local"}, "locals", "", namespaced, "spec: {size: 1}"},
	{schema.GroupVersionKind{Group: groupUnknown, Version: "v1", Kind: "Global"}, "globals", "", clusterScoped, "spec: {size: 1}"},
}

func kindNamed(name string) kind {
	for _, k := range pool {
		if k.Kind == name {
			return k
		}
	}
	panic("no kind " + name)
}

// define creates the CRD of a kind in a cluster that serves it.
func define(ctx context.Context, c client.Client, k kind, s scope) {
	GinkgoHelper()
	if s == "" {
		return
	}
	definition := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: %[3]s
  names: {kind: %[4]s, plural: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.resource, k.Group, s, k.Kind), definition)).To(Succeed())
	Expect(c.Create(ctx, definition)).To(Succeed())
	Eventually(func() error {
		probe := object{kind: k, namespace: map[scope]string{namespaced: "default"}[s], name: "probe"}.manifest("nobody")
		return c.Create(ctx, probe, client.DryRunAll)
	}).Should(Succeed())
}

// by is the annotation of every object, with its origin. overridden is the
// label that overrides set.
const (
	by         = "rights.example.org/by"
	overridden = "overridden"
	// attemptLabel is the label of every object, with the prefix of its attempt.
	attemptLabel = "rights.example.org/attempt"
)

// Origins of objects on the member.
const (
	fromHub      = "hub"
	fromEnvelope = "envelope"
	fromChart    = "chart"
	fromOverride = "override" // of a chart's values
	fromSet      = "set"
)

// object is a random object. Its manifest may name a namespace although its kind is cluster-scoped.
type object struct {
	kind            kind
	namespace, name string
	// role is the roleRef of a binding.
	role rbacv1.RoleRef
}

func (o object) String() string {
	return fmt.Sprintf("%s %s/%s%s", o.kind.Kind, o.namespace, o.name, o.roleText())
}

func (o object) roleText() string {
	if o.role.Name == "" {
		return ""
	}
	return " of " + o.role.Kind + " " + o.role.Name
}

func (o object) isBinding() bool { return strings.HasSuffix(o.kind.Kind, "RoleBinding") }

func (o object) manifest(from string) *unstructured.Unstructured {
	manifest := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(o.kind.fields), &manifest.Object); err != nil {
		panic(err)
	}
	manifest.SetGroupVersionKind(o.kind.GroupVersionKind)
	manifest.SetNamespace(o.namespace)
	manifest.SetName(o.name)
	manifest.SetAnnotations(map[string]string{by: from})
	manifest.SetLabels(map[string]string{attemptLabel: prefixOf(o.name)})
	if o.isBinding() {
		manifest.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": o.role.Kind, "name": o.role.Name}
	}
	return manifest
}

// observed is an object as it is on the member.
func observed(live *unstructured.Unstructured) object {
	o := object{kind: kindNamed(live.GetKind()), namespace: live.GetNamespace(), name: live.GetName()}
	o.role.Kind, _, _ = unstructured.NestedString(live.Object, "roleRef", "kind")
	o.role.Name, _, _ = unstructured.NestedString(live.Object, "roleRef", "name")
	return o
}

// createOnHub creates an object on the hub as its administrator, if its kind is served there.
func createOnHub(ctx context.Context, o object) error {
	if o.kind.onHub == "" {
		return nil
	}
	if o.kind.onHub == clusterScoped {
		o.namespace = ""
	}
	if err := hub.Create(ctx, o.manifest(fromHub)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", o, err)
	}
	return nil
}
