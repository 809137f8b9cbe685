// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frontproxy identifies the hub's API server by the ConfigMap that it publishes for
// aggregated servers, kube-system/extension-apiserver-authentication. The ConfigMap has the CA of
// the client certificate with which the hub forwards requests, the headers that name the original
// caller, and the CA of the hub's client certificates. Every hub with an aggregation layer has it,
// including managed ones. Only the hub's API servers hold the front proxy's certificate.
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

// Where the hub's API server publishes how aggregated servers identify it and its callers.
const (
	Namespace = "kube-system"
	ConfigMap = "extension-apiserver-authentication"
)

const (
	clientCAKey     = "client-ca-file"
	frontProxyCAKey = "requestheader-client-ca-file"
)

// Published holds what the hub publishes for aggregated servers. Both CAs are also
// dynamiccertificates.ControllerRunners: running them follows changes of the CAs and the headers.
type Published struct {
	// FrontProxy identifies the hub's API server.
	FrontProxy *authenticatorfactory.RequestHeaderConfig
	// ClientCA signs the client certificates of the hub's users.
	ClientCA dynamiccertificates.CAContentProvider
	// noClientCA is true if the hub has no client certificates.
	noClientCA bool
}

// Read returns the hub's published data. It waits for the first read, so that no caller is refused
// because the data has not been loaded. If the hub has not published anything yet, Read follows the
// ConfigMap until it does. The error names the Role that the gateway needs.
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
	// One value implements both, so running the CA also runs the headers.
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

// Known returns an error that names what is missing until the hub has published its CAs and
// headers. Until then no caller can be authenticated.
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

type follower interface {
	dynamiccertificates.CAContentProvider
	dynamiccertificates.ControllerRunner
}

// begun is a follower that starts with the CA that was read first. A follower alone has none until
// it has listed ConfigMaps, which takes long on a busy hub.
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

func (b begun) CurrentCABundleContent() []byte { return b.current().CurrentCABundleContent() }

func (b begun) VerifyOptions() (x509.VerifyOptions, bool) { return b.current().VerifyOptions() }
