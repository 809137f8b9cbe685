// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

// validity is the requested lifetime of tokens.
const validity = 24 * time.Hour

// tokenIn returns the token of a Secret and when it is due for a refresh; zero if the Secret has no
// token of the account.
func tokenIn(secret *corev1.Secret, account *corev1.ServiceAccount) (token string, due time.Time) {
	var config clusterConfig
	if err := untrusted.UnmarshalJSON(secret.Data[keyConfig], untrusted.Object, &config); err != nil {
		return "", time.Time{}
	}
	claims, err := boundtoken.ParseClaims(config.BearerToken)
	if err != nil || claims.Account != account.UID {
		return "", time.Time{}
	}
	// The jitter depends on the Secret's name; otherwise all Secrets of the account would be due at
	// once.
	jitter := boundtoken.Jitter(types.UID(secret.Name), claims.Issued)
	return config.BearerToken, boundtoken.RefreshAt(claims.Issued, claims.Expires, jitter)
}

func (r *Reconciler) requestToken(ctx context.Context, account *corev1.ServiceAccount) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(validity.Seconds()))}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return request.Status.Token, nil
}
