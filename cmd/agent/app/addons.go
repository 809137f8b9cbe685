// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/addon/agent/health"
	"fleetgate.io/fleetgate/pkg/addon/agent/registration"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// addOns gives the agents of add-ons in the hub's namespace with the cluster's name their credentials
// and reports their health, once the hub serves the kind and allows the agent to read it there.
func (a *agent) addOns(hubConfig *rest.Config, cluster string) (hubPart, error) {
	hub, err := metadata.NewForConfig(hubConfig)
	if err != nil {
		return hubPart{}, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	addOns := hub.Resource(addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")).Namespace(cluster)
	return hubPart{
		undone: "no add-ons are served", group: addonv1alpha1.GroupName,
		try: func(ctx context.Context) error {
			_, err := addOns.List(ctx, metav1.ListOptions{Limit: 1})
			return err
		},
		serve: func(ctx context.Context) error { return a.serveAddOns(ctx, hubConfig, cluster) },
	}, nil
}

func (a *agent) serveAddOns(ctx context.Context, hubConfig *rest.Config, cluster string) error {
	mgr, err := a.newHubManager(hubConfig, inNamespace(cluster), func() {})
	if err != nil {
		return err
	}
	server, err := serverOf(hubConfig)
	if err != nil {
		return err
	}
	driver := addonv1alpha1.DriverToken
	if a.Registration.HubCertificate {
		driver = addonv1alpha1.DriverCSR
	}
	for _, add := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&health.Reconciler{Hub: mgr.GetClient(), Member: a.direct, Clock: clock.RealClock{}},
		&registration.Reconciler{
			Hub: mgr.GetClient(), Cluster: cluster, Driver: driver, Requests: a.requester(hubConfig, cluster), Server: server,
			Secrets: a.addOnSecrets(), Clock: clock.RealClock{},
		},
	} {
		if err := add.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the add-ons of member %q: %w", cluster, err)
		}
	}
	log.FromContext(ctx).V(1).Info("Serving add-ons", "namespace", cluster, "driver", driver)
	return mgr.Start(ctx)
}

func (a *agent) addOnSecrets() *registration.Secrets {
	return &registration.Secrets{Member: a.direct, Namespace: a.Member.Namespace, Reserved: []string{a.Accounts.Namespace}}
}

// serverOf is where the hub is, for kubeconfigs of add-ons. They use the agent's proxy.
func serverOf(hub *rest.Config) (clientcmdapi.Cluster, error) {
	server := clientcmdapi.Cluster{Server: hub.Host, CertificateAuthorityData: hub.CAData, TLSServerName: hub.ServerName}
	if len(hub.CAData) == 0 && hub.CAFile != "" {
		ca, err := os.ReadFile(hub.CAFile)
		if err != nil {
			return server, fmt.Errorf("reading the CA of the hub: %w", err)
		}
		server.CertificateAuthorityData = ca
	}
	if hub.Proxy == nil {
		return server, nil
	}
	parsed, err := url.Parse(hub.Host)
	if err != nil {
		return server, fmt.Errorf("reading the URL of the hub: %w", err)
	}
	proxy, err := hub.Proxy(&http.Request{URL: parsed})
	if err != nil {
		return server, fmt.Errorf("choosing the proxy to the hub: %w", err)
	}
	if proxy != nil {
		server.ProxyURL = proxy.String()
	}
	return server, nil
}
