// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestReadValues_AcceptsOnlySecretOfClustersToken(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-default", Name: "c", UID: "cluster"}}
	for name, tc := range map[string]struct {
		change func(token *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, values *registrationv1alpha1.AgentValues)
		want   string
	}{
		"gateway's Secret": {change: func(*registrationv1alpha1.ClusterRegistrationToken, *corev1.Secret, *registrationv1alpha1.AgentValues) {
		}},
		"foreign token": {want: ReasonTokenConflict, change: func(token *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, _ *registrationv1alpha1.AgentValues) {
			token.OwnerReferences = nil
		}},
		"Secret without an owner": {want: ReasonTokenConflict, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, _ *registrationv1alpha1.AgentValues) {
			secret.OwnerReferences = nil
		}},
		"Secret of another token": {want: ReasonTokenConflict, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, _ *registrationv1alpha1.AgentValues) {
			secret.OwnerReferences[0].UID = "another"
		}},
		"Secret of another type": {want: ReasonTokenConflict, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret, _ *registrationv1alpha1.AgentValues) {
			secret.Type = corev1.SecretTypeOpaque
		}},
		"other hub": {want: ReasonTokenPending, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, values *registrationv1alpha1.AgentValues) {
			values.APIServerURL = "https://mallory"
		}},
		"other CA": {want: ReasonTokenPending, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, values *registrationv1alpha1.AgentValues) {
			values.APIServerCA = "mallory"
		}},
		"values of another namespace": {want: ReasonTokenPending, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, values *registrationv1alpha1.AgentValues) {
			values.ClusterNamespace = "mallory"
		}},
		"values of another token": {want: ReasonTokenPending, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, values *registrationv1alpha1.AgentValues) {
			values.TokenName = "mallory"
		}},
		"no token yet": {want: ReasonTokenPending, change: func(_ *registrationv1alpha1.ClusterRegistrationToken, _ *corev1.Secret, values *registrationv1alpha1.AgentValues) {
			values.Token = ""
		}},
	} {
		token := tokenFor(cluster)
		token.UID, token.OwnerReferences = "token", []metav1.OwnerReference{{UID: cluster.UID, Controller: ptr.To(true)}}
		secret := &corev1.Secret{Type: registrationv1alpha1.SecretTypeRegistrationValues, ObjectMeta: metav1.ObjectMeta{
			Name: token.Name, OwnerReferences: []metav1.OwnerReference{{UID: token.UID, Controller: ptr.To(true)}},
		}}
		values := &registrationv1alpha1.AgentValues{
			ClusterNamespace: "fleet-default", TokenName: token.Name, Token: "t", APIServerURL: "https://hub:6443", APIServerCA: "ca\n",
		}
		tc.change(token, secret, values)
		written, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		secret.Data = map[string][]byte{registrationv1alpha1.RegistrationValuesKey: written}
		got, failure := readValues(cluster, token, secret, "https://hub:6443", []byte("ca\n"))
		if (got != nil) != (tc.want == "") || (failure != nil) != (tc.want != "") || failure != nil && failure.reason != tc.want {
			t.Errorf("%s: %v, %+v", name, got, failure)
		}
	}
}
