// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/bomb"
)

// A user who can write Secrets in a registration namespace can create the Secret with an import's
// values in advance, and set the token as its owner.
func TestReadValues_RejectsExpandingAliases(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c", UID: "cluster"}}
	token := tokenFor(cluster)
	token.UID, token.OwnerReferences = "token", []metav1.OwnerReference{{UID: cluster.UID, Controller: ptr.To(true)}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: token.Name, OwnerReferences: []metav1.OwnerReference{{UID: token.UID, Controller: ptr.To(true)}}},
		Type:       registrationv1alpha1.SecretTypeRegistrationValues,
		Data:       map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte("token: token\n" + bomb.Secret())},
	}
	bomb.Check(t, func() {
		if values, failure := readValues(cluster, token, secret, "https://hub", nil); values != nil || failure == nil || failure.reason != ReasonTokenPending {
			t.Errorf("got %v, %+v", values, failure)
		}
	})
}
