// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// How the API server authenticates to the webhooks.
const (
	// CallerLoopback: reviews come through the API server's own aggregation layer.
	CallerLoopback = "loopback"
	// CallerCertificate: reviews come directly, with a client certificate.
	CallerCertificate = "certificate"
)

// Webhooks configures the authentication of admission reviews, and the fail-closed groups.
type Webhooks struct {
	*configv1alpha1.WebhooksConfiguration
}

func defaultWebhooks() configv1alpha1.WebhooksConfiguration {
	return configv1alpha1.WebhooksConfiguration{Caller: CallerLoopback}
}

// Validate returns every error at once.
func (o *Webhooks) Validate() field.ErrorList {
	at := field.NewPath("webhooks")
	all := configfile.OneOf(at.Child("caller"), o.Caller, CallerLoopback, CallerCertificate)
	return append(all, configfile.Together(at.Child("clientCAFile"), "caller certificate and clientCAFile need each other", o.Caller == CallerCertificate, o.ClientCAFile != "")...)
}
