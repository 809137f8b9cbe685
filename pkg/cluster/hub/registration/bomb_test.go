// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/bomb"
)

// Users who can write Secrets in a registration namespace control the content of values.
func TestIsProven_RejectsValuesWithExpandingAliases(t *testing.T) {
	request := requestOf(t, func(*registrationv1alpha1.ClusterRegistration) {})
	secret := &corev1.Secret{Data: map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte("token: token\n" + bomb.Secret())}}
	bomb.Check(t, func() {
		if isProven(secret, request) {
			t.Error("the values were accepted")
		}
	})
}
