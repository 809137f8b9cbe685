// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"time"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// MemberPolicies returns the ValidatingAdmissionPolicies, with their bindings, that
// protect what belongs to the hub where RBAC has no words for it. They hold whatever
// guard rails were chosen, fail closed, and hold while the gateway is down. They go
// by the name of the namespace, not by its labels, which could be taken off. Exempt
// is who may bypass (BypassResource): no name and no label exempts, but for the
// API server's own controllers where they clean up.
//
//   - Tokens: an account that may request tokens for itself could mint one that
//     outlives every revocation. Lifetime is at most tokenLifetime, and the
//     token is bound to the Secret whose deletion revokes it. Its audience is not
//     looked at: the API server fills in its own before policies see the request,
//     and nothing tells those from others.
//   - Secrets: a Secret of another type can make the hub's controllers fill in a
//     token. Members write Opaque ones of a ManagedServiceAccount only. Owners
//     and finalizers may change on any: the garbage collector does that.
//   - Works: a member writes what became of a Work. What is in it, and to which
//     binding it belongs, is the hub's.
//   - Identities: a member's account writes in its own namespace only, and its own
//     InternalMemberCluster only, whatever else it was given a right to.
//   - Namespaces: those of members are made and deleted by joining and leaving.
//   - Keys: labels and annotations of ours say what the hub has done. Others may
//     take them off a Cluster, which is how an administrator lets it register anew.
func MemberPolicies(tokenLifetime time.Duration) []client.Object {
	return append(objectsOf(tokenPolicy(tokenLifetime), secretPolicy(), workPolicy(), identityPolicy(), namespacePolicy(), keyPolicy(), bypassAudit()),
		memberBoundPolicies()...)
}

func tokenPolicy(lifetime time.Duration) policy {
	return policy{
		name:       "fleetgate-member-token-requests",
		resources:  []k8sadmissionv1.NamedRuleWithOperations{on(creations, "", "v1", "serviceaccounts/token")},
		conditions: []k8sadmissionv1.MatchCondition{inMemberNamespace(), notExempt(BypassResource)},
		rules: []k8sadmissionv1.Validation{
			{
				Expression: fmt.Sprintf("request.name == '%s'", clusterv1beta1.AgentAccount),
				Message:    fmt.Sprintf("a member requests tokens of its account %q only", clusterv1beta1.AgentAccount),
			},
			{
				Expression: fmt.Sprintf("has(object.spec.expirationSeconds) && object.spec.expirationSeconds <= %d", int64(lifetime.Seconds())),
				Message:    fmt.Sprintf("a token of a member's account lives at most %s", lifetime),
			},
			{
				// The API server has the field in every request, empty if nobody set it.
				Expression: fmt.Sprintf("has(object.spec.boundObjectRef) && has(object.spec.boundObjectRef.kind) && has(object.spec.boundObjectRef.name) && "+
					"object.spec.boundObjectRef.kind == 'Secret' && object.spec.boundObjectRef.name == '%s'", clusterv1beta1.AgentCredentialSecret),
				Message: fmt.Sprintf("a token of a member's account is bound to Secret %q, so that deleting that Secret revokes it", clusterv1beta1.AgentCredentialSecret),
			},
		},
	}
}

func secretPolicy() policy {
	unchanged := strings.Join([]string{same("data"), same("metadata.labels"), same("metadata.annotations")}, " && ")
	return policy{
		name:      "fleetgate-member-secrets",
		resources: []k8sadmissionv1.NamedRuleWithOperations{on(writes, "", "v1", "secrets")},
		conditions: []k8sadmissionv1.MatchCondition{
			inMemberNamespace(),
			{Name: "changes-what-is-bounded", Expression: "oldObject == null || !(" + unchanged + ")"},
			notExempt(BypassResource),
		},
		rules: []k8sadmissionv1.Validation{
			{
				Expression: "object.type == 'Opaque'",
				Message:    "a member writes Secrets of type Opaque only",
			},
			{
				Expression: fmt.Sprintf("has(object.metadata.labels) && object.metadata.labels[?'%s'].orValue('') == '%s'",
					msav1beta1.LabelManagedServiceAccount, msav1beta1.LabelManagedServiceAccountValue),
				Message: fmt.Sprintf("a member writes Secrets of its ManagedServiceAccounts only, labelled %s=%s",
					msav1beta1.LabelManagedServiceAccount, msav1beta1.LabelManagedServiceAccountValue),
			},
			{
				Expression: fmt.Sprintf("has(object.data) && object.data.size() == 2 && '%s' in object.data && '%s' in object.data", msav1beta1.SecretKeyCA, msav1beta1.SecretKeyToken),
				Message:    fmt.Sprintf("the Secret of a ManagedServiceAccount has exactly the keys %s and %s", msav1beta1.SecretKeyCA, msav1beta1.SecretKeyToken),
			},
			{
				// data holds base64: four characters for three bytes, each of two values filled up.
				Expression: fmt.Sprintf("!has(object.data) || object.data.map(k, size(object.data[k])).sum() <= %d", (msav1beta1.MaxSecretBytes+4)/3*4),
				Message:    fmt.Sprintf("a Secret written by a member holds at most %d bytes", msav1beta1.MaxSecretBytes),
			},
			{
				Expression: "!has(object.metadata.annotations) || !object.metadata.annotations.exists(k, k.startsWith('kubernetes.io/service-account'))",
				Message:    "a Secret written by a member carries no kubernetes.io/service-account annotation",
			},
		},
	}
}

// inMemberNamespace is true for requests in a member's namespace.
func inMemberNamespace() k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{
		Name: "member-namespace", Expression: fmt.Sprintf("request.namespace.startsWith('%s')", clusterv1beta1.MemberNamespacePrefix),
	}
}

// notExempt is false for who may bypass.
func notExempt(resource string) k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{
		Name:       "not-exempt",
		Expression: fmt.Sprintf("!authorizer.group('%s').resource('%s').check('%s').allowed()", BypassGroup, resource, BypassVerb),
	}
}

// notCleaningUp is false for the API server's own controllers: the garbage collector,
// and what empties namespaces. Accounts in kube-system can be made, and given tokens,
// by who may write there already.
func notCleaningUp() k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{
		Name: "not-cleaning-up",
		Expression: "!(request.userInfo.username == 'system:kube-controller-manager' || " +
			"(has(request.userInfo.groups) && 'system:serviceaccounts:kube-system' in request.userInfo.groups))",
	}
}

// same is true if an update leaves a field of the object as it was.
func same(field string) string {
	return fmt.Sprintf("(has(object.%[1]s) == has(oldObject.%[1]s) && (!has(object.%[1]s) || object.%[1]s == oldObject.%[1]s))", field)
}

func workPolicy() policy {
	return policy{
		name: "fleetgate-member-works",
		resources: []k8sadmissionv1.NamedRuleWithOperations{on([]k8sadmissionv1.OperationType{k8sadmissionv1.Update},
			placementv1beta1.GroupName, placementv1beta1.GroupVersion.Version, "works")},
		conditions: []k8sadmissionv1.MatchCondition{inMemberNamespace(), notExempt(BypassResource)},
		rules: []k8sadmissionv1.Validation{
			forbidden(same("spec"), "what is in a Work is the hub's: change what was placed instead"),
			forbidden(same("metadata.labels")+" && "+same("metadata.annotations"), "labels and annotations of a Work say where it comes from: only the hub writes them"),
		},
	}
}

// identityPolicy: the username of an account is proved by the API server, and holds
// its namespace.
func identityPolicy() policy {
	own := fmt.Sprintf("system:serviceaccount:%s", clusterv1beta1.MemberNamespacePrefix)
	return policy{
		name: "fleetgate-member-identities",
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(changes, "", "*", "namespaces", "configmaps", "secrets", "serviceaccounts", "serviceaccounts/token"),
			on(changes, "rbac.authorization.k8s.io", "*", "*"),
			on(changes, clusterv1beta1.GroupName, "*", "*/*"),
			on(changes, placementv1beta1.GroupName, "*", "*/*"),
			on(changes, registrationv1alpha1.GroupName, "*", "*/*"),
			on(changes, msav1beta1.GroupVersion.Group, "*", "*/*"),
		},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "member-account", Expression: fmt.Sprintf("request.userInfo.username.startsWith('%s')", own)},
		},
		rules: []k8sadmissionv1.Validation{
			forbiddenSaying("has(request.namespace) && request.namespace == request.userInfo.username.split(':')[2] && request.resource.resource != 'namespaces'",
				"request.userInfo.username + ' speaks for one member, and writes in the namespace of that member only'"),
			forbiddenSaying(fmt.Sprintf("request.resource.resource != 'internalmemberclusters' || (has(request.name) && has(request.namespace) && '%s' + request.name == request.namespace)",
				clusterv1beta1.MemberNamespacePrefix),
				"request.userInfo.username + ' reports for its own member only'"),
		},
	}
}

func namespacePolicy() policy {
	name := "(object == null ? oldObject : object).metadata.name"
	return policy{
		name:      "fleetgate-member-namespaces",
		resources: []k8sadmissionv1.NamedRuleWithOperations{on([]k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Delete}, "", "v1", "namespaces")},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "member-namespace", Expression: fmt.Sprintf("%s.startsWith('%s')", name, clusterv1beta1.MemberNamespacePrefix)},
			notCleaningUp(),
			notExempt(BypassResource),
		},
		rules: []k8sadmissionv1.Validation{
			forbiddenSaying("false", fmt.Sprintf("'namespace ' + %s + ' belongs to a member: it is made with its MemberCluster, and goes with it'", name)),
		},
	}
}

func keyPolicy() policy {
	return policy{
		name: "fleetgate-reserved-keys",
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(writes, "", "v1", "namespaces"),
			on(writes, clusterv1beta1.GroupName, clusterv1beta1.GroupVersion.Version, "memberclusters", "internalmemberclusters"),
			on(writes, registrationv1alpha1.GroupName, registrationv1alpha1.GroupVersion.Version, "clusters"),
		},
		conditions: []k8sadmissionv1.MatchCondition{
			// Few objects have keys of ours, and those that do seldom change them.
			{Name: "has-keys-of-ours", Expression: fmt.Sprintf("[object, oldObject].exists(o, o != null && (%s || %s))", hasReserved("labels"), hasReserved("annotations"))},
			notExempt(BypassResource),
		},
		variables: []k8sadmissionv1.Variable{
			{Name: "labels", Expression: "has(object.metadata.labels) ? object.metadata.labels : {}"},
			{Name: "annotations", Expression: "has(object.metadata.annotations) ? object.metadata.annotations : {}"},
			{Name: "oldLabels", Expression: "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"},
			{Name: "oldAnnotations", Expression: "oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}"},
		},
		rules: []k8sadmissionv1.Validation{
			forbidden(keepsReserved("labels", "oldLabels")+" && "+keepsReserved("annotations", "oldAnnotations"),
				"labels and annotations that begin with "+domain+"/ are written by the hub"),
			forbidden(fmt.Sprintf("request.resource.resource == 'clusters' || (%s && %s)", hasAllReserved("oldLabels", "labels"), hasAllReserved("oldAnnotations", "annotations")),
				"labels and annotations that begin with "+domain+"/ are removed by the hub"),
		},
	}
}

// domain, with a slash, begins every key of ours.
const domain = "fleetgate.io"

func hasReserved(keys string) string {
	return fmt.Sprintf("(has(o.metadata.%[1]s) && o.metadata.%[1]s.exists(k, k.startsWith('%[2]s/')))", keys, domain)
}

// keepsReserved is true if no reserved key was added or changed. The one with which
// rules are bypassed is the user's to set: it needs a right of its own.
func keepsReserved(newer, older string) string {
	return fmt.Sprintf("variables.%[1]s.all(k, !k.startsWith('%[3]s/') || k == '%[4]s' || (k in variables.%[2]s && variables.%[2]s[k] == variables.%[1]s[k]))",
		newer, older, domain, AnnotationBypass)
}

// hasAllReserved is true if no reserved key was taken off.
func hasAllReserved(older, newer string) string {
	return fmt.Sprintf("variables.%[1]s.all(k, !k.startsWith('%[3]s/') || k == '%[4]s' || k in variables.%[2]s)", older, newer, domain, AnnotationBypass)
}
