// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

var (
	_ rest.Scoper               = (*tunnelREST)(nil)
	_ rest.Getter               = (*tunnelREST)(nil)
	_ rest.Lister               = (*tunnelREST)(nil)
	_ rest.SingularNameProvider = (*tunnelREST)(nil)
	_ rest.Connecter            = (*proxyREST)(nil)
)

// Storage returns the storage of each resource of the group.
func (h *Handler) Storage() map[string]rest.Storage {
	return map[string]rest.Storage{
		tunnelv1alpha1.Resource: &tunnelREST{
			TableConvertor: rest.NewDefaultTableConvertor(tunnelv1alpha1.GroupVersion.WithResource(tunnelv1alpha1.Resource).GroupResource()),
			config:         h.config,
		},
		tunnelv1alpha1.Resource + "/" + tunnelv1alpha1.SubresourceProxy: &proxyREST{},
	}
}

// tunnelREST serves Tunnels, read-only.
type tunnelREST struct {
	rest.TableConvertor
	config Config
}

func (r *tunnelREST) New() runtime.Object { return &tunnelv1alpha1.Tunnel{} }

func (r *tunnelREST) NewList() runtime.Object { return &tunnelv1alpha1.TunnelList{} }

func (r *tunnelREST) Destroy() {}

// NamespaceScoped is false, because members belong to the whole hub.
func (r *tunnelREST) NamespaceScoped() bool { return false }

func (r *tunnelREST) GetSingularName() string { return "tunnel" }

func (r *tunnelREST) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	member, ok := r.config.Members.Get(name)
	if !ok {
		return nil, apierrors.NewNotFound(tunnelv1alpha1.GroupVersion.WithResource(tunnelv1alpha1.Resource).GroupResource(), name)
	}
	return r.view(member), nil
}

func (r *tunnelREST) List(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	matches, err := clustergateway.Matcher(options)
	if err != nil {
		return nil, err
	}
	all, version := r.config.Members.List()
	list := &tunnelv1alpha1.TunnelList{Items: []tunnelv1alpha1.Tunnel{}}
	list.ResourceVersion = version
	for _, member := range all {
		if matches(member) {
			list.Items = append(list.Items, *r.view(member))
		}
	}
	return list, nil
}

func (r *tunnelREST) view(member *clusterv1beta1.MemberCluster) *tunnelv1alpha1.Tunnel {
	return &tunnelv1alpha1.Tunnel{
		ObjectMeta: metav1.ObjectMeta{
			Name: member.Name, UID: member.UID, ResourceVersion: member.ResourceVersion,
			CreationTimestamp: member.CreationTimestamp,
		},
		Status: tunnelv1alpha1.TunnelStatus{Connected: r.config.Connected != nil && r.config.Connected(member.Name)},
	}
}

// proxyREST publishes the subresource in discovery and OpenAPI. Handler takes its requests before
// they get here.
type proxyREST struct{}

func (r *proxyREST) New() runtime.Object { return &tunnelv1alpha1.TunnelProxyOptions{} }

func (r *proxyREST) Destroy() {}

// ConnectMethods is POST only, because the permission to open a tunnel is create.
func (r *proxyREST) ConnectMethods() []string { return []string{http.MethodPost} }

// NewConnectOptions returns the options; their path is the rest of the URL path.
func (r *proxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &tunnelv1alpha1.TunnelProxyOptions{}, true, "path"
}

// Connect refuses requests that Handler did not recognise.
func (r *proxyREST) Connect(context.Context, string, runtime.Object, rest.Responder) (http.Handler, error) {
	return nil, apierrors.NewBadRequest("not a request to open a tunnel")
}
