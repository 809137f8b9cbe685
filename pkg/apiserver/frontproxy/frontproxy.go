// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frontproxy knows the hub's API server by what it publishes for aggregated
// servers in ConfigMap kube-system/extension-apiserver-authentication: the CA of the
// client certificate that it shows when it passes a request on, the headers in
// which it says whose request that is, and the CA of its own users' certificates. Every
// hub with an aggregation layer has it, managed ones too, and nobody but its API servers
// has the front proxy's certificate.
package frontproxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
)

// Where the hub's API server publishes how it identifies itself and its callers
// to aggregated servers.
const (
	Namespace = "kube-system"
	ConfigMap = "extension-apiserver-authentication"
)

const (
	clientCAKey     = "client-ca-file"
	frontProxyCAKey = "requestheader-client-ca-file"
)

// Published is what the hub says to aggregated servers. Both CAs are
// dynamiccertificates.ControllerRunners too: whoever runs them follows them, and the
// headers, as they change.
type Published struct {
	// FrontProxy is how the hub's API server proves itself.
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	// ClientCA signs the certificates of the hub's users.
	ClientCA dynamiccertificates.CAContentProvider
	// noClientCA is true where the hub's users have no certificates.
	noClientCA bool
}

// Read returns what the hub publishes now: what it has published before counts from the
// beginning, so that nobody is taken for a stranger meanwhile. A hub that has published
// nothing yet is followed until it does. The error names the Role that the gateway needs
// to read it.
func Read(ctx context.Context, hub kubernetes.Interface) (*Published, error) {
	published, err := read(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s of the hub (the gateway needs the Role extension-apiserver-authentication-reader): %w",
			Namespace, ConfigMap, err)
	}
	return published, nil
}

func read(ctx context.Context, hub kubernetes.Interface) (*Published, error) {
	now, err := hub.CoreV1().ConfigMaps(Namespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
	}
	clientCA, err := follow("client-ca", clientCAKey, hub)
	if err != nil {
		return nil, err
	}
	users, err := startWith(clientCA, now.Data[clientCAKey])
	if err != nil {
		return nil, err
	}
	proxyCA, err := follow("request-header-ca", frontProxyCAKey, hub)
	if err != nil {
		return nil, err
	}
	// One value that is both, so that whoever runs the CA runs the headers too.
	proxy := &options.DynamicRequestHeaderController{
		ConfigMapCAController: proxyCA,
		RequestHeaderAuthRequestController: headerrequest.NewRequestHeaderAuthRequestController(
			ConfigMap, Namespace, hub,
			"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
			"requestheader-extra-headers-prefix", "requestheader-allowed-names"),
	}
	if err := proxy.RunOnce(ctx); err != nil {
		return nil, err
	}
	apiServers, err := startWith(proxy, now.Data[frontProxyCAKey])
	if err != nil {
		return nil, err
	}
	return &Published{
		FrontProxy: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   apiServers,
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(proxy.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(proxy.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(proxy.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(proxy.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(proxy.AllowedClientNames),
		},
		ClientCA:   users,
		noClientCA: !missing && now.Data[clientCAKey] == "",
	}, nil
}

func follow(purpose, key string, hub kubernetes.Interface) (*dynamiccertificates.ConfigMapCAController, error) {
	return dynamiccertificates.NewDynamicCAFromConfigMapController(purpose, Namespace, ConfigMap, key, hub)
}

// Known fails, with what is missing, until the hub has said by what its API servers and
// users are known. Until then everybody who comes looks like a stranger.
func (p *Published) Known() error {
	_, apiServers := p.FrontProxy.CAContentProvider.VerifyOptions()
	if !apiServers || len(p.FrontProxy.UsernameHeaders.Value()) == 0 {
		return errors.New("the hub has not published yet how its API servers prove themselves (ConfigMap " + Namespace + "/" + ConfigMap + ", " + frontProxyCAKey + ")")
	}
	if _, users := p.ClientCA.VerifyOptions(); !users && !p.noClientCA {
		return errors.New("the hub has not published yet who signs its users' certificates (ConfigMap " + Namespace + "/" + ConfigMap + ", " + clientCAKey + ")")
	}
	return nil
}

// A follower follows a CA while it runs.
type follower interface {
	dynamiccertificates.CAContentProvider
	dynamiccertificates.ControllerRunner
}

// begun is a follower that has its first CA before it runs: by itself it has none until
// it has listed ConfigMaps, which takes as long as a busy hub lets it.
type begun struct {
	follower
	first dynamiccertificates.CAContentProvider
}

func startWith(f follower, ca string) (follower, error) {
	if ca == "" {
		return f, nil
	}
	first, err := dynamiccertificates.NewStaticCAContent(f.Name(), []byte(ca))
	if err != nil {
		return nil, err
	}
	return begun{follower: f, first: first}, nil
}

func (b begun) current() dynamiccertificates.CAContentProvider {
	if _, known := b.follower.VerifyOptions(); known {
		return b.follower
	}
	return b.first
}

// CurrentCABundleContent returns the CA in PEM.
func (b begun) CurrentCABundleContent() []byte { return b.current().CurrentCABundleContent() }

// VerifyOptions verifies by the CA.
func (b begun) VerifyOptions() (x509.VerifyOptions, bool) { return b.current().VerifyOptions() }
