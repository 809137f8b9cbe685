// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/conversion"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

// newCertificates certifies the names that the hub's API server uses for the Service, and that
// clients of the gateway's own endpoint use.
func newCertificates(config *options.Config, direct client.Client) *serving.Certificates {
	service := config.Serving.ServerName(config.Hub.Namespace)
	names := slices.Concat([]string{service, service + ".cluster.local", "localhost"}, config.Serving.Names(), config.Tunnels.Names())
	switch config.Serving.Certificates {
	case options.CertificatesFiles:
		return serving.FromFiles(config.Serving.CertFile, config.Serving.KeyFile, config.Serving.CAFile)
	case options.CertificatesCertManager:
		return serving.FromCertManager(direct, config.Hub.Namespace, names)
	default:
		return serving.FromAuthority(direct, config.Hub.Namespace, names)
	}
}

// addServing keeps the certificate current.
func (g *gateway) addServing(context.Context) error {
	if !g.Features.Runs(options.ComponentProxy) && !g.Features.Runs(options.ComponentWebhook) {
		return nil
	}
	if err := g.manager.Add(g.certificates); err != nil {
		return err
	}
	return g.manager.AddReadyzCheck("serving-certificate", func(*http.Request) error {
		_, err := g.certificates.GetCertificate(nil)
		return err
	})
}

// addInstall reconciles the APIServices and webhook configurations that lead from the hub's API
// server to the gateway, in the leader.
func (g *gateway) addInstall(_ context.Context, mgr ctrl.Manager) error {
	if !g.Install.Enabled || !g.Features.Runs(options.ComponentProxy) && !g.Features.Runs(options.ComponentWebhook) {
		return nil
	}
	return mgr.Add(&install.Keeper{Installer: g.installer, Wanted: g.wanted, Changed: g.certificates.BundleChanged()})
}

// wanted returns the current CA and webhook configurations for the hub's API server.
func (g *gateway) wanted(ctx context.Context, self install.Account) (install.Serving, error) {
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return install.Serving{}, err
	}
	reviews, err := g.reviews.Endpoint(ctx)
	if err != nil {
		return install.Serving{}, err
	}
	definitions, err := g.converted(reviews)
	if err != nil {
		return install.Serving{}, err
	}
	admission := g.admission(self)
	return install.Serving{CABundle: ca, Extra: append(admission.Wanted(reviews), definitions...), Obsolete: admission.Obsolete()}, nil
}

// converted returns the definitions of the kinds that this gateway converts. The API server presents
// no certificate with conversions, so it must come through itself.
func (g *gateway) converted(reviews webhook.Endpoint) ([]client.Object, error) {
	if !g.Features.Runs(options.ComponentWebhook) || !g.Features.ServesOCM(options.OCMAddOns) {
		return nil, nil
	}
	if !reviews.Aggregated {
		return conversion.Definitions(nil)
	}
	to := reviews.ClientConfig(conversion.Path)
	return conversion.Definitions(&to)
}

// admission returns the configuration of admission for the chosen parts.
func (g *gateway) admission(self install.Account) webhook.Admission {
	return webhook.Admission{
		Parameters: policies.Parameters{
			TokenLifetime: g.Members.AgentTokenLifetime.Duration, GatewayUser: self.Name, GatewayNamespace: g.Hub.Namespace,
			ArgoCD:               types.NamespacedName{Namespace: g.Members.ArgoCDNamespace, Name: argocd.Account},
			ConfirmDeleteMembers: g.Install.ConfirmDeleteMembers,
		},
		Administrator: self.Administrator,
		GuardRails:    policies.GuardRails(g.Install.GuardRails),
		ConfirmDelete: policies.ConfirmDelete(g.Install.ConfirmDelete),
		Fleet:         g.Features.Serves(options.APIFleet),
		Reviewed:      g.Features.Runs(options.ComponentWebhook) && g.Features.Serves(options.APIFleet),
		Decisions:     g.Features.Runs(options.ComponentControllers) && g.Features.ServesOCM(options.OCMPlacement),
		Klusterlets:   g.Features.ServesOCM(options.OCMRegistration),
		Clusters:      g.Features.Runs(options.ComponentWebhook) && g.Features.ServesOCM(options.OCMRegistration),
		Works:         g.Features.Runs(options.ComponentWebhook) && g.Features.ServesOCM(options.OCMWorks),
	}
}
