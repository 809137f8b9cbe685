// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// Config is what a Handler needs. All fields except Connected are required.
type Config struct {
	Members *clustergateway.Inventory
	// IsAgentOf is true for a user of the hub who is the member's agent.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)
	// Upgrade returns the handler that switches protocols on an authorized request and serves a
	// member's tunnel on the connection until it ends.
	Upgrade func(member string) http.Handler
	// Connected is true if a member has a tunnel to this replica. If nil, no member has one.
	Connected  func(member string) bool
	Serializer runtime.NegotiatedSerializer
}

// Handler accepts tunnels from agents.
type Handler struct{ config Config }

// New returns a Handler.
func New(c Config) *Handler { return &Handler{config: c} }

// IsTunnel is true for requests that the hub authorizes on tunnels/proxy.
func IsTunnel(info *apirequest.RequestInfo) bool {
	return info.IsResourceRequest && info.APIGroup == tunnelv1alpha1.GroupName &&
		info.APIVersion == tunnelv1alpha1.GroupVersion.Version && info.APIPrefix == "apis" &&
		info.Resource == tunnelv1alpha1.Resource && info.Subresource == tunnelv1alpha1.SubresourceProxy
}

// Handles is true for requests that Handler serves.
func Handles(r *http.Request) bool {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	return ok && IsTunnel(info)
}

var proxyResource = tunnelv1alpha1.GroupVersion.WithResource(
	tunnelv1alpha1.Resource + "/" + tunnelv1alpha1.SubresourceProxy).GroupResource()

// ServeHTTP hands the connection over, or refuses it with the reason.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, _ := apirequest.RequestInfoFrom(r.Context())
	if err := h.admit(r, info); err != nil {
		responsewriters.RespondWithError(w, r, err, h.config.Serializer)
		return
	}
	h.config.Upgrade(info.Name).ServeHTTP(w, r)
}

// admit also refuses a path that contains another member's namespace or a verb, because the hub
// would have authorized something other than a tunnel of that member. Agents of the previous
// version name no namespace: their permission covers the whole hub, and therefore this member.
func (h *Handler) admit(r *http.Request, info *apirequest.RequestInfo) error {
	if r.Method != http.MethodPost {
		return apierrors.NewMethodNotSupported(proxyResource, r.Method)
	}
	if info == nil || info.Verb != "create" || info.Name == "" || len(info.Parts) != 3 ||
		info.Namespace != "" && info.Namespace != clusterv1beta1.MemberNamespace(info.Name) {
		return apierrors.NewBadRequest("a tunnel is opened by a POST to " + tunnelv1alpha1.PathOf("<member>", clusterv1beta1.MemberNamespace("<member>")))
	}
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return apierrors.NewUnauthorized("no user")
	}
	is, err := h.config.IsAgentOf(r.Context(), user.GetName(), info.Name)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("checking whether %q is the agent of %q: %w", user.GetName(), info.Name, err))
	}
	if !is {
		return apierrors.NewForbidden(proxyResource, info.Name, fmt.Errorf("user %q is not the agent of this member", user.GetName()))
	}
	if _, ok := h.config.Members.Get(info.Name); !ok {
		return apierrors.NewForbidden(proxyResource, info.Name, errors.New("there is no such member"))
	}
	return nil
}
