// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/cluster/agent/hubcertificate"
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
	return (&hubcertificate.Keeper{
		Member: a.clientset, Namespace: a.Member.Namespace, Hub: hub, Origin: cmp.Or(a.enroller.Origin(), hubConfig.Host), Cluster: member,
	}).Run(ctx)
}

// forgetCertificate deletes the certificate from a member that has left.
func (a *agent) forgetCertificate(ctx context.Context) error {
	if !a.Registration.HubCertificate {
		return nil
	}
	return hubcertificate.Forget(ctx, a.clientset, a.Member.Namespace)
}
