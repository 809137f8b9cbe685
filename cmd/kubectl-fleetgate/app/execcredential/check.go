// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execcredential implements an exec credential plugin for members, which client-go and
// consumers of ClusterProfiles run. The response is the caller's own credential for the hub, since
// members are accessed through the hub.
//
// Anyone who may write the status of a ClusterProfile determines to which server a consumer
// connects. So the plugin returns the credential only for the hub: for a URL of the hub below the
// path of members and views, verified by the hub's CA, and with no proxy but the caller's own.
package execcredential

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// Hub is the connection to the hub, from a kubeconfig, a Pod's environment or flags.
type Hub struct {
	// URLs are the base URLs of the hub.
	URLs []string
	// CAs are PEM certificates that verify the hub. Without any, the system roots do.
	CAs [][]byte
	// ProxyURL is the proxy for the hub; empty for none.
	ProxyURL string
}

// Check returns an error with a remedy unless the server is the hub's proxy to a member or a view.
func (h *Hub) Check(to *clientauthenticationv1.Cluster) error {
	if to == nil || to.Server == "" {
		return errors.New("the caller does not name a server: set provideClusterInfo to true in its exec configuration")
	}
	server, err := url.Parse(to.Server)
	if err != nil {
		return fmt.Errorf("server %q is not a valid URL: correct the ClusterProfile", to.Server)
	}
	switch {
	case server.Scheme != "https":
		return fmt.Errorf("server %q does not use https: credentials are only sent over TLS", to.Server)
	case to.InsecureSkipTLSVerify:
		return fmt.Errorf("TLS verification is disabled for server %q: remove insecure-skip-tls-verify from the ClusterProfile", to.Server)
	case to.ProxyURL != "" && to.ProxyURL != h.ProxyURL:
		return fmt.Errorf("server %q has a proxy that is not in your kubeconfig: remove proxy-url from the ClusterProfile, or add it to your kubeconfig for the hub", to.Server)
	case to.TLSServerName != "" && to.TLSServerName != server.Hostname():
		return fmt.Errorf("server %q has TLS server name %q: remove tls-server-name from the ClusterProfile", to.Server, to.TLSServerName)
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return fmt.Errorf("server %q has more than host and path: correct the ClusterProfile", server.Redacted())
	}
	if err := h.checkPath(server); err != nil {
		return err
	}
	return h.checkCA(to)
}

// checkPath checks that the server is the proxy path of a member or a view, below one of the hub's URLs.
func (h *Hub) checkPath(server *url.URL) error {
	escaped := server.EscapedPath()
	for _, known := range h.URLs {
		hub, err := url.Parse(known)
		if err != nil || hub.Scheme != server.Scheme || !strings.EqualFold(hub.Hostname(), server.Hostname()) || portOf(hub) != portOf(server) {
			continue
		}
		rest, below := strings.CutPrefix(escaped, strings.TrimSuffix(hub.EscapedPath(), "/"))
		if !below || path.Clean(rest) != strings.TrimSuffix(rest, "/") {
			continue
		}
		for _, prefix := range []string{paths.Member, paths.View} {
			name, ok := strings.CutPrefix(rest, prefix)
			if name, proxy := strings.CutSuffix(strings.TrimSuffix(name, "/"), "/proxy"); ok && proxy && name != "" && !strings.Contains(name, "/") {
				return nil
			}
		}
		return fmt.Errorf("server %q is the hub, but the path is not that of a member: correct the ClusterProfile", server.Redacted())
	}
	return fmt.Errorf("server %q is not the hub (%s): check who wrote the ClusterProfile; if this is a URL of the hub, set --hub-url", server.Redacted(), strings.Join(h.URLs, ", "))
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "443"
}

// checkCA accepts only certificates that the caller already trusts for the hub.
func (h *Hub) checkCA(to *clientauthenticationv1.Cluster) error {
	if len(to.CertificateAuthorityData) == 0 {
		return nil // The system roots of the caller's machine apply.
	}
	var known []*x509.Certificate
	for _, text := range h.CAs {
		known = append(known, certificates(text)...)
	}
	given := certificates(to.CertificateAuthorityData)
	for _, certificate := range given {
		trusted := false
		for _, k := range known {
			trusted = trusted || bytes.Equal(k.Raw, certificate.Raw)
		}
		if !trusted {
			return fmt.Errorf("CA %[2]q of server %[1]q is not the hub's CA: check who wrote the ClusterProfile; if the CA is correct, set --hub-ca-file", to.Server, certificate.Subject)
		}
	}
	if len(given) == 0 {
		return fmt.Errorf("the CA of server %q contains no certificate: correct the ClusterProfile", to.Server)
	}
	return nil
}

// certificates parses the certificates of a PEM text and skips invalid ones.
func certificates(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
}
