// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/bomb"
)

// Who may write Secrets where clusters register can write the one with the values of an
// import before it is made.
func TestValuesThatStandForGigabytesAreNotInstalled(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: TokenName("c")},
		Data:       map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte("token: token\n" + bomb.Secret())},
	}
	r := &Reconciler{Live: fake.NewClientBuilder().WithObjects(secret).Build()}
	bomb.Check(t, func() {
		values, err := r.values(t.Context(), &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}})
		if values != nil || err != nil {
			t.Errorf("got %v, %v", values, err)
		}
	})
}
