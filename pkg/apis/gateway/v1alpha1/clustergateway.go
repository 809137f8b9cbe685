// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Resource is the plural name of ClusterGateway in paths and rules.
	Resource = "clustergateways"
	// SubresourceProxy hands a request on to the member.
	SubresourceProxy = "proxy"
	// SubresourceHealth tells whether the member would answer.
	SubresourceHealth = "health"

	// InnerGroup is the group in which requests inside a member are authorized
	// on the hub. It is only a name for authorization: nothing is served under
	// it.
	InnerGroup = "request.fleetgate.io"
)

// EndpointType is how the gateway reaches a member's API server.
type EndpointType string

const (
	// EndpointConst is an address that is known beforehand.
	EndpointConst EndpointType = "Const"
	// EndpointClusterProxy is a tunnel that the member's agent opened: what
	// fleetgate's members have.
	EndpointClusterProxy EndpointType = "ClusterProxy"
)

// CredentialType is what the gateway shows to a member's API server.
type CredentialType string

const (
	// CredentialServiceAccountToken is the token of a service account on the
	// member: what fleetgate's members have.
	CredentialServiceAccountToken CredentialType = "ServiceAccountToken"
	// CredentialX509Certificate is a client certificate.
	CredentialX509Certificate CredentialType = "X509Certificate"
	// CredentialDynamic is one that a plugin makes.
	CredentialDynamic CredentialType = "Dynamic"
)

// ClusterGateway is the way into one member. Its name is the member's.
//
// +kubebuilder:object:root=true
type ClusterGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the gateway reaches the member.
	// +optional
	Spec ClusterGatewaySpec `json:"spec,omitempty"`

	// status is whether the member would answer.
	// +optional
	Status ClusterGatewayStatus `json:"status,omitempty"`
}

// ClusterGatewaySpec is how the gateway reaches a member.
type ClusterGatewaySpec struct {
	// provider names who runs the cluster. Empty means unknown.
	// +optional
	Provider string `json:"provider,omitempty"`

	// access is the member's address and the kind of credential used there.
	Access ClusterAccess `json:"access"`
}

// ClusterAccess is a member's address and the kind of credential used there.
type ClusterAccess struct {
	// endpoint is where the member's API server is. Empty until it is known.
	// +optional
	Endpoint *ClusterEndpoint `json:"endpoint,omitempty"`

	// credential is what kind of credential the gateway uses, and never the
	// credential itself. Empty until there is one.
	// +optional
	Credential *ClusterAccessCredential `json:"credential,omitempty"`
}

// ClusterEndpoint is where a member's API server is.
type ClusterEndpoint struct {
	// type is Const for an address, ClusterProxy for a tunnel.
	Type EndpointType `json:"type"`

	// const is the address, if type is Const.
	// +optional
	Const *ClusterEndpointConst `json:"const,omitempty"`
}

// ClusterEndpointConst is an address that is known beforehand.
type ClusterEndpointConst struct {
	// address is the URL of the API server.
	Address string `json:"address"`

	// caBundle are the PEM certificates with which to verify it.
	// +listType=atomic
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// insecure is true if it is not verified at all. Empty means false.
	// +optional
	Insecure *bool `json:"insecure,omitempty"`

	// proxy-url is the proxy through which to reach it. Empty means directly.
	// +optional
	ProxyURL *string `json:"proxy-url,omitempty"`
}

// ClusterAccessCredential is what kind of credential the gateway uses.
type ClusterAccessCredential struct {
	// type is ServiceAccountToken, X509Certificate or Dynamic.
	Type CredentialType `json:"type"`
}

// ClusterGatewayStatus is whether a member would answer.
type ClusterGatewayStatus struct {
	// healthy is true while the member is connected and its API server ready.
	// +optional
	Healthy bool `json:"healthy"`

	// healthyReason is one word for why not. Empty if it is healthy.
	// +optional
	HealthyReason HealthyReasonType `json:"healthyReason,omitempty"`
}

// HealthyReasonType is one word for why a member would not answer.
type HealthyReasonType string

const (
	// HealthyReasonNotConnected means that the member's agent has no tunnel
	// open.
	HealthyReasonNotConnected HealthyReasonType = "NotConnected"
	// HealthyReasonNoCredential means that the agent has not brought the
	// gateway's token yet.
	HealthyReasonNoCredential HealthyReasonType = "NoCredential"
	// HealthyReasonUnhealthy means that the agent reports its API server as not
	// ready.
	HealthyReasonUnhealthy HealthyReasonType = "MemberUnhealthy"
)

// ClusterGatewayList is a list of ClusterGateways.
//
// +kubebuilder:object:root=true
type ClusterGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the gateways.
	Items []ClusterGateway `json:"items"`
}

// ClusterGatewayProxyOptions are the options of a request into a member.
//
// +kubebuilder:object:root=true
type ClusterGatewayProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path is the path on the member's API server, with its leading slash.
	// Empty means the root.
	// +optional
	Path string `json:"path,omitempty"`
}
