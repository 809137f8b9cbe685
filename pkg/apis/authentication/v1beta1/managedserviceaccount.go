// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GatewayAccount is the ManagedServiceAccount of the gateway on every
	// member, and so the name of its ServiceAccount there and of its Secret on
	// the hub.
	GatewayAccount = "cluster-gateway"

	// AccountNamespace is the namespace on the member in which an agent makes
	// the ServiceAccounts, unless it is told another.
	AccountNamespace = "open-cluster-management-managed-serviceaccount"

	// GatewayValidity is how long the gateway asks its tokens to live.
	GatewayValidity = 24 * time.Hour

	// MinValidity is the shortest life that an API server gives a token.
	MinValidity = 10 * time.Minute

	// DefaultValidity is the life of a token whose ManagedServiceAccount does
	// not say: 360 days.
	DefaultValidity = 8640 * time.Hour
)

const (
	// LabelManagedServiceAccount is on the ServiceAccount on the member and on
	// the Secret on the hub, with the value LabelManagedServiceAccountValue. The
	// agent writes both. Other products write it too: it does not tell whose a
	// ServiceAccount is, [AnnotationMadeFor] does.
	LabelManagedServiceAccount = "authentication.open-cluster-management.io/is-managed-serviceaccount"

	// LabelManagedServiceAccountValue is the one value of
	// LabelManagedServiceAccount.
	LabelManagedServiceAccountValue = "true"

	// LabelAskedFrom is on a ManagedServiceAccount in a member's namespace that
	// the hub made for one of the same name in a namespace that an administrator
	// gave to that member. Its value is that namespace. The hub writes it.
	LabelAskedFrom = "fleetgate.io/asked-from"

	// LabelArgoCD is on a MemberCluster, with the value LabelArgoCDValue, for
	// which Argo CD is to have a Secret. Administrators write it.
	LabelArgoCD = "fleetgate.io/argocd"

	// LabelArgoCDValue is the one value of LabelArgoCD.
	LabelArgoCDValue = "true"

	// LabelIdentity is on a MemberCluster and says as whom the gateway acts there
	// for its callers: with the value IdentityServiceAccount as its own account,
	// with any other, and without the label, as the caller. Administrators write it.
	LabelIdentity = "fleetgate.io/identity"

	// IdentityServiceAccount has every caller act as GatewayAccount, with the
	// rights that the member gives that account.
	IdentityServiceAccount = "ServiceAccount"

	// AnnotationMadeFor says for which ManagedServiceAccount something was made,
	// so that it goes when another one of the same name takes its place. On a
	// ServiceAccount on a member it is the namespace of the agent, a slash and
	// the UID; the agent writes it. On a ManagedServiceAccount with LabelAskedFrom
	// it is the UID of the other; the hub writes it.
	AnnotationMadeFor = "fleetgate.io/made-for"

	// AnnotationGivenTo is on a ServiceAccount on a member. An administrator of the
	// member writes the UID of the ManagedServiceAccount that may have the account
	// though it was made for something else.
	AnnotationGivenTo = "fleetgate.io/given-to"

	// AnnotationHeldFor is on a ServiceAccount on a member that another product's
	// agent held for a ManagedServiceAccount when our agent, asked to adopt, looked:
	// the agent's namespace, the UID of the ManagedServiceAccount and that of the
	// ServiceAccount, with a slash between them. The agent writes it.
	AnnotationHeldFor = "fleetgate.io/held-for"
)

// Keys of the Secret on the hub. It has these two and no other.
const (
	// SecretKeyToken holds the token.
	SecretKeyToken = "token"
	// SecretKeyCA holds the PEM certificates with which to verify the member's
	// API server.
	SecretKeyCA = "ca.crt"
	// MaxSecretBytes bounds the two values together. The hub refuses a Secret
	// that is larger.
	MaxSecretBytes = 64 << 10
)

// Condition types of a ManagedServiceAccount.
const (
	// ConditionSecretCreated is True while the Secret is there.
	ConditionSecretCreated = "SecretCreated"
	// ConditionTokenReported is True while the Secret holds a token that works.
	ConditionTokenReported = "TokenReported"
)

// Reasons of a ManagedServiceAccount's conditions.
const (
	// ReasonSecretCreated goes with SecretCreated=True.
	ReasonSecretCreated = "SecretCreated"
	// ReasonTokenReported goes with TokenReported=True.
	ReasonTokenReported = "TokenReported"
	// ReasonTokenReportFailed goes with either as False: the message says what
	// failed. An older token that still lives is kept.
	ReasonTokenReportFailed = "TokenReportFailed"
	// ReasonNotServed goes with either as False: the ManagedServiceAccount is in
	// a namespace that is given to no member.
	ReasonNotServed = "NotServed"
)

// ManagedServiceAccount is a service account on a member whose token is on the
// hub, always fresh.
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

	// spec is how long tokens live.
	// +optional
	Spec ManagedServiceAccountSpec `json:"spec,omitzero"`

	// status is what the agent did last.
	// +optional
	Status ManagedServiceAccountStatus `json:"status,omitzero"`
}

// ManagedServiceAccountSpec is how long tokens live.
type ManagedServiceAccountSpec struct {
	// rotation is how long each token lives. Empty means the defaults.
	Rotation ManagedServiceAccountRotation `json:"rotation"`

	// ttlSecondsAfterCreation is after how many seconds the
	// ManagedServiceAccount itself is to be deleted. Empty means never.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +optional
	TTLSecondsAfterCreation *int32 `json:"ttlSecondsAfterCreation,omitempty"`
}

// ManagedServiceAccountRotation is how long each token lives.
type ManagedServiceAccountRotation struct {
	// enabled is whether the token is refreshed before it expires. If false, one
	// token is issued and never another: not when it has expired, and not when
	// somebody removed it. It defaults to true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// validity is how long to ask tokens to live, as a Go duration. The member's
	// API server may grant less, and what it grants counts. It defaults to
	// 8640h0m0s, which is 360 days; under 10 minutes is refused.
	// +kubebuilder:default="8640h0m0s"
	// +optional
	Validity metav1.Duration `json:"validity,omitzero"`
}

// ManagedServiceAccountStatus is what the agent did last.
type ManagedServiceAccountStatus struct {
	// conditions are SecretCreated and TokenReported.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expirationTimestamp is when the present token ends, as the member's API
	// server granted it. Empty until there is a token.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`

	// tokenSecretRef is where the token is. Empty until there is one.
	// +optional
	TokenSecretRef *SecretRef `json:"tokenSecretRef,omitempty"`
}

// SecretRef is a Secret in the same namespace.
type SecretRef struct {
	// name is the Secret's: that of the ManagedServiceAccount.
	Name string `json:"name"`

	// lastRefreshTimestamp is when the agent last wrote a token into it.
	LastRefreshTimestamp metav1.Time `json:"lastRefreshTimestamp"`
}

// ManagedServiceAccountList is a list of ManagedServiceAccounts.
//
// +kubebuilder:object:root=true
type ManagedServiceAccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the accounts.
	Items []ManagedServiceAccount `json:"items"`
}

// AccountUsername is the name by which the member's API server knows the
// service account of a ManagedServiceAccount, if the agent was told no other
// namespace.
func AccountUsername(account string) string { return UsernameIn(AccountNamespace, account) }

// UsernameIn is the name by which an API server knows a service account.
func UsernameIn(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// Rotates is whether the token is refreshed before it expires.
func (r ManagedServiceAccountRotation) Rotates() bool { return r.Enabled == nil || *r.Enabled }

// AskedValidity is how long to ask tokens to live.
func (r ManagedServiceAccountRotation) AskedValidity() time.Duration {
	if r.Validity.Duration == 0 {
		return DefaultValidity
	}
	return r.Validity.Duration
}
