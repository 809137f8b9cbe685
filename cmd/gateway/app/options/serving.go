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

// Sources of the serving certificate.
const (
	CertificatesOwn         = "own"
	CertificatesCertManager = "cert-manager"
	CertificatesFiles       = "files"
)

// Serving configures the addresses and the serving certificate of the gateway.
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
	// EndpointNames are additional names of the serving certificate.
	EndpointNames []string
	// MemberDomain is the domain under which each member has its own host.
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
	flags.StringVar(&o.Certificates, "certificates", o.Certificates, "Source of the serving certificate. own: a CA that the gateway manages. cert-manager: a Certificate that the gateway requests. files: the three --tls-* files.")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "With --certificates=files: PEM file with the serving certificate. The file is reloaded when it changes.")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "With --certificates=files: PEM file with the private key of the serving certificate.")
	flags.StringVar(&o.CAFile, "tls-ca-file", o.CAFile, "With --certificates=files: PEM file with the CAs that verify the serving certificate.")
	flags.StringVar(&o.Service, "service", o.Service, "Name of the Service in --namespace through which the hub's API server reaches the gateway.")
	flags.StringSliceVar(&o.EndpointNames, "endpoint-names", o.EndpointNames, "DNS names and IP addresses, besides those of --service, at which clients reach the gateway's own endpoint. The serving certificate includes them.")
	flags.StringVar(&o.MemberDomain, "member-domain", o.MemberDomain, "Domain under which each member has its own host at the gateway's endpoint, <member>.<domain>. Needed for clients that drop the path of a server URL and for cookies of web pages on members. Point the wildcard DNS record to the gateway. The serving certificate includes it.")
}

// Validate returns every error at once.
func (o *Serving) Validate() []error {
	all := []error{port("--secure-port", o.SecurePort), port("--webhook-port", o.WebhookPort)}
	if net.ParseIP(o.BindAddress) == nil {
		all = append(all, fmt.Errorf("--bind-address %q is not an IP address", o.BindAddress))
	}
	if o.SecurePort == o.WebhookPort {
		all = append(all, fmt.Errorf("--secure-port and --webhook-port are both %d: use different ports", o.SecurePort))
	}
	all = append(all, known("--certificates", []string{o.Certificates}, []string{CertificatesOwn, CertificatesCertManager, CertificatesFiles}))
	if files := o.CertFile != "" && o.KeyFile != "" && o.CAFile != ""; (o.Certificates == CertificatesFiles) != files {
		all = append(all, errors.New("--certificates=files and the flags --tls-cert-file, --tls-private-key-file and --tls-ca-file need each other"))
	}
	if problems := validation.IsDNS1123Subdomain(o.MemberDomain); o.MemberDomain != "" && len(problems) > 0 {
		all = append(all, fmt.Errorf("--member-domain %q is not a DNS name: %s", o.MemberDomain, strings.Join(problems, ", ")))
	}
	return append(all, o.validateEndpointNames()...)
}

// Names returns the additional names of the serving certificate.
func (o *Serving) Names() []string {
	if o.MemberDomain == "" {
		return o.EndpointNames
	}
	return append(slices.Clone(o.EndpointNames), "*."+o.MemberDomain)
}

// validateEndpointNames reports names that a certificate cannot contain.
func (o *Serving) validateEndpointNames() []error {
	if len(o.EndpointNames) > 0 && o.Certificates == CertificatesFiles {
		return []error{errors.New("--endpoint-names has no effect with --certificates=files: the certificate in the file has its own names")}
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

// Listen returns the listen address of a port.
func (o *Serving) Listen(port int) string { return net.JoinHostPort(o.BindAddress, strconv.Itoa(port)) }

// ServerName returns the name that every serving certificate must contain.
func (o *Serving) ServerName(namespace string) string { return o.Service + "." + namespace + ".svc" }
