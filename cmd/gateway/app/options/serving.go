// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Where the serving certificate can come from.
const (
	CertificatesOwn         = "own"
	CertificatesCertManager = "cert-manager"
	CertificatesFiles       = "files"
)

// Serving says where the gateway listens, and with which certificate.
type Serving struct {
	BindAddress string
	SecurePort  int
	WebhookPort int
	// Certificates is one of the constants above.
	Certificates string
	CertFile     string
	KeyFile      string
	CAFile       string
	Service      string
	// EndpointNames are further names of the serving certificate.
	EndpointNames []string
	// MemberDomain is below which each member has a host of its own.
	MemberDomain string
}

func newServing() Serving {
	return Serving{BindAddress: "0.0.0.0", SecurePort: 8443, WebhookPort: 9443, Certificates: CertificatesOwn, Service: "gateway"}
}

// AddFlags binds the options to a command line.
func (o *Serving) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "Address on which the aggregated API and the webhooks listen.")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port of the aggregated API.")
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port of the webhooks.")
	flags.StringVar(&o.Certificates, "certificates", o.Certificates, "Where the serving certificate comes from. own: an authority of the gateway's own. cert-manager: a Certificate that it asks for. files: the three files below.")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "With --certificates=files: PEM file with the serving certificate; followed when it changes.")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "With --certificates=files: PEM file with its key.")
	flags.StringVar(&o.CAFile, "tls-ca-file", o.CAFile, "With --certificates=files: PEM file with the CAs that verify it.")
	flags.StringVar(&o.Service, "service", o.Service, "Name of the Service, in --namespace, through which the hub's API server reaches the gateway.")
	flags.StringSliceVar(&o.EndpointNames, "endpoint-names", o.EndpointNames, "DNS names and addresses at which clients reach the gateway's own endpoint, beside those of --service: the serving certificate is valid for them too.")
	flags.StringVar(&o.MemberDomain, "member-domain", o.MemberDomain, "Domain below which each member has a host of its own at the gateway's endpoint, <member>.<domain>, for servers without a path and for cookies of members' pages. Its wildcard has to lead to the gateway; the serving certificate is valid for it.")
}

// Validate returns every error at once.
func (o *Serving) Validate() []error {
	all := []error{port("--secure-port", o.SecurePort), port("--webhook-port", o.WebhookPort)}
	if net.ParseIP(o.BindAddress) == nil {
		all = append(all, fmt.Errorf("--bind-address %q is not an IP address", o.BindAddress))
	}
	if o.SecurePort == o.WebhookPort {
		all = append(all, fmt.Errorf("--secure-port and --webhook-port are both %d: give each its own", o.SecurePort))
	}
	all = append(all, known("--certificates", []string{o.Certificates}, []string{CertificatesOwn, CertificatesCertManager, CertificatesFiles}))
	if files := o.CertFile != "" && o.KeyFile != "" && o.CAFile != ""; (o.Certificates == CertificatesFiles) != files {
		all = append(all, errors.New("--certificates=files goes with --tls-cert-file, --tls-private-key-file and --tls-ca-file, and they with it"))
	}
	if problems := validation.IsDNS1123Subdomain(o.MemberDomain); o.MemberDomain != "" && len(problems) > 0 {
		all = append(all, fmt.Errorf("--member-domain %q is no DNS name: %s", o.MemberDomain, strings.Join(problems, ", ")))
	}
	return append(all, o.validateEndpointNames()...)
}

// Names are the further names of the serving certificate.
func (o *Serving) Names() []string {
	if o.MemberDomain == "" {
		return o.EndpointNames
	}
	return append(slices.Clone(o.EndpointNames), "*."+o.MemberDomain)
}

// validateEndpointNames reports what no certificate can be valid for.
func (o *Serving) validateEndpointNames() []error {
	if len(o.EndpointNames) > 0 && o.Certificates == CertificatesFiles {
		return []error{errors.New("--endpoint-names does nothing with --certificates=files: the certificate of the file has names of its own")}
	}
	var all []error
	for _, name := range o.EndpointNames {
		if net.ParseIP(name) != nil {
			continue
		}
		if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); len(problems) > 0 {
			all = append(all, fmt.Errorf("--endpoint-names %q is neither an address nor a DNS name: %s", name, strings.Join(problems, ", ")))
		}
	}
	return all
}

// Listen is the address of one of the gateway's ports.
func (o *Serving) Listen(port int) string { return net.JoinHostPort(o.BindAddress, strconv.Itoa(port)) }

// ServerName is what the serving certificate is valid for, whoever made it.
func (o *Serving) ServerName(namespace string) string { return o.Service + "." + namespace + ".svc" }
