// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// reservedPrefixes are prefixes of namespaces that cannot be assigned to a member, because the
// administrators of one member do not administer them.
var reservedPrefixes = []string{"kube-", "fleet-"}

// Given returns the member that an administrator assigned a namespace to, or "". why is not empty
// if the label is refused.
func Given(namespace string, labels map[string]string, gatewayNamespace string) (member, why string) {
	member = labels[clusterv1beta1.LabelMember]
	if member == "" {
		return "", ""
	}
	if namespace == gatewayNamespace {
		return "", fmt.Sprintf("namespace %s is the gateway's own and cannot be given to a member", namespace)
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(namespace, prefix) {
			return "", fmt.Sprintf("namespaces that begin with %s cannot be given to a member", prefix)
		}
	}
	return member, ""
}
