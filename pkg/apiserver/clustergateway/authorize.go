// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

// access decides whether a request is forwarded to its member, and as whom.
type access struct {
	members    *Inventory
	routes     *routes
	authorizer authorizer.UnconditionalAuthorizer
	// memberRequests is Config.AuthorizeMemberRequests.
	memberRequests bool
	// memberGroups is Config.MemberGroups.
	memberGroups map[string]string
}

// rights are the permissions that admitted a request.
type rights struct {
	// caller and authorized are the subject and the attributes of the hub's decisions.
	caller     user.Info
	authorized []authorizer.Attributes
	// fanned is true for one of several requests for a view. It was already counted for its user,
	// and the permission for all members also admits it.
	fanned bool
	// route leads to the member.
	route *route
	// as is the identity that the member sees, which its agent has to grant. It is empty if
	// ownAccount is true: then it is the gateway's own account.
	as         Impersonation
	ownAccount bool
	// action is what the request does on the member.
	action action
}

// admit decides whether a request is forwarded. The order matters: a caller without permission must
// learn nothing about members. The exchange is nil unless the member exists.
func (a *access) admit(r *http.Request, request *Request) (*exchange, error) {
	ctx := r.Context()
	outer, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the attributes of the request: %w", err)
	}
	authorized, err := a.authorizeMore(ctx, outer, r.Method, request)
	if err != nil {
		return nil, err
	}
	member, ok := a.members.Get(request.Member)
	if !ok {
		return nil, notFound(request.Member)
	}
	x := &exchange{request: request, rights: rights{
		caller: outer.GetUser(), authorized: authorized, fanned: fannedFrom(ctx) != "", route: a.routes.of(request.Member), action: actionOf(request),
		ownAccount: member.Labels[authenticationv1beta1.LabelIdentity] == authenticationv1beta1.IdentityServiceAccount,
	}}
	if x.ownAccount {
		return x, nil
	}
	as, refusal := Impersonate(outer.GetUser(), a.memberGroups)
	if refusal != "" {
		return x, apierrors.NewForbidden(proxyResource, request.Member, errors.New(refusal))
	}
	x.as = as
	return x, nil
}

// authorizeMore checks the permissions that the HTTP method does not show, and those for the
// request on the member. It returns everything that the request needs on the hub.
func (a *access) authorizeMore(ctx context.Context, outer authorizer.Attributes, method string, request *Request) ([]authorizer.Attributes, error) {
	switch outer.GetVerb() {
	case "get", "create", "update", "patch", "delete":
	default:
		return nil, apierrors.NewMethodNotSupported(proxyResource, method)
	}
	var more []authorizer.AttributesRecord
	if request.Upgrade && outer.GetVerb() != "create" {
		more = append(more, withVerb(outer, "create"))
	}
	if request.DeletesCollection(method) {
		more = append(more, withVerb(outer, "deletecollection"))
	}
	if a.memberRequests {
		more = append(more, innerAttributes(outer.GetUser(), request))
	}
	all := []authorizer.Attributes{outer}
	for _, attributes := range more {
		if err := a.authorize(ctx, attributes); err != nil {
			return nil, err
		}
		all = append(all, attributes)
	}
	return all, nil
}

// authorize asks the hub. A failed review counts as a denial.
func (a *access) authorize(ctx context.Context, attributes authorizer.AttributesRecord) error {
	decision, reason, err := a.authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing %s: %w", attributes.Verb, err))
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}

func withVerb(outer authorizer.Attributes, verb string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: outer.GetUser(), Verb: verb, Name: outer.GetName(),
		APIGroup: outer.GetAPIGroup(), APIVersion: outer.GetAPIVersion(),
		Resource: outer.GetResource(), Subresource: outer.GetSubresource(),
		ResourceRequest: true, Path: outer.GetPath(),
	}
}

// InnerGroup is the group in which the hub authorizes requests on members, in addition to the
// access to the member. No resource of it is served.
const InnerGroup = "request.fleetgate.io"

// innerNonResource stands for a path on a member that is not a resource, such as /version.
const innerNonResource = "nonresource"

// innerAttributes describe a request on a member to the hub. The resource is the member's resource
// with its group after a dot; subresource, verb and namespace are those on the member; the name is
// the member's. An upgrade of a subresource (exec, attach, port-forward, a proxy) is a create,
// whatever its method is.
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
