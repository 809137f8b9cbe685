// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GatewayAccount is the gateway's ManagedServiceAccount on every member. Its ServiceAccount
	// there and its Secret on the hub have the same name.
	GatewayAccount = "cluster-gateway"

	// AccountNamespace is the default namespace on the member in which an agent creates the
	// ServiceAccounts.
	AccountNamespace = "open-cluster-management-managed-serviceaccount"

	// GatewayValidity is the lifetime that the gateway requests for its tokens.
	GatewayValidity = 24 * time.Hour

	// MinValidity is the minimum lifetime of a token that an API server accepts.
	MinValidity = 10 * time.Minute

	// DefaultValidity is the default lifetime of a token: 360 days.
	DefaultValidity = 8640 * time.Hour
)

const (
	// LabelManagedServiceAccount is on the ServiceAccount on the member and on the Secret on the
	// hub, with the value LabelManagedServiceAccountValue. The agent writes both. Other products
	// write it too, so it does not identify the owner of a ServiceAccount; [AnnotationMadeFor]
	// does.
	LabelManagedServiceAccount = "authentication.open-cluster-management.io/is-managed-serviceaccount"

	// LabelManagedServiceAccountValue is the only value of LabelManagedServiceAccount.
	LabelManagedServiceAccountValue = "true"

	// LabelSourceNamespace is on a ManagedServiceAccount in a member's namespace. The hub created it for
	// one of the same name in another namespace, which an administrator assigned to the member. The
	// value is that namespace. The hub writes it.
	LabelSourceNamespace = "fleetgate.io/source-namespace"

	// DeprecatedLabelAskedFrom is the previous key of LabelSourceNamespace. The hub writes both, so
	// that a gateway of the previous version knows its ManagedServiceAccounts after a rollback.
	// Remove after the next release.
	DeprecatedLabelAskedFrom = "fleetgate.io/asked-from"

	// LabelArgoCD with the value LabelArgoCDValue on a MemberCluster requests a Secret for Argo
	// CD. Administrators write it.
	LabelArgoCD = "fleetgate.io/argocd"

	// LabelArgoCDValue is the only value of LabelArgoCD.
	LabelArgoCDValue = "true"

	// LabelIdentity is on a MemberCluster and sets the identity with which the gateway forwards
	// requests there. With the value IdentityServiceAccount it uses its own account. With any other
	// value, or if unset, it impersonates the caller. Administrators write it.
	LabelIdentity = "fleetgate.io/identity"

	// IdentityServiceAccount makes every caller act as GatewayAccount, with the rights of that
	// account on the member.
	IdentityServiceAccount = "ServiceAccount"

	// AnnotationMadeFor identifies the ManagedServiceAccount for which an object was created, so
	// that the object is deleted when another one of the same name replaces it. On a ServiceAccount
	// on a member it is the namespace of the agent, a slash and the UID; the agent writes it. On a
	// ManagedServiceAccount with LabelSourceNamespace it is the UID of the original; the hub writes it.
	AnnotationMadeFor = "fleetgate.io/made-for"

	// AnnotationAssignedTo is on a ServiceAccount on a member. Its value is the UID of a
	// ManagedServiceAccount that can use the account although it was created for something else. An
	// administrator of the member writes it.
	AnnotationAssignedTo = "fleetgate.io/assigned-to"

	// DeprecatedAnnotationGivenTo is the previous key of AnnotationAssignedTo. The agent still reads
	// it on an account without the new one.
	// Remove after the next release.
	DeprecatedAnnotationGivenTo = "fleetgate.io/given-to"

	// AnnotationPendingAdoption is on a ServiceAccount on a member that another product's agent
	// managed when fleetgate's agent, with accounts.adopt, found it: the account is adopted when that
	// agent has stopped. Its value is the agent's namespace, the UID of the ManagedServiceAccount
	// and that of the ServiceAccount, separated by slashes. The agent writes it.
	AnnotationPendingAdoption = "fleetgate.io/pending-adoption"

	// DeprecatedAnnotationHeldFor is the previous key of AnnotationPendingAdoption. The agent still
	// reads it on an account without the new one.
	// Remove after the next release.
	DeprecatedAnnotationHeldFor = "fleetgate.io/held-for"
)

// Keys of the Secret on the hub. It has no others.
const (
	// SecretKeyToken holds the token.
	SecretKeyToken = "token"
	// SecretKeyCA holds the PEM certificates that verify the member's API server.
	SecretKeyCA = "ca.crt"
	// MaxSecretBytes limits the total size of both values. The hub rejects a larger Secret.
	MaxSecretBytes = 64 << 10
)

// Condition types of a ManagedServiceAccount.
const (
	// ConditionSecretCreated is True while the Secret exists.
	ConditionSecretCreated = "SecretCreated"
	// ConditionTokenReported is True while the Secret holds a valid token.
	ConditionTokenReported = "TokenReported"
)

// Reasons of a ManagedServiceAccount's conditions.
const (
	// ReasonSecretCreated goes with SecretCreated=True.
	ReasonSecretCreated = "SecretCreated"
	// ReasonTokenReported goes with TokenReported=True.
	ReasonTokenReported = "TokenReported"
	// ReasonTokenReportFailed goes with either as False: the message is the cause. A previous token
	// stays until it expires.
	ReasonTokenReportFailed = "TokenReportFailed"
	// ReasonNotServed goes with either as False: the namespace of the ManagedServiceAccount is
	// assigned to no member.
	ReasonNotServed = "NotServed"
)

// ManagedServiceAccount is a service account on a member whose token the agent keeps valid on the
// hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="TokenReported")].status`
// +kubebuilder:printcolumn:JSONPath=`.status.tokenSecretRef.name`,name="Secret",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.expirationTimestamp`,name="Expires",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ManagedServiceAccount struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the lifetime of the tokens and of this object.
	// +optional
	Spec ManagedServiceAccountSpec `json:"spec,omitzero"`

	// status is what the agent reports.
	// +optional
	Status ManagedServiceAccountStatus `json:"status,omitzero"`
}

// ManagedServiceAccountSpec is the lifetime of the tokens and of the ManagedServiceAccount.
type ManagedServiceAccountSpec struct {
	// rotation sets the lifetime of each token. If unset, the defaults.
	Rotation ManagedServiceAccountRotation `json:"rotation"`

	// ttlSecondsAfterCreation is the age in seconds at which the hub deletes the
	// ManagedServiceAccount. If unset, never.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +optional
	TTLSecondsAfterCreation *int32 `json:"ttlSecondsAfterCreation,omitempty"`
}

// ManagedServiceAccountRotation sets the lifetime of each token.
type ManagedServiceAccountRotation struct {
	// enabled renews the token before it expires. If false, only one token is issued, even if it
	// expired or was removed. Default true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// validity is the requested lifetime of tokens, as a Go duration. The member's API server can
	// grant less, which then counts. Default 8640h0m0s (360 days). Less than 10 minutes is
	// rejected.
	// +kubebuilder:default="8640h0m0s"
	// +optional
	Validity metav1.Duration `json:"validity,omitzero"`
}

// ManagedServiceAccountStatus is what the agent reports.
type ManagedServiceAccountStatus struct {
	// conditions are SecretCreated and TokenReported.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expirationTimestamp is when the current token expires, as granted by the member's API server.
	// Unset until there is a token.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`

	// tokenSecretRef is the Secret of the token. Unset until there is a token.
	// +optional
	TokenSecretRef *SecretRef `json:"tokenSecretRef,omitempty"`
}

// SecretRef identifies a Secret in the same namespace.
type SecretRef struct {
	// name of the Secret, the same as that of the ManagedServiceAccount.
	Name string `json:"name"`

	// lastRefreshTimestamp is when the agent last wrote a token to it.
	LastRefreshTimestamp metav1.Time `json:"lastRefreshTimestamp"`
}

// ManagedServiceAccountList is a list of ManagedServiceAccounts.
//
// +kubebuilder:object:root=true
type ManagedServiceAccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ManagedServiceAccount `json:"items"`
}

// AccountUsername returns the username of a ManagedServiceAccount's service account on the member's
// API server, if the agent uses the default namespace.
func AccountUsername(account string) string { return UsernameIn(AccountNamespace, account) }

// UsernameIn returns the username of a service account.
func UsernameIn(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// Rotates reports whether the token is renewed before it expires.
func (r ManagedServiceAccountRotation) Rotates() bool { return r.Enabled == nil || *r.Enabled }

// RequestedValidity returns the lifetime to request.
func (r ManagedServiceAccountRotation) RequestedValidity() time.Duration {
	if r.Validity.Duration == 0 {
		return DefaultValidity
	}
	return r.Validity.Duration
}
