// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"fleetgate.io/fleetgate/pkg/webhook/intake"
)

// Reviews is the way on which the hub's API server sends reviews. All methods may be called
// from any goroutine.
type Reviews struct {
	// Direct is the webhooks' own port, without a CABundle.
	Direct Endpoint
	// CABundle returns what verifies the serving certificate (PEM).
	CABundle func(context.Context) ([]byte, error)
	// Handover leads from that port to the API server's own way. Nil: reviews come to the
	// port, with a certificate for their proof.
	Handover *intake.Handover
}

// Endpoint says where the API server sends reviews now. While a replica does not take them
// through the aggregated group yet, they come as before.
func (r *Reviews) Endpoint(ctx context.Context) (Endpoint, error) {
	direct := r.Direct
	var err error
	if direct.CABundle, err = r.CABundle(ctx); err != nil {
		return Endpoint{}, err
	}
	if r.Handover == nil {
		return direct, nil
	}
	over, err := r.Handover.Over(ctx, direct.CABundle)
	if err != nil {
		return Endpoint{}, err
	}
	if over {
		return Endpoint{Aggregated: true, TrustAuthors: direct.TrustAuthors}, nil
	}
	return direct, nil
}

// ClientConfig is the beginning of a configuration that sends reviews so, without a path.
func (r *Reviews) ClientConfig(ctx context.Context) (admissionregistrationv1.WebhookClientConfig, error) {
	endpoint, err := r.Endpoint(ctx)
	if err != nil {
		return admissionregistrationv1.WebhookClientConfig{}, err
	}
	return endpoint.ClientConfig(""), nil
}
