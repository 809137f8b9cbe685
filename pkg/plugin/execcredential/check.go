// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execcredential answers programs that want a credential for a member: client-go
// runs an exec plug-in for it, and so does every consumer of ClusterProfiles. The answer is
// the caller's own credential for the hub, since the way to a member goes through the hub.
//
// Whoever may write the status of a ClusterProfile says to which server a consumer goes.
// So the plug-in hands the credential out for the hub alone: its own URL, below the path of
// members and views, verified by the hub's CA, without a proxy that is not the caller's own.
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

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

// Hub is the hub as the caller knows it, from a kubeconfig, a Pod's environment or flags.
type Hub struct {
	// URLs are those under which it is reached.
	URLs []string
	// CAs verify it, in PEM. None: it is publicly trusted.
	CAs [][]byte
	// ProxyURL is the proxy on the way to it; empty for none.
	ProxyURL string
}

// Check says why the credential is not for that server, with what to do about it; nil if it
// is the hub's way to a member or a view.
func (h *Hub) Check(to *clientauthenticationv1.Cluster) error {
	if to == nil || to.Server == "" {
		return errors.New("the caller does not say for which server: set provideClusterInfo to true in its exec configuration")
	}
	server, err := url.Parse(to.Server)
	if err != nil {
		return fmt.Errorf("server %q is no URL: correct the ClusterProfile", to.Server)
	}
	switch {
	case server.Scheme != "https":
		return fmt.Errorf("server %q is not https: a credential is sent to no such server", to.Server)
	case to.InsecureSkipTLSVerify:
		return fmt.Errorf("server %q is not to be verified: take insecure-skip-tls-verify out of the ClusterProfile", to.Server)
	case to.ProxyURL != "" && to.ProxyURL != h.ProxyURL:
		return fmt.Errorf("server %q is to be reached by a proxy that is not yours: take proxy-url out of the ClusterProfile, or name it in your kubeconfig of the hub", to.Server)
	case to.TLSServerName != "" && to.TLSServerName != server.Hostname():
		return fmt.Errorf("server %q is to be verified as %q: take tls-server-name out of the ClusterProfile", to.Server, to.TLSServerName)
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return fmt.Errorf("server %q has more than a host and a path: correct the ClusterProfile", server.Redacted())
	}
	if err := h.checkPath(server); err != nil {
		return err
	}
	return h.checkCA(to)
}

// checkPath holds the server to a way into a member, below one of the hub's URLs.
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
		for _, prefix := range []string{clustergateway.ProxyPathPrefix, fleetview.PathPrefix} {
			name, ok := strings.CutPrefix(rest, prefix)
			if name, proxy := strings.CutSuffix(strings.TrimSuffix(name, "/"), "/proxy"); ok && proxy && name != "" && !strings.Contains(name, "/") {
				return nil
			}
		}
		return fmt.Errorf("server %q is the hub, but not its way to a member: correct the ClusterProfile", server.Redacted())
	}
	return fmt.Errorf("server %q is not the hub (%s): find out who wrote the ClusterProfile; if the hub has this URL too, name it with --hub-url", server.Redacted(), strings.Join(h.URLs, ", "))
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "443"
}

// checkCA accepts certificates that the caller trusts for the hub anyway.
func (h *Hub) checkCA(to *clientauthenticationv1.Cluster) error {
	if len(to.CertificateAuthorityData) == 0 {
		return nil // The public ones, of the caller's own machine.
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
			return fmt.Errorf("server %q is to be verified by %q, which is not the hub's CA: find out who wrote the ClusterProfile; if it is right, name its file with --hub-ca-file", to.Server, certificate.Subject)
		}
	}
	if len(given) == 0 {
		return fmt.Errorf("server %q is to be verified by what is no certificate: correct the ClusterProfile", to.Server)
	}
	return nil
}

// certificates are those of a PEM text that can be read.
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
