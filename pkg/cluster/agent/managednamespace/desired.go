// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Values of the label.
const (
	wanted  = "true"
	dropped = "false"
)

// maxMessage limits the bytes of a member's error in a condition.
const maxMessage = 1024

// Label returns the label key of a hub's managed namespaces. It contains the hub's hash, shortened
// to the size of a key, because several hubs can request the same namespace.
func Label(hubHash string) string {
	return clusterv1.ManagedNamespaceLabelPrefix + hubHash[:min(len(hubHash), validation.LabelValueMaxLength)]
}

// MemberRules returns the rights that are needed on the member. RBAC cannot restrict them to
// labelled namespaces.
func MemberRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "create", "patch"}}}
}

// refuseName returns why no set can request a namespace of this name; empty if it can. house are
// the agent's own namespaces.
func refuseName(name string, house []string) string {
	reserved := name == metav1.NamespaceDefault || slices.Contains(house, name)
	if reserved || slices.ContainsFunc([]string{"kube-", "fleet-", "open-cluster-management"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return "namespaces of Kubernetes and of the fleet are not managed: give the set's managedNamespaces another name"
	}
	return ""
}

// wantedOn returns the requested namespaces of a cluster, without duplicates.
func wantedOn(cluster *clusterv1.ManagedCluster) []string {
	var names []string
	for _, one := range cluster.Status.ManagedNamespaces {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setConditions sets the conditions, by name, for all sets that request the namespace. Without a condition,
// the previous one stays.
func setConditions(cluster *clusterv1.ManagedCluster, became map[string]metav1.Condition) {
	for i := range cluster.Status.ManagedNamespaces {
		one := &cluster.Status.ManagedNamespaces[i]
		if condition, known := became[one.Name]; known {
			meta.SetStatusCondition(&one.Conditions, condition)
		}
	}
}

func applied() metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonNamespaceApplied, Message: "The namespace is there",
	}
}

func failed(message string) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNamespaceApplyFailed, Message: untrusted.Truncate(message, maxMessage),
	}
}
