// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Resource is the plural name of ClusterGateway in paths and rules.
	Resource = "clustergateways"
	// SubresourceProxy forwards a request to the member.
	SubresourceProxy = "proxy"
	// SubresourceHealth reports whether the member is reachable.
	SubresourceHealth = "health"

	// InnerGroup is the API group by which the hub authorizes requests inside a member. It is used
	// for authorization only and is not served.
	InnerGroup = "request.fleetgate.io"
)

// EndpointType is how the gateway reaches a member's API server.
type EndpointType string

const (
	// EndpointConst is a fixed address.
	EndpointConst EndpointType = "Const"
	// EndpointClusterProxy is a tunnel that the member's agent opened. fleetgate's members use it.
	EndpointClusterProxy EndpointType = "ClusterProxy"
)

// CredentialType is the kind of credential that the gateway presents to a member's API server.
type CredentialType string

const (
	// CredentialServiceAccountToken is the token of a service account on the member. fleetgate's
	// members use it.
	CredentialServiceAccountToken CredentialType = "ServiceAccountToken"
	// CredentialX509Certificate is a client certificate.
	CredentialX509Certificate CredentialType = "X509Certificate"
	// CredentialDynamic is a credential that a plugin creates.
	CredentialDynamic CredentialType = "Dynamic"
)

// ClusterGateway is the access to one member through the gateway. It has the member's name.
//
// +kubebuilder:object:root=true
type ClusterGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the gateway reaches the member.
	// +optional
	Spec ClusterGatewaySpec `json:"spec,omitempty"`

	// status is whether the member is reachable.
	// +optional
	Status ClusterGatewayStatus `json:"status,omitempty"`
}

// ClusterGatewaySpec is how the gateway reaches a member.
type ClusterGatewaySpec struct {
	// provider of the cluster. If unset, unknown.
	// +optional
	Provider string `json:"provider,omitempty"`

	// access is the member's address and the kind of credential used there.
	Access ClusterAccess `json:"access"`
}

// ClusterAccess is a member's address and the kind of credential used there.
type ClusterAccess struct {
	// endpoint of the member's API server. Unset until known.
	// +optional
	Endpoint *ClusterEndpoint `json:"endpoint,omitempty"`

	// credential is the kind of credential that the gateway uses, never the credential itself.
	// Unset until there is one.
	// +optional
	Credential *ClusterAccessCredential `json:"credential,omitempty"`
}

// ClusterEndpoint is the endpoint of a member's API server.
type ClusterEndpoint struct {
	// type is Const for a fixed address or ClusterProxy for a tunnel.
	Type EndpointType `json:"type"`

	// const is the address, for type Const.
	// +optional
	Const *ClusterEndpointConst `json:"const,omitempty"`
}

// ClusterEndpointConst is a fixed address.
type ClusterEndpointConst struct {
	// address is the URL of the API server.
	Address string `json:"address"`

	// caBundle is the PEM certificates that verify it.
	// +listType=atomic
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// insecure disables verification. Default false.
	// +optional
	Insecure *bool `json:"insecure,omitempty"`

	// proxy-url is the proxy to use. If unset, none.
	// +optional
	ProxyURL *string `json:"proxy-url,omitempty"`
}

// ClusterAccessCredential is the kind of credential that the gateway uses.
type ClusterAccessCredential struct {
	// type is ServiceAccountToken, X509Certificate or Dynamic.
	Type CredentialType `json:"type"`
}

// ClusterGatewayStatus is whether a member is reachable.
type ClusterGatewayStatus struct {
	// healthy is true while the member is connected and its API server ready.
	// +optional
	Healthy bool `json:"healthy"`

	// healthyReason is the cause, as one word. Empty if healthy.
	// +optional
	HealthyReason HealthyReasonType `json:"healthyReason,omitempty"`
}

// HealthyReasonType is why a member is not reachable, as one word.
type HealthyReasonType string

const (
	// HealthyReasonNotConnected means that the member's agent has no open tunnel.
	HealthyReasonNotConnected HealthyReasonType = "NotConnected"
	// HealthyReasonNoCredential means that the agent has not reported the gateway's token yet.
	HealthyReasonNoCredential HealthyReasonType = "NoCredential"
	// HealthyReasonUnhealthy means that the agent reports the member's API server as not ready.
	HealthyReasonUnhealthy HealthyReasonType = "MemberUnhealthy"
)

// ClusterGatewayList is a list of ClusterGateways.
//
// +kubebuilder:object:root=true
type ClusterGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterGateway `json:"items"`
}

// ClusterGatewayProxyOptions are the options of a request to a member.
//
// +kubebuilder:object:root=true
type ClusterGatewayProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path on the member's API server, with a leading slash. If unset, the root.
	// +optional
	Path string `json:"path,omitempty"`
}
