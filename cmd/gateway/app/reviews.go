// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/conversion"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

// reviewsAPI is the aggregated API group that receives reviews.
func reviewsAPI(config *options.Config) install.GroupVersion {
	return install.GroupVersion{Group: intake.GroupVersion.Group, Version: intake.GroupVersion.Version, Port: int32(config.Serving.WebhookPort)}
}

// newReviews returns the path of reviews. It replaces the path of an older gateway that received
// reviews without authenticating the caller.
func newReviews(config *options.Config, direct client.Client, certificates *serving.Certificates) *webhook.Reviews {
	reviews := &webhook.Reviews{
		Direct: webhook.Endpoint{
			Namespace: config.Hub.Namespace, Service: config.Serving.Service, Port: int32(config.Serving.WebhookPort),
			TrustAuthors: config.Placement.TrustsAuthors(),
		},
		CABundle: certificates.CABundle,
	}
	if config.Webhooks.Caller == options.CallerLoopback {
		reviews.Handover = &intake.Handover{
			Hub: direct, Namespace: config.Hub.Namespace, Service: config.Serving.Service, Port: int32(config.Serving.WebhookPort),
			ServerName: config.Serving.ServerName(config.Hub.Namespace),
			Mutating:   []string{policies.MutatingConfiguration},
			Validating: []string{policies.ValidatingConfiguration, immutability.Configuration},
			Clock:      clock.RealClock{},
		}
		if config.Features.ServesOCM(options.OCMRegistration) {
			reviews.Handover.Mutating = append(reviews.Handover.Mutating, webhook.ClusterMutatingConfiguration)
			reviews.Handover.Validating = append(reviews.Handover.Validating, webhook.ClusterConfiguration, webhook.SetBindingConfiguration)
		}
		if config.Features.ServesOCM(options.OCMWorks) {
			reviews.Handover.Validating = append(reviews.Handover.Validating, webhook.ManifestWorkConfiguration, webhook.ReplicaSetConfiguration)
		}
	}
	return reviews
}

// newIntake returns the server for reviews.
func newIntake(ctx context.Context, config *options.Config, clientset kubernetes.Interface, certificates *serving.Certificates, handover *intake.Handover) (*intake.Server, error) {
	serving := intake.Options{
		Address:        config.Serving.Listen(config.Serving.WebhookPort),
		GetCertificate: certificates.GetCertificate,
	}
	if handover == nil {
		file, err := dynamiccertificates.NewDynamicCAContentFromFile("webhooks.clientCAFile", config.Webhooks.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading webhooks.clientCAFile: %w", err)
		}
		serving.ClientCA = file
		return intake.NewServer(serving), nil
	}
	published, err := frontproxy.Read(ctx, clientset)
	if err != nil {
		return nil, err
	}
	serving.FrontProxy, serving.Unproved = published.FrontProxy, handover.Unproved
	return intake.NewServer(serving), nil
}

func (g *gateway) addWebhooks(ctx context.Context) error {
	fleet, works := g.Features.Serves(options.APIFleet), g.Features.ServesOCM(options.OCMWorks)
	if g.Placement.TrustsAuthors() && fleet {
		log.FromContext(ctx).Info("Author checks of placements and overrides are disabled by placement.authorizeAuthors: false")
	}
	if g.Placement.TrustsAuthors() && works {
		log.FromContext(ctx).Info("Author checks of ManifestWorkReplicaSets are disabled by placement.authorizeAuthors: false")
	}
	clusters := g.Features.ServesOCM(options.OCMRegistration)
	if g.Features.TakesReviews() {
		// Also without add-ons: their definitions may still send conversions here.
		g.manager.GetWebhookServer().Register(conversion.Path, conversion.Handler())
	}
	addOns := g.Features.ServesOCM(options.OCMAddOns)
	if !g.Features.Runs(options.ComponentWebhook) || !fleet && !works && !clusters && !addOns {
		return nil
	}
	strictness := webhook.Strictness{TrustAuthors: g.Placement.TrustsAuthors(), StrictEnvelopes: g.Placement.StrictEnvelopes}
	if fleet {
		if err := webhook.Register(g.manager, strictness); err != nil {
			return err
		}
	}
	if works {
		webhook.RegisterWorks(g.manager, g.Placement.ManifestLimit, strictness)
	}
	if clusters {
		webhook.RegisterClusters(g.manager)
	}
	started := g.manager.GetWebhookServer().StartedChecker()
	return g.manager.AddReadyzCheck("webhooks", func(req *http.Request) error {
		if _, err := g.certificates.GetCertificate(nil); err != nil {
			return err
		}
		return started(req)
	})
}
