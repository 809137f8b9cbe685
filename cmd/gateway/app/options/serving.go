// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Sources of the serving certificate.
const (
	CertificatesOwn         = "own"
	CertificatesCertManager = "cert-manager"
	CertificatesFiles       = "files"
)

// Serving configures the addresses and the serving certificate of the gateway.
type Serving struct {
	*configv1alpha1.ServingConfiguration
}

func defaultServing() configv1alpha1.ServingConfiguration {
	return configv1alpha1.ServingConfiguration{BindAddress: "0.0.0.0", SecurePort: 8443, WebhookPort: 9443, Certificates: CertificatesOwn, Service: "gateway"}
}

// AddFlags binds the options to a command line.
func (o *Serving) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "Address on which the aggregated API and the webhooks listen.")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port of the aggregated API.")
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port of the webhooks.")
	flags.StringVar(&o.Service, "service", o.Service, "Name of the Service in --namespace through which the hub's API server reaches the gateway.")
	configfile.Override(flags, "bind-address", "serving.bindAddress")
	configfile.Override(flags, "secure-port", "serving.securePort")
	configfile.Override(flags, "webhook-port", "serving.webhookPort")
	configfile.Override(flags, "service", "serving.service")
}

// Validate returns every error at once.
func (o *Serving) Validate() field.ErrorList {
	at := field.NewPath("serving")
	all := configfile.Port(at.Child("securePort"), o.SecurePort)
	all = append(all, configfile.Port(at.Child("webhookPort"), o.WebhookPort)...)
	if net.ParseIP(o.BindAddress) == nil {
		all = append(all, field.Invalid(at.Child("bindAddress"), o.BindAddress, "must be an IP address"))
	}
	if o.SecurePort == o.WebhookPort {
		all = append(all, field.Invalid(at.Child("webhookPort"), o.WebhookPort, "must differ from serving.securePort (--secure-port)"))
	}
	all = append(all, configfile.OneOf(at.Child("certificates"), o.Certificates, CertificatesOwn, CertificatesCertManager, CertificatesFiles)...)
	if files := o.CertFile != "" && o.KeyFile != "" && o.CAFile != ""; (o.Certificates == CertificatesFiles) != files {
		all = append(all, field.Forbidden(at.Child("certificates"), "files and the fields certFile, keyFile and caFile need each other"))
	}
	if o.MemberDomain != "" {
		all = append(all, configfile.Invalid(at.Child("memberDomain"), o.MemberDomain, validation.IsDNS1123Subdomain(o.MemberDomain)...)...)
	}
	return append(all, o.validateEndpointNames(at.Child("endpointNames"))...)
}

// Names returns the additional names of the serving certificate.
func (o *Serving) Names() []string {
	if o.MemberDomain == "" {
		return o.EndpointNames
	}
	return append(slices.Clone(o.EndpointNames), "*."+o.MemberDomain)
}

// validateEndpointNames reports names that a certificate cannot contain.
func (o *Serving) validateEndpointNames(at *field.Path) field.ErrorList {
	if len(o.EndpointNames) > 0 && o.Certificates == CertificatesFiles {
		return field.ErrorList{field.Forbidden(at, "has no effect with serving.certificates files: the certificate in the file has its own names")}
	}
	var all field.ErrorList
	for i, name := range o.EndpointNames {
		if net.ParseIP(name) != nil {
			continue
		}
		if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); len(problems) > 0 {
			all = append(all, field.Invalid(at.Index(i), name, "must be an address or a DNS name: "+strings.Join(problems, ", ")))
		}
	}
	return all
}

// Listen returns the listen address of a port.
func (o *Serving) Listen(port int) string { return net.JoinHostPort(o.BindAddress, strconv.Itoa(port)) }

// ServerName returns the name that every serving certificate must contain.
func (o *Serving) ServerName(namespace string) string { return o.Service + "." + namespace + ".svc" }
