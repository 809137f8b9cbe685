// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PathOf returns the path at which the agent of a member opens its tunnel by a right in that
// namespace, or by a cluster-wide right if the namespace is empty.
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
	// SubresourceDial is the subresource on which a caller needs the right to create, to dial into
	// a member from outside the gateway. It is used for authorization only and is not served.
	SubresourceDial = "dial"
	// TokenAudience is the audience of tokens that are valid for tunnels only.
	TokenAudience = GroupName
)

// Tunnel is the connection from the hub to one member. It has the member's name.
//
// +kubebuilder:object:root=true
type Tunnel struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is whether the member is connected.
	// +optional
	Status TunnelStatus `json:"status,omitempty"`
}

// TunnelStatus is whether a member is connected.
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

	Items []Tunnel `json:"items"`
}

// TunnelProxyOptions are the options of a request that opens a tunnel.
//
// +kubebuilder:object:root=true
type TunnelProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path after the subresource. Empty when a tunnel is opened.
	// +optional
	Path string `json:"path,omitempty"`
}
