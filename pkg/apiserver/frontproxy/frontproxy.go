// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frontproxy knows the hub's API server by what it publishes for aggregated
// servers in ConfigMap kube-system/extension-apiserver-authentication: the CA of the
// client certificate that it shows when it passes a request on, and the headers in
// which it says whose request that is. Every hub with an aggregation layer has it,
// managed ones too, and nobody but its API servers has such a certificate.
package frontproxy

import (
	"context"
	"fmt"

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

// Read returns what the hub publishes now. Its CAContentProvider is a
// dynamiccertificates.ControllerRunner too: whoever runs that follows CA and headers
// as they change. The error names the Role that the gateway needs to read it.
func Read(ctx context.Context, hub kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"request-header-ca", Namespace, ConfigMap, "requestheader-client-ca-file", hub)
	if err != nil {
		return nil, fmt.Errorf("following the front proxy's CA: %w", err)
	}
	// One value that is both, so that whoever runs the CA runs the headers too.
	proxy := &options.DynamicRequestHeaderController{
		ConfigMapCAController: ca,
		RequestHeaderAuthRequestController: headerrequest.NewRequestHeaderAuthRequestController(
			ConfigMap, Namespace, hub,
			"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
			"requestheader-extra-headers-prefix", "requestheader-allowed-names"),
	}
	if err := proxy.RunOnce(ctx); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s of the hub (the gateway needs the Role extension-apiserver-authentication-reader): %w",
			Namespace, ConfigMap, err)
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   proxy,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(proxy.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(proxy.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(proxy.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(proxy.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(proxy.AllowedClientNames),
	}, nil
}
