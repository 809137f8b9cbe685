// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
)

// reviewsAPI is the aggregated group by which reviews come in.
func (g *gateway) reviewsAPI() install.GroupVersion {
	return install.GroupVersion{Group: intake.GroupVersion.Group, Version: intake.GroupVersion.Version, Port: int32(g.Serving.WebhookPort)}
}

// newIntake returns the server for reviews.
func (g *gateway) newIntake(ctx context.Context) (*intake.Server, error) {
	serving := intake.Options{
		Address:        net.JoinHostPort(g.Serving.BindAddress, strconv.Itoa(g.Serving.WebhookPort)),
		GetCertificate: g.certificates.GetCertificate,
	}
	if g.Reviews.Caller == options.CallerCertificate {
		file, err := dynamiccertificates.NewDynamicCAContentFromFile("--webhook-client-ca-file", g.Reviews.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading --webhook-client-ca-file: %w", err)
		}
		serving.ClientCA = file
		return intake.NewServer(serving), nil
	}
	published, err := frontproxy.Read(ctx, g.clientset)
	if err != nil {
		return nil, err
	}
	serving.FrontProxy, serving.Unproved = published.FrontProxy, g.handover.Unproved
	return intake.NewServer(serving), nil
}

func (g *gateway) newHandover() *intake.Handover {
	return &intake.Handover{
		Hub: g.direct, Namespace: g.Hub.Namespace, Service: g.Serving.Service, Port: int32(g.Serving.WebhookPort),
		ServerName: g.Serving.Service + "." + g.Hub.Namespace + ".svc",
		Mutating:   []string{webhook.MutatingConfiguration},
		Validating: []string{webhook.ValidatingConfiguration, immutability.Configuration},
		Clock:      clock.RealClock{},
	}
}

// reviewsEndpoint says where configurations send reviews now, in the leader. Where an
// older gateway's still send them without proof, that goes on until all is ready.
func (g *gateway) reviewsEndpoint(ctx context.Context) (webhook.Endpoint, error) {
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	direct := webhook.Endpoint{Namespace: g.Hub.Namespace, Service: g.Serving.Service, Port: int32(g.Serving.WebhookPort), CABundle: ca}
	if g.Reviews.Caller == options.CallerCertificate {
		return direct, nil
	}
	aggregated := webhook.Endpoint{Aggregated: true}
	if g.handedOver.Load() {
		return aggregated, nil
	}
	before, err := g.handover.Direct(ctx)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	if before {
		if err := g.handover.Ready(ctx, ca); err != nil {
			log.FromContext(ctx).Info("Reviews still come to the webhooks' port without proof of who sends them, since an older gateway had them sent so", "waitsFor", err.Error())
			return direct, nil
		}
	}
	g.handedOver.Store(true)
	return aggregated, nil
}
