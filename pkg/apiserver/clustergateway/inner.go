// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// InnerGroup is the group in which requests for members are authorized on the hub,
// beside the path that leads there. No resource of it is served.
const InnerGroup = "request.fleetgate.io"

// innerNonResource is the resource of a path on a member that is none of its
// resources, such as /version.
const innerNonResource = "nonresource"

// innerAttributes say what the hub is asked about a request for a member: the
// resource with its group behind a dot, its subresource, the verb that the member
// will see and the namespace there; the member is the name. An upgrade of a
// subresource (exec, attach, port-forward, a proxy) is a creation whatever its
// method is.
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
