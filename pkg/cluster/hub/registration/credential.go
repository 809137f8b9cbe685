// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// credentialSecret reads the metadata of the Secret to which a member's tokens are bound; nil if it
// does not exist. Only its UID matters.
func credentialSecret(ctx context.Context, from client.Reader, member string) (*metav1.PartialObjectMetadata, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentCredentialSecret}
	if found, err := reconcileutil.GetIfExists(ctx, from, key, secret, "reading the credential Secret of member %q", member); !found {
		return nil, err
	}
	return secret, nil
}

// credentialFor requests a token of the member's account, bound to the Secret whose deletion revokes
// it.
func (r *GrantReconciler) credentialFor(ctx context.Context, mc *clusterv1beta1.MemberCluster, bound types.UID) (sealing.Credential, error) {
	seconds := int64(r.lifetime().Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1",
			Kind:       "Secret",
			Name:       clusterv1beta1.AgentCredentialSecret,
			UID:        bound,
		},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(mc.Name),
		Name:      clusterv1beta1.AgentAccount,
	}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return sealing.Credential{}, fmt.Errorf("requesting a token for member %q: %w", mc.Name, err)
	}
	return sealing.Credential{
		Member:  mc.Name,
		Token:   request.Status.Token,
		Expires: request.Status.ExpirationTimestamp.Time,
	}, nil
}

// recordExpiry records the credential's expiry if the API server granted less time than requested.
// Otherwise it follows from the time of the grant.
func (r *GrantReconciler) recordExpiry(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, expires time.Time) error {
	if expires.Add(grantSlack).After(r.Clock.Now().Add(r.lifetime())) {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, request, func() {
		metav1.SetMetaDataAnnotation(&request.ObjectMeta, AnnotationCredentialExpires, expires.UTC().Format(time.RFC3339))
	}, "recording on ClusterRegistration %q", request.Name)
}

func (r *GrantReconciler) lifetime() time.Duration {
	if r.AgentTokenLifetime == 0 {
		return DefaultAgentTokenLifetime
	}
	return r.AgentTokenLifetime
}

// isRevoked reports whether the credential of a granted request was revoked early: the Cluster or its
// member was deleted, or the Secret to which the credential is bound was re-created. Each of these is a
// watch event that triggers this check, so caches are enough to see that nothing was revoked. An
// apparent revocation is confirmed with the API server, because the grant may be newer than a cache.
func (r *GrantReconciler) isRevoked(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (bool, error) {
	if r.Secrets != nil {
		if revoked, err := isRevokedBy(ctx, request, r.Client, r.Secrets); err != nil || !revoked {
			return false, err
		}
	}
	return isRevokedBy(ctx, request, r.Live, r.Live)
}

// isRevokedBy decides from readers of Clusters and MemberClusters, and of Secrets.
func isRevokedBy(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, clusters, secrets client.Reader) (bool, error) {
	var cluster registrationv1alpha1.Cluster
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Status.ClusterName}
	if found, err := reconcileutil.GetIfExists(ctx, clusters, key, &cluster, "reading Cluster %q", request.Status.ClusterName); !found {
		return err == nil, err
	}
	mc, err := getMember(ctx, clusters, cluster.Annotations[AnnotationMember])
	if err != nil {
		return false, err
	}
	if mc == nil || !isOrigin(mc, &cluster) {
		return true, nil
	}
	bound, err := credentialSecret(ctx, secrets, mc.Name)
	return bound != nil && request.Status.CredentialUID != "" && bound.UID != request.Status.CredentialUID, err
}
