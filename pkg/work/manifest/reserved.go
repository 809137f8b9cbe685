// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Reserved says why an object is never brought to a member, wherever it comes from, or
// is empty. The sentence is for its author and names the remedy.
//
// Reserved are the namespaces of the house (see [ReservedNamespace]) with all that is in
// them, and Secrets that a member fills with a token that never ends: who could place
// either would act as the gateway's account, or read the agent's key. Of the house's own
// objects on a member none comes by a Work.
func Reserved(object *unstructured.Unstructured, own ...string) string {
	kind := object.GroupVersionKind().GroupKind()
	namespace := object.GetNamespace()
	if kind == (schema.GroupKind{Kind: "Namespace"}) {
		namespace = object.GetName()
	}
	if ReservedNamespace(namespace, own...) {
		return fmt.Sprintf("Namespace %s of a member is kept for the accounts, keys and credentials of fleetgate: use another namespace", namespace)
	}
	if !IsSecret(kind) {
		return ""
	}
	if of, _, _ := unstructured.NestedString(object.Object, "type"); of == string(corev1.SecretTypeServiceAccountToken) {
		return fmt.Sprintf("A Secret of type %s is not brought to members, which would put a token into it that never ends: ask for a ManagedServiceAccount instead", of)
	}
	return ""
}

// ReservedNamespace reports whether a namespace on a member is the house's: that of
// agents, that of the accounts of ManagedServiceAccounts, those of further hubs' agents
// on the same member, those of members where the member is a hub itself, and own, which
// an agent adds that was given other names.
func ReservedNamespace(name string, own ...string) bool {
	for _, first := range []string{clusterv1beta1.SystemNamespace, msav1beta1.AccountNamespace} {
		if name == first || strings.HasPrefix(name, first+"-") {
			return true
		}
	}
	return strings.HasPrefix(name, clusterv1beta1.MemberNamespacePrefix) || name != "" && slices.Contains(own, name)
}
