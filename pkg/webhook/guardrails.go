// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strconv"
	"strings"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// GuardRails is how far the hub is kept from mistakes of people who have the right
// to make them.
type GuardRails string

const (
	// GuardRailsOff keeps the hub from nothing.
	GuardRailsOff GuardRails = "off"
	// GuardRailsSelected keeps Pods and ReplicaSets out of namespaces that a
	// ClusterResourcePlacement selects with what is in them: a placed Deployment
	// would run on the hub too.
	GuardRailsSelected GuardRails = "selected"
	// GuardRailsReference does what users of the public API know: no Pods and
	// ReplicaSets on the hub but in reserved namespaces; reserved namespaces, the
	// fleet's CustomResourceDefinitions and its members are for administrators and
	// the cluster's own components.
	GuardRailsReference GuardRails = "reference"
)

// AllGuardRails are the modes, in the order of how much they keep away.
func AllGuardRails() []GuardRails {
	return []GuardRails{GuardRailsOff, GuardRailsSelected, GuardRailsReference}
}

// GuardRailPolicies returns the policies of a mode, with their bindings. All of them
// are ValidatingAdmissionPolicies: they hold while the gateway is down. They answer
// before any webhook does, with the sentences that clients compare, so no webhook
// stands beside them. The gateway is the user that the API server knows it as.
func GuardRailPolicies(mode GuardRails, gateway string) []client.Object {
	switch mode {
	case GuardRailsSelected:
		return objectsOf(selectedWorkloads())
	case GuardRailsReference:
		return objectsOf(referencePolicies(gateway)...)
	default:
		return nil
	}
}

// ObsoleteGuardRails returns what other modes have put on the hub and this one has
// not.
func ObsoleteGuardRails(mode GuardRails, gateway string) []client.Object {
	wanted := map[string]bool{}
	for _, object := range GuardRailPolicies(mode, gateway) {
		wanted[object.GetName()] = true
	}
	var obsolete []client.Object
	for _, other := range AllGuardRails() {
		for _, object := range GuardRailPolicies(other, gateway) {
			if !wanted[object.GetName()] {
				obsolete = append(obsolete, object)
			}
		}
	}
	return obsolete
}

// The sentence for what would run on the hub, put together as the reference does.
const workloadSentence = "request.kind.kind + ' ' + (has(request.namespace) ? request.namespace : '') + '/' + " +
	"(has(object.metadata.name) ? object.metadata.name : '') + ' creation is disallowed in the fleet hub cluster' + " +
	"(request.kind.kind == 'ReplicaSet' ? '.' : '')"

func workloads() []k8sadmissionv1.NamedRuleWithOperations {
	return []k8sadmissionv1.NamedRuleWithOperations{on(creations, "", "v1", "pods"), on(creations, "apps", "v1", "replicasets")}
}

// selectedWorkloads asks every ClusterResourcePlacement, as a parameter: the API
// server watches them itself, and nothing has to be kept that a user could take off.
// It fails open: a hub whose placements cannot be read, since somebody has deleted
// their definition, must still start its own Pods.
func selectedWorkloads() policy {
	return policy{
		name:      "fleetgate-selected-workloads",
		open:      true,
		resources: workloads(),
		each:      &k8sadmissionv1.ParamKind{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement"},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "namespaced", Expression: "has(request.namespace) && !(" + reserved("request.namespace") + ")"},
			notExempt(BypassGuardRails),
		},
		variables: []k8sadmissionv1.Variable{{
			Name: "labels", Expression: "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}",
		}},
		rules: []k8sadmissionv1.Validation{
			forbiddenSaying("!params.spec.resourceSelectors.exists(s, "+selectsNamespace+")", workloadSentence),
		},
	}
}

// selectsNamespace is true for a selector s that takes the request's namespace with
// what is in it: by name, by labels, or every namespace.
const selectsNamespace = "s.group == '' && s.kind == 'Namespace' && (!has(s.selectionScope) || s.selectionScope != 'NamespaceOnly') && " +
	"(has(s.name) && s.name != '' ? s.name == request.namespace : (!has(s.labelSelector) || (" + labelsMatch + ")))"

// labelsMatch is what a label selector means, in the API server's own language.
const labelsMatch = "(!has(s.labelSelector.matchLabels) || s.labelSelector.matchLabels.all(k, k in variables.labels && variables.labels[k] == s.labelSelector.matchLabels[k])) && " +
	"(!has(s.labelSelector.matchExpressions) || s.labelSelector.matchExpressions.all(e, " +
	"e.operator == 'Exists' ? e.key in variables.labels : " +
	"e.operator == 'DoesNotExist' ? !(e.key in variables.labels) : " +
	"e.operator == 'In' ? (e.key in variables.labels && has(e.values) && variables.labels[e.key] in e.values) : " +
	"(!(e.key in variables.labels) || !has(e.values) || !(variables.labels[e.key] in e.values))))"

// reserved is true for the name of a namespace of the fleet or of Kubernetes.
func reserved(name string) string {
	return fmt.Sprintf("%[1]s.startsWith('fleet-') || %[1]s.startsWith('kube-')", name)
}

// The refusal of the reference, which its clients compare: who, in which groups, may
// not do what.
const refusalSentence = "'user: \\'' + request.userInfo.username + '\\' in \\'' + variables.groups + '\\' is not allowed to ' + request.operation + ' resource ' + " +
	"request.requestKind.group + '/' + request.requestKind.version + ', Kind=' + request.requestKind.kind + '/' + " +
	"(has(request.subResource) ? request.subResource : '') + ': ' + (has(request.namespace) && request.kind.kind != 'Namespace' ? request.namespace : '') + '/' + " +
	"(has(request.name) ? request.name : '')"

// groupsVariable prints the groups as the reference does: three and dots if there
// are more than ten.
func groupsVariable() k8sadmissionv1.Variable {
	return k8sadmissionv1.Variable{Name: "groups", Expression: "!has(request.userInfo.groups) ? 'groups: []' : size(request.userInfo.groups) > 10 ? " +
		"'groups: [' + request.userInfo.groups[0] + ', ' + request.userInfo.groups[1] + ', ' + request.userInfo.groups[2] + ',......]' : " +
		"'groups: [' + request.userInfo.groups.join(' ') + ']'"}
}

func inGroups(groups ...string) string {
	return "(has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in ['" + strings.Join(groups, "', '") + "']))"
}

func isUser(names ...string) string {
	literals := make([]string, len(names))
	for i, name := range names {
		literals[i] = strconv.Quote(name) // Go's escapes are CEL's too.
	}
	return "request.userInfo.username in [" + strings.Join(literals, ", ") + "]"
}

// administrators and trusted are who the reference lets through. The API server has
// proved names and groups: they cannot be forged.
func administrators(gateway string) string {
	return inGroups("system:masters", "kubeadm:cluster-admins") + " || " + isUser(gateway)
}

func trusted(gateway string) string {
	return inGroups("system:masters", "kubeadm:cluster-admins", "system:serviceaccounts", "system:nodes") + " || " +
		isUser(gateway, "system:kube-scheduler", "system:kube-controller-manager", "aks-support")
}

func untrusted(gateway string) k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{Name: "not-trusted", Expression: "!(" + trusted(gateway) + ")"}
}

func refused(expression string) k8sadmissionv1.Validation {
	return forbiddenSaying(expression, refusalSentence)
}

func referencePolicies(gateway string) []policy {
	return []policy{
		{
			name:      "fleetgate-guard-workloads",
			resources: workloads(),
			conditions: []k8sadmissionv1.MatchCondition{
				{Name: "not-reserved", Expression: "has(request.namespace) && !(" + reserved("request.namespace") + ")"},
			},
			rules: []k8sadmissionv1.Validation{forbiddenSaying("false", workloadSentence)},
		},
		{
			name:      "fleetgate-guard-definitions",
			resources: []k8sadmissionv1.NamedRuleWithOperations{on(changes, "apiextensions.k8s.io", "v1", "customresourcedefinitions")},
			conditions: []k8sadmissionv1.MatchCondition{
				{Name: "of-the-fleet", Expression: fmt.Sprintf("has(request.name) && ['networking.fleet.azure.com', '%s', '%s', '%s'].exists(g, request.name.endsWith('.' + g))",
					clusterv1beta1.GroupName, placementv1beta1.GroupName, multiclusterv1alpha1.GroupVersion.Group)},
				{Name: "no-administrator", Expression: "!(" + administrators(gateway) + ")"},
			},
			variables: []k8sadmissionv1.Variable{groupsVariable()},
			rules:     []k8sadmissionv1.Validation{refused("false")},
		},
		{
			name:      "fleetgate-guard-namespaces",
			resources: []k8sadmissionv1.NamedRuleWithOperations{on(changes, "", "v1", "namespaces")},
			conditions: []k8sadmissionv1.MatchCondition{
				{Name: "reserved", Expression: "has(request.name) && (" + reserved("request.name") + ")"},
				untrusted(gateway),
			},
			variables: []k8sadmissionv1.Variable{groupsVariable()},
			rules:     []k8sadmissionv1.Validation{refused("false")},
		},
		reservedContents(gateway),
		memberObjects(gateway),
		memberClusters(gateway),
	}
}

// reservedContents guards what is in reserved namespaces. Leases and events are left
// to everybody: components elect leaders and report there.
func reservedContents(gateway string) policy {
	deletions := []k8sadmissionv1.OperationType{k8sadmissionv1.Delete}
	return policy{
		name: "fleetgate-guard-reserved-namespaces",
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(writes, "", "v1", "bindings", "configmaps", "endpoints", "limitranges", "persistentvolumeclaims", "podtemplates", "pods",
				"replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "serviceaccounts/token", "services"),
			on(writes, "apps", "v1", "controllerrevisions", "daemonsets", "replicasets", "deployments", "statefulsets"),
			on(writes, "authorization.k8s.io", "v1", "localsubjectaccessreviews"),
			on(writes, "autoscaling", "v1", "horizontalpodautoscalers"),
			on(writes, "batch", "v1", "cronjobs", "jobs"),
			on(writes, "discovery.k8s.io", "v1", "endpointslices"),
			on(writes, "networking.k8s.io", "v1", "ingresses", "networkpolicies"),
			on(writes, "policy", "v1", "poddisruptionbudgets"),
			on(writes, "rbac.authorization.k8s.io", "v1", "roles", "rolebindings"),
			on(writes, "storage.k8s.io", "v1", "csistoragecapacities"),
			on(deletions, "*", "*", "*"),
		},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "reserved", Expression: "has(request.namespace) && (" + guarded("request.namespace") + ")"},
			{Name: "guarded-elsewhere", Expression: fmt.Sprintf("!(request.resource.group == '' && request.resource.resource in ['namespaces', 'events']) && !(request.resource.group in ['%s', '%s', 'events.k8s.io', 'coordination.k8s.io'])",
				clusterv1beta1.GroupName, placementv1beta1.GroupName)},
			untrusted(gateway),
		},
		variables: []k8sadmissionv1.Variable{groupsVariable()},
		rules:     []k8sadmissionv1.Validation{refused("false")},
	}
}

// guarded is true for the namespaces whose contents the reference guards.
func guarded(name string) string {
	return fmt.Sprintf("%[1]s.startsWith('%[2]s') || %[1]s in ['%[3]s', 'kube-system', 'kube-public', 'kube-node-lease']",
		name, clusterv1beta1.MemberNamespacePrefix, clusterv1beta1.SystemNamespace)
}

// memberObjects lets a member's identity write in its namespace. Each MemberCluster
// is a parameter; one that does not exist refuses nobody.
func memberObjects(gateway string) policy {
	identity := "params.spec.identity.name == request.userInfo.username || " +
		"'system:serviceaccount:' + (has(params.spec.identity.namespace) ? params.spec.identity.namespace : '" + clusterv1beta1.SystemNamespace + "') + ':' + params.spec.identity.name == request.userInfo.username"
	return policy{
		name: "fleetgate-guard-member-objects",
		each: &k8sadmissionv1.ParamKind{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MemberCluster"},
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(changes, clusterv1beta1.GroupName, clusterv1beta1.GroupVersion.Version, "internalmemberclusters", "internalmemberclusters/status"),
			on(changes, placementv1beta1.GroupName, placementv1beta1.GroupVersion.Version, "works", "works/status"),
		},
		conditions: []k8sadmissionv1.MatchCondition{
			inMemberNamespace(),
			untrusted(gateway),
		},
		variables: []k8sadmissionv1.Variable{groupsVariable()},
		rules: []k8sadmissionv1.Validation{
			refused(fmt.Sprintf("'%s' + params.metadata.name != request.namespace || %s", clusterv1beta1.MemberNamespacePrefix, identity)),
		},
	}
}

// fleetAnnotation begins the annotations by which the reference tells members that
// a managed service keeps from those that anybody may keep.
const fleetAnnotation = "fleet.azure.com"

// memberClusters guards members: those of a managed service in all but labels, other
// annotations and taints, all of them in their status.
func memberClusters(gateway string) policy {
	hasFleet := func(object string) string {
		return fmt.Sprintf("(%[1]s != null && has(%[1]s.metadata.annotations) && %[1]s.metadata.annotations.exists(k, k.startsWith('%[2]s')))", object, fleetAnnotation)
	}
	return policy{
		name: "fleetgate-guard-members",
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(changes, clusterv1beta1.GroupName, clusterv1beta1.GroupVersion.Version, "memberclusters", "memberclusters/status"),
		},
		variables: []k8sadmissionv1.Variable{
			groupsVariable(),
			{Name: "trusted", Expression: trusted(gateway)},
			{Name: "is", Expression: hasFleet("object")},
			{Name: "was", Expression: hasFleet("oldObject")},
			{Name: "status", Expression: "request.operation == 'UPDATE' && !" + same("status")},
			{Name: "spec", Expression: "request.operation == 'UPDATE' && !(object.spec.identity == oldObject.spec.identity && " +
				same("spec.heartbeatPeriodSeconds") + " && " + same("spec.deleteOptions") + ")"},
			{Name: "annotations", Expression: fmt.Sprintf("request.operation == 'UPDATE' && oldObject != null && has(oldObject.metadata.annotations) && "+
				"oldObject.metadata.annotations.exists(k, k.startsWith('%s') && !(has(object.metadata.annotations) && k in object.metadata.annotations && object.metadata.annotations[k] == oldObject.metadata.annotations[k]))", fleetAnnotation)},
		},
		rules: []k8sadmissionv1.Validation{
			forbidden("request.operation != 'UPDATE' || !variables.was || variables.is",
				"no user is allowed to remove all fleet pre-fixed annotations from a fleet member cluster"),
			forbidden("request.operation != 'UPDATE' || variables.was || !variables.is",
				"no user is allowed to add a fleet pre-fixed annotation to an upstream member cluster"),
			refused("variables.trusted || !variables.status"),
			refused("variables.trusted || !variables.was || !(variables.spec || variables.annotations)"),
			refused("variables.trusted || request.operation == 'UPDATE' || !(variables.is || variables.was)"),
		},
	}
}
