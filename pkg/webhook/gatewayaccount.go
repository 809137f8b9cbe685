// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// GatewayPolicy returns the policy that limits the gateway's own account, as the
// user that the API server knows it as. Its role has to let it request tokens, write
// token Secrets and bind roles in namespaces that are not known beforehand: those of
// members, and those in which people make registration tokens. RBAC cannot say
// which. Here it is said by names: outside of members' namespaces an account, its
// token and its binding carry the UID of the registration token that they were made
// for, so a stolen credential of the gateway gets a token of no other account, and
// hands no role to anybody else. Nothing of the kind is ever made in the namespaces of
// Kubernetes or in the gateway's own. One account more is let through by its full name:
// that of Argo CD, with the ClusterRole of that name, which leads to labelled members.
//
// Who may change policies can change this one. The gateway may, if it installs by
// itself; where that counts, install with the chart and run it without --install.
func GatewayPolicy(gateway, namespace string, argoCD types.NamespacedName) []client.Object {
	const uid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
	ofRegistration := func(name string) string {
		return fmt.Sprintf("(%s.matches('%s') && !request.namespace.startsWith('kube-') && request.namespace != '%s')", name, uid, namespace)
	}
	ofArgoCD := func(namespace, name string) string {
		return fmt.Sprintf("(%s == '%s' && %s == '%s')", namespace, argoCD.Namespace, name, argoCD.Name)
	}
	const annotation = "kubernetes.io/service-account.name"
	return objectsOf(policy{
		name: "fleetgate-gateway-account",
		resources: []k8sadmissionv1.NamedRuleWithOperations{
			on(creations, "", "v1", "serviceaccounts/token"),
			on(writes, "", "v1", "secrets"),
			on(writes, "rbac.authorization.k8s.io", "v1", "rolebindings", "clusterrolebindings"),
		},
		conditions: []k8sadmissionv1.MatchCondition{
			{Name: "the-gateway", Expression: isUser(gateway)},
			{Name: "not-of-a-member", Expression: fmt.Sprintf("!(has(request.namespace) && request.namespace.startsWith('%s'))", clusterv1beta1.MemberNamespacePrefix)},
		},
		rules: []k8sadmissionv1.Validation{
			forbidden("request.resource.resource != 'serviceaccounts' || (has(request.name) && ("+ofRegistration("request.name")+" || "+ofArgoCD("request.namespace", "request.name")+"))",
				"the gateway requests tokens of members' accounts, of registration tokens' accounts and of Argo CD's only"),
			forbidden("request.resource.resource != 'secrets' || !has(dyn(object).type) || dyn(object).type != 'kubernetes.io/service-account-token' || "+
				"(has(object.metadata.annotations) && '"+annotation+"' in object.metadata.annotations && "+ofRegistration("object.metadata.annotations['"+annotation+"']")+")",
				"the gateway writes token Secrets of registration tokens' accounts only"),
			forbidden("request.resource.resource != 'rolebindings' || (dyn(object).roleRef.kind == 'Role' && dyn(object).roleRef.name == object.metadata.name && "+ofRegistration("object.metadata.name")+" && "+
				"has(dyn(object).subjects) && dyn(object).subjects.all(s, s.kind == 'ServiceAccount' && s.name == object.metadata.name && has(s.namespace) && s.namespace == request.namespace))",
				"the gateway binds the Role of a registration token to the account of that token only"),
			forbidden(fmt.Sprintf("request.resource.resource != 'clusterrolebindings' || (object.metadata.name == dyn(object).roleRef.name && (dyn(object).roleRef.name.startsWith('%s') || "+
				"(dyn(object).roleRef.name == '%s' && has(dyn(object).subjects) && dyn(object).subjects.all(s, s.kind == 'ServiceAccount' && has(s.namespace) && %s))))",
				memberClusterRolePrefix, argoCD.Name, ofArgoCD("s.namespace", "s.name")),
				"the gateway binds the ClusterRoles of members, and Argo CD's to its account, only"),
		},
	})
}

// memberClusterRolePrefix begins the name of the ClusterRole of a member's identity.
const memberClusterRolePrefix = "fleetgate-member-"
