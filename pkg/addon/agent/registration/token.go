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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// token requests a token for the agent of an add-on. It ends with its account.
func token(ctx context.Context, hub client.SubResourceClientConstructor, cluster, addOn string) (data map[string][]byte, again time.Duration, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addOn + addonv1alpha1.TokenAccountSuffix}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(clusterv1.AgentCertificateLife.Seconds()))}}
	if err := hub.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, 0, fmt.Errorf("requesting a token of account %s/%s: %w", account.Namespace, account.Name, err)
	}
	return map[string][]byte{tokenKey: []byte(request.Status.Token)}, 0, nil
}
