// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reserved decides which objects no user can place on members, in any form. The hub
// checks before it accepts an envelope, renders a chart or selects resources; the agent checks
// before it writes.
package reserved

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Namespace reports whether namespaces of that name on members contain accounts and credentials of
// the fleet. These are the namespaces of agents and of ManagedServiceAccounts, the same for further
// hubs (with a hyphen and the hub's name), and the member namespaces of a hub that is itself a
// member. A Pod there could run as any of those accounts. own are names that an agent uses instead
// of the defaults.
func Namespace(name string, own ...string) bool {
	for _, usual := range []string{clusterv1beta1.SystemNamespace, authenticationv1beta1.AccountNamespace} {
		if name == usual || strings.HasPrefix(name, usual+"-") {
			return true
		}
	}
	return strings.HasPrefix(name, clusterv1beta1.MemberNamespacePrefix) || name != "" && slices.Contains(own, name)
}

// TokenSecret reports whether API servers issue or accept Secrets of that type as credentials,
// whichever client wrote them: for a ServiceAccount or to join a cluster.
func TokenSecret(secretType string) bool {
	return secretType == string(corev1.SecretTypeServiceAccountToken) || secretType == string(corev1.SecretTypeBootstrapToken)
}

// Why returns why the object must not be placed on members, as a predicate of which the object is
// the subject, or "". own is as for [Namespace].
func Why(object *unstructured.Unstructured, own ...string) string {
	kind := object.GroupVersionKind().GroupKind()
	switch {
	case kind == schema.GroupKind{Kind: "Namespace"} && Namespace(object.GetName(), own...):
		return "is a namespace in which the fleet keeps its accounts on members: use another name"
	case Namespace(object.GetNamespace(), own...):
		return fmt.Sprintf("is in namespace %q, in which the fleet keeps its accounts on members: use another", object.GetNamespace())
	case kind == schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		return "would be a request of the agent, which approvers let have a certificate of any node: create it on the member"
	case kind == schema.GroupKind{Kind: "Secret"}:
		// A type that is not a string is none of these types, and the API server rejects it.
		if secretType, _, _ := unstructured.NestedString(object.Object, "type"); TokenSecret(secretType) {
			return fmt.Sprintf("has type %s: such a token never expires; use a ManagedServiceAccount, or ask the member for one", secretType)
		}
	}
	return ""
}
