// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reserved says what is never brought to a member, whoever asks and in whichever
// form: the hub asks it before it takes an envelope, renders a chart or selects, and the
// agent before it writes.
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

// Namespace reports whether namespaces of that name on members hold accounts and
// credentials of the fleet: those of agents, and of ManagedServiceAccounts, also of a
// second hub (which puts a hyphen and its name behind), and those that a hub that is a
// member keeps for its own members. A Pod in one of them would run as whom it likes. Own
// are further names, of an agent that was given others.
func Namespace(name string, own ...string) bool {
	for _, usual := range []string{clusterv1beta1.SystemNamespace, authenticationv1beta1.AccountNamespace} {
		if name == usual || strings.HasPrefix(name, usual+"-") {
			return true
		}
	}
	return strings.HasPrefix(name, clusterv1beta1.MemberNamespacePrefix) || name != "" && slices.Contains(own, name)
}

// TokenSecret reports whether Secrets of that type are credentials that an API server
// makes, or takes, whoever wrote them: of an account, or for joining a cluster.
func TokenSecret(secretType string) bool {
	return secretType == string(corev1.SecretTypeServiceAccountToken) || secretType == string(corev1.SecretTypeBootstrapToken)
}

// Why says why nobody may have the object placed on members, as the end of a
// sentence that begins with it, or nothing. Own are as for [Namespace].
func Why(object *unstructured.Unstructured, own ...string) string {
	kind := object.GroupVersionKind().GroupKind()
	switch {
	case kind == schema.GroupKind{Kind: "Namespace"} && Namespace(object.GetName(), own...):
		return "is a namespace in which the fleet keeps its accounts on members: use another name"
	case Namespace(object.GetNamespace(), own...):
		return fmt.Sprintf("is in namespace %q, in which the fleet keeps its accounts on members: use another", object.GetNamespace())
	case kind == schema.GroupKind{Kind: "Secret"}:
		// What cannot be read as a text is none of these types, and the API server refuses it.
		if secretType, _, _ := unstructured.NestedString(object.Object, "type"); TokenSecret(secretType) {
			return fmt.Sprintf("has type %s: such a token never expires; use a ManagedServiceAccount, or ask the member for one", secretType)
		}
	}
	return ""
}
