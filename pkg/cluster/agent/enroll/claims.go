// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"strings"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// uidLength is that of the UID which ends the name of a registration token's account.
const uidLength = 36

// claimsOf reads for which namespace, and from which ClusterRegistrationToken, a
// registration token is, as far as it says so itself. It proves nothing: the hub does.
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
