// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group for access to members.
const GroupName = "cluster.core.oam.dev"

// GroupVersion is the only version of the group.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme, and everything that an API server
// needs to serve them: the options of requests, and the conversion of the options of subresource
// proxy from a query.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusterGateway{}, &ClusterGatewayList{}, &ClusterGatewayProxyOptions{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return errors.Join(
		scheme.SetVersionPriority(GroupVersion),
		scheme.AddConversionFunc((*url.Values)(nil), (*ClusterGatewayProxyOptions)(nil), proxyOptionsFromQuery),
	)
}

// proxyOptionsFromQuery converts a query to ClusterGatewayProxyOptions. The API server creates the
// query from the path of a request.
func proxyOptionsFromQuery(in, out any, _ conversion.Scope) error {
	query, options := in.(*url.Values), out.(*ClusterGatewayProxyOptions)
	options.Path = query.Get("path")
	return nil
}
