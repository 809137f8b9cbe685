// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// reservedPrefixes begin names of namespaces that are never given to a member:
// who administers them is not who administers one member.
var reservedPrefixes = []string{"kube-", "fleet-"}

// Given says to which member an administrator gave a namespace. It is empty if
// the namespace is given to none; why is not empty if that is against a label.
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
