// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"strings"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// uidLength is the length of the UID suffix in the name of a registration token's account.
const uidLength = 36

// claimsOf reads the namespace and name of the ClusterRegistrationToken from a registration token.
// The claims are not verified here; the hub verifies the token.
func claimsOf(token string) (namespace, name string) {
	var claims struct {
		Subject string `json:"sub"`
	}
	if err := untrusted.Claims(token, &claims); err != nil {
		return "", ""
	}
	account, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	namespace, name, _ = strings.Cut(account, ":")
	if len(name) <= uidLength+1 {
		return namespace, ""
	}
	return namespace, name[:len(name)-uidLength-1]
}
