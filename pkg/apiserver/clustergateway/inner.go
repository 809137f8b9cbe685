// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// InnerGroup is the group in which the hub authorizes requests on members, in addition to the
// access to the member. No resource of it is served.
const InnerGroup = "request.fleetgate.io"

// innerNonResource stands for a path on a member that is not a resource, such as /version.
const innerNonResource = "nonresource"

// innerAttributes returns what the hub is asked about a request on a member. The resource is the
// member's resource with its group after a dot; subresource, verb and namespace are those on the
// member; the name is the member's. An upgrade of a subresource (exec, attach, port-forward, a
// proxy) is a create, whatever its method is.
func innerAttributes(caller user.Info, request *Request) authorizer.AttributesRecord {
	info := request.Info
	attributes := authorizer.AttributesRecord{
		User: caller, APIGroup: InnerGroup, Name: request.Member, ResourceRequest: true,
		Resource: innerNonResource, Verb: info.Verb, Path: request.Path,
	}
	if !info.IsResourceRequest {
		if info.Verb == "head" {
			attributes.Verb = "get"
		}
		return attributes
	}
	attributes.Resource, attributes.Subresource, attributes.Namespace = info.Resource, info.Subresource, info.Namespace
	if info.APIGroup != "" {
		attributes.Resource += "." + info.APIGroup
	}
	if request.Upgrade && info.Subresource != "" {
		attributes.Verb = "create"
	}
	return attributes
}
