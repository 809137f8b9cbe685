// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/hubcertificate"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// keepCertificate renews a client certificate for the hub, if the agent is configured to have one.
func (a *agent) keepCertificate(ctx context.Context, hubConfig *rest.Config, member string) error {
	if !a.Registration.HubCertificate {
		return nil
	}
	hub, err := kubernetes.NewForConfig(hubConfig)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	return a.keeper(hubConfig, hub, member).Run(ctx)
}

func (a *agent) keeper(hubConfig *rest.Config, hub kubernetes.Interface, member string) *hubcertificate.Keeper {
	return &hubcertificate.Keeper{Member: a.clientset, Namespace: a.Member.Namespace, Hub: hub, Origin: cmp.Or(a.enroller.Origin(), hubConfig.Host), Cluster: member}
}

// requester returns how to create requests for certificates of add-ons: with the agent's own
// certificate if it is configured to have one, because managers of add-ons know it by that name.
func (a *agent) requester(hubConfig *rest.Config, member string) func(context.Context) (certificatesv1client.CertificateSigningRequestInterface, error) {
	return func(ctx context.Context) (certificatesv1client.CertificateSigningRequestInterface, error) {
		config := hubConfig
		if a.Registration.HubCertificate {
			cert, key, err := a.keeper(hubConfig, nil, member).Pair(ctx)
			if err != nil {
				return nil, err
			}
			if len(cert) == 0 {
				return nil, refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed, "the hub has not issued the agent's own certificate yet")
			}
			config = rest.AnonymousClientConfig(hubConfig)
			config.CertData, config.KeyData = cert, key
		}
		hub, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
		}
		return hub.CertificatesV1().CertificateSigningRequests(), nil
	}
}

// forgetCertificate deletes the certificate from a member that has left.
func (a *agent) forgetCertificate(ctx context.Context) error {
	if !a.Registration.HubCertificate {
		return nil
	}
	return hubcertificate.Forget(ctx, a.clientset, a.Member.Namespace)
}
