// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Reasons why an agent is not enrolled.
const (
	// NotStarted means that the agent has not tried yet.
	NotStarted = "NotStarted"
	// NeedsToken means that there is neither a valid credential nor a registration token.
	NeedsToken = "NeedsToken"
	// BadBootstrap means that the registration values are invalid.
	BadBootstrap = "BadBootstrap"
	// TokenRefused means that the hub does not accept the registration token.
	TokenRefused = "TokenRefused"
	// NamespaceRefused means that the registration token is for another namespace.
	NamespaceRefused = "NamespaceRefused"
	// CredentialRefused means that the hub does not accept this member's credential, or no longer
	// does.
	CredentialRefused = "CredentialRefused"
	// HubUnreachable means that nothing answers at the hub's URL.
	HubUnreachable = "HubUnreachable"
	// HubNotTrusted means that the server there has a certificate that the CA did not sign.
	HubNotTrusted = "HubNotTrusted"
	// HubNotReady means that the server answers with an unexpected error.
	HubNotReady = "HubNotReady"
	// RegistrationRefused means that the hub rejected the registration, with a reason.
	RegistrationRefused = "RegistrationRefused"
	// RegistrationPending means that the hub has not granted the request yet.
	RegistrationPending = "RegistrationPending"
	// MemberFailed means that a request to the member's own API server failed.
	MemberFailed = "MemberFailed"
)

// refuse returns a refusal with a message for people. err is the cause, or nil; its text is not
// part of the message.
func refuse(reason string, err error, format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...), Err: err}
}

// explainHub converts a failed request to the hub into a refusal. The caller handles responses with
// a special meaning, such as 401, itself.
func explainHub(err error, hub string) *refusal.Refusal {
	if isUntrusted(err) {
		return refuse(HubNotTrusted, err,
			"the certificate of hub %s is not signed by the given CA, or is for another name or time (%v): "+
				"check apiServerURL and apiServerCA in the registration values, and this machine's clock", hub, cause(err))
	}
	if isUnreachable(err) {
		return refuse(HubUnreachable, err,
			"hub %s does not answer (%v): check apiServerURL in the registration values, and the network to it", hub, cause(err))
	}
	return refuse(HubNotReady, err,
		"hub %s answers, but not as expected (%v): check that apiServerURL is the hub's API server and that the gateway is installed there",
		hub, cause(err))
}

// cause removes the method and URL that net/http adds to errors.
func cause(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

func isUntrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		name         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid)
}

func isUnreachable(err error) bool {
	var (
		status  apierrors.APIStatus
		record  tls.RecordHeaderError
		network net.Error
		request *url.Error
	)
	if errors.As(err, &status) {
		return false
	}
	return errors.As(err, &record) || errors.As(err, &network) || errors.As(err, &request)
}

// explainRegistration is explainHub for requests with the registration token.
func explainRegistration(err error, b *Bootstrap) *refusal.Refusal {
	switch {
	case apierrors.IsUnauthorized(err):
		return refuse(TokenRefused, err,
			"hub %s refuses the registration token: it is wrong, has expired or was deleted; "+
				"give the agent the values of a new ClusterRegistrationToken", b.APIServerURL)
	case apierrors.IsForbidden(err):
		return refuse(NamespaceRefused, err,
			"the registration token is not allowed to register clusters in namespace %q of hub %s: "+
				"clusterNamespace must be the namespace of the ClusterRegistrationToken", b.ClusterNamespace, b.APIServerURL)
	default:
		return explainHub(err, b.APIServerURL)
	}
}
