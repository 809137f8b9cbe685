// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PathOf is where the agent of a member opens its tunnel by a right in that namespace;
// without a namespace, by a right of the whole hub.
func PathOf(member, namespace string) string {
	if namespace != "" {
		namespace = "/namespaces/" + namespace
	}
	return "/apis/" + GroupVersion.String() + namespace + "/" + Resource + "/" + member + "/" + SubresourceProxy
}

const (
	// Resource is the plural name of Tunnel in paths and rules.
	Resource = "tunnels"
	// SubresourceProxy is the subresource on which an agent opens its tunnel.
	SubresourceProxy = "proxy"
	// SubresourceDial is the subresource that a caller must be allowed to create
	// to dial into a member from outside the gateway. It is only a name for
	// authorization; no such resource is served.
	SubresourceDial = "dial"
	// TokenAudience is the audience of tokens that are made for tunnels only.
	TokenAudience = GroupName
)

// Tunnel is the way from the hub into one member. Its name is the member's.
//
// +kubebuilder:object:root=true
type Tunnel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status says whether the member is connected.
	// +optional
	Status TunnelStatus `json:"status,omitempty"`
}

// TunnelStatus says whether a member is connected.
type TunnelStatus struct {
	// connected is true while the member's agent has a tunnel open.
	// +optional
	Connected bool `json:"connected"`
}

// TunnelList is a list of Tunnels.
//
// +kubebuilder:object:root=true
type TunnelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the tunnels.
	Items []Tunnel `json:"items"`
}

// TunnelProxyOptions are the options of a request to open a tunnel.
//
// +kubebuilder:object:root=true
type TunnelProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path is what the request has after the subresource. Opening a tunnel has
	// nothing there.
	// +optional
	Path string `json:"path,omitempty"`
}
