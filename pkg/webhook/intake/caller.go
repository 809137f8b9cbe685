// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// frontProxy authenticates callers that come through the hub's API server: none, unless the
// connection has a certificate of the front proxy that the ConfigMap names.
func frontProxy(config *authenticatorfactory.RequestHeaderConfig) authenticator.Request {
	return headerrequest.NewDynamicVerifyOptionsSecure(config.CAContentProvider.VerifyOptions, config.AllowedClientNames,
		config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
}

// certificate authenticates callers with a client certificate of the CA. Its common name is the
// user.
func certificate(ca dynamiccertificates.CAContentProvider) authenticator.Request {
	return x509request.NewDynamic(ca.VerifyOptions, x509request.CommonNameUserConversion)
}

// proved returns the user of the request, or nil if nothing proves one. A certificate that does not
// verify counts as none.
func proved(by authenticator.Request, r *http.Request) user.Info {
	if by == nil {
		return nil
	}
	answer, ok, err := by.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil
	}
	return answer.User
}

// isAPIServer is true for the hub's API server when it calls itself. The name alone is not enough:
// a certificate for it can be issued without the group. The group makes its owner the hub's
// administrator.
func isAPIServer(caller user.Info) bool {
	return caller.GetName() == user.APIServerUser && slices.Contains(caller.GetGroups(), user.SystemPrivilegedGroup)
}
