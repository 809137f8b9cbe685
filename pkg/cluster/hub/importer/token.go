// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// tokenFor is the registration token for a Cluster's import.
func tokenFor(cluster *registrationv1alpha1.Cluster) *registrationv1alpha1.ClusterRegistrationToken {
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: TokenName(cluster.Name),
		Annotations: map[string]string{
			registrationv1alpha1.AnnotationForCluster: cluster.Name,
			registrationv1alpha1.AnnotationApproval:   registrationv1alpha1.ApprovalAuto,
		},
	}}
	token.Spec.TTL = &metav1.Duration{Duration: tokenLifetime}
	return token
}

func tokenPending() *result {
	return &result{reason: ReasonTokenPending, message: "the registration token for this cluster is being created", retry: retrySoon}
}

// readValues are the agent's values in the Secret of a token, or the reason why they are not used. A
// user who can create Secrets in the namespace could have created one with that name. It would connect
// the agent of another cluster, installed with a kubeconfig that this user cannot read, to a hub of
// this user.
func readValues(cluster *registrationv1alpha1.Cluster, token *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret,
	hubURL string, hubCA []byte) (*registrationv1alpha1.AgentValues, *result) {
	switch {
	case !metav1.IsControlledBy(token, cluster):
		return nil, failed(ReasonTokenConflict, "ClusterRegistrationToken %q is not owned by this Cluster: delete it", token.Name)
	case !metav1.IsControlledBy(secret, token) || secret.Type != registrationv1alpha1.SecretTypeRegistrationValues:
		return nil, failed(ReasonTokenConflict, "Secret %q does not belong to ClusterRegistrationToken %q: delete it", secret.Name, token.Name)
	}
	var values registrationv1alpha1.AgentValues
	if err := untrusted.Unmarshal(secret.Data[registrationv1alpha1.RegistrationValuesKey], untrusted.Object, &values); err != nil || values.Token == "" {
		return nil, tokenPending()
	}
	if values.APIServerURL != hubURL || !bytes.Equal(bytes.TrimSpace([]byte(values.APIServerCA)), bytes.TrimSpace(hubCA)) ||
		values.ClusterNamespace != token.Namespace || values.TokenName != token.Name {
		// The hub's address may have just changed: the gateway updates the Secret.
		return nil, &result{reason: ReasonTokenPending, message: "The Secret of the registration token names another hub; the gateway is updating it", retry: retryLater}
	}
	return &values, nil
}
