// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"

	"github.com/spf13/pflag"
)

// How the API server authenticates to the webhooks.
const (
	// CallerLoopback: reviews come through the API server's own aggregation layer.
	CallerLoopback = "loopback"
	// CallerCertificate: reviews come directly, with a client certificate.
	CallerCertificate = "certificate"
)

// Reviews configures the authentication of admission reviews, and the fail-closed groups.
type Reviews struct {
	// Caller is one of the constants above.
	Caller           string
	ClientCAFile     string
	FailClosedGroups []string
}

func newReviews() Reviews { return Reviews{Caller: CallerLoopback} }

// AddFlags binds the options to a command line.
func (o *Reviews) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Caller, "webhook-caller", o.Caller, "How the hub's API server authenticates to the webhooks. loopback: reviews go through the API server's own aggregation layer, as system:apiserver. certificate: reviews come directly, with a client certificate of --webhook-client-ca-file that the API server's AdmissionConfiguration names.")
	flags.StringVar(&o.ClientCAFile, "webhook-client-ca-file", o.ClientCAFile, "With --webhook-caller=certificate: PEM file of the CA of that client certificate. The CA must sign no other certificate. The file is reloaded when it changes.")
	flags.StringSliceVar(&o.FailClosedGroups, "fail-closed-groups", o.FailClosedGroups, "API groups for which an ImmutabilityPolicy with failurePolicy Fail rejects requests while no gateway is available. If unset, no group is fail-closed.")
}

// Validate returns every error at once.
func (o *Reviews) Validate() []error {
	all := []error{known("--webhook-caller", []string{o.Caller}, []string{CallerLoopback, CallerCertificate})}
	if (o.Caller == CallerCertificate) != (o.ClientCAFile != "") {
		all = append(all, errors.New("--webhook-caller=certificate and --webhook-client-ca-file need each other"))
	}
	return all
}
