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
)

// Values of the label.
const (
	wanted  = "true"
	dropped = "false"
)

// maxMessage is how much of what the member answers is told, in bytes.
const maxMessage = 1024

// Label is the key of the label that a hub's managed namespaces have. It holds what tells the hub
// from others, as far as a key has room for it: several may want the same namespace.
func Label(hubHash string) string {
	return clusterv1.ManagedNamespaceLabelPrefix + hubHash[:min(len(hubHash), validation.LabelValueMaxLength)]
}

// MemberRules are the rights on the member that it takes. The API server cannot limit them to
// the namespaces that are meant: it does not look at labels.
func MemberRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "create", "patch"}}}
}

// refuseName says why no set gets a namespace of the name, and is empty if one may. House are the
// agent's own.
func refuseName(name string, house []string) string {
	standing := name == metav1.NamespaceDefault || slices.Contains(house, name)
	if standing || slices.ContainsFunc([]string{"kube-", "fleet-", "open-cluster-management"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return "namespaces of Kubernetes and of the fleet are not managed: give the set's managedNamespaces another name"
	}
	return ""
}

// wantedOn are the names of the namespaces that sets want on a cluster, each once.
func wantedOn(cluster *clusterv1.ManagedCluster) []string {
	var names []string
	for _, one := range cluster.Status.ManagedNamespaces {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tell puts what became of namespaces, by name, to all sets that want them. What is not known of
// stays as it was.
func tell(cluster *clusterv1.ManagedCluster, became map[string]metav1.Condition) {
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
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return metav1.Condition{
		Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNamespaceApplyFailed, Message: message,
	}
}
