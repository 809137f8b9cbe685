// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"

	"github.com/spf13/pflag"
)

// How the API server proves that a review is its own.
const (
	// CallerLoopback: it comes through the API server itself, and its aggregation layer.
	CallerLoopback = "loopback"
	// CallerCertificate: it comes directly, with a client certificate.
	CallerCertificate = "certificate"
)

// Reviews says whose reviews the webhooks answer, and for what.
type Reviews struct {
	// Caller is one of the constants above.
	Caller           string
	ClientCAFile     string
	FailClosedGroups []string
}

func newReviews() Reviews { return Reviews{Caller: CallerLoopback} }

// AddFlags binds the options to a command line.
func (o *Reviews) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Caller, "webhook-caller", o.Caller, "How the hub's API server proves that it is the one that asks the webhooks. loopback: reviews come through the API server itself, as system:apiserver, and its aggregation layer. certificate: they come directly, with a client certificate of --webhook-client-ca-file that the API server's AdmissionConfiguration names.")
	flags.StringVar(&o.ClientCAFile, "webhook-client-ca-file", o.ClientCAFile, "With --webhook-caller=certificate: PEM file of the CA of that certificate, which signs no other; followed when it changes.")
	flags.StringSliceVar(&o.FailClosedGroups, "fail-closed-groups", o.FailClosedGroups, "API groups for which an ImmutabilityPolicy with failurePolicy Fail refuses requests while no gateway answers. Empty: none.")
}

// Validate returns every error at once.
func (o *Reviews) Validate() []error {
	all := []error{known("--webhook-caller", []string{o.Caller}, []string{CallerLoopback, CallerCertificate})}
	if (o.Caller == CallerCertificate) != (o.ClientCAFile != "") {
		all = append(all, errors.New("--webhook-caller=certificate goes with --webhook-client-ca-file, and it with that"))
	}
	return all
}
