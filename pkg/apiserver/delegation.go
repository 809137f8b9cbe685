// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
)

// How long the hub's decisions are cached.
const (
	authenticatedFor = 10 * time.Second
	authorizedFor    = 10 * time.Second
	reviewTimeout    = 10 * time.Second
)

// probePaths are open to anonymous callers.
var probePaths = []string{"/livez", "/readyz", "/healthz"}

// delegation authenticates and authorizes callers through the hub.
type delegation struct{ client kubernetes.Interface }

// newDelegation raises the client's rate limit, because the first request of every caller costs two
// reviews.
func newDelegation(hub *rest.Config) (*delegation, error) {
	config := rest.CopyConfig(hub)
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return &delegation{client: client}, nil
}

// authentication configures how callers are authenticated. It follows changes of the front proxy's
// CA and headers and of the CA of client certificates. The returned function fails until all of
// them are known.
func (d *delegation) authentication(ctx context.Context, config *genericserver.Config) (known func() error, err error) {
	published, err := frontproxy.Read(ctx, d.client)
	if err != nil {
		return nil, err
	}
	for _, ca := range []dynamiccertificates.CAContentProvider{published.ClientCA, published.FrontProxy.CAContentProvider} {
		if err := config.Authentication.ApplyClientCert(ca, config.SecureServing); err != nil {
			return nil, fmt.Errorf("accepting client certificates: %w", err)
		}
	}
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                          anonymousProbes(),
		TokenAccessReviewClient:            d.client.AuthenticationV1(),
		TokenAccessReviewTimeout:           reviewTimeout,
		WebhookRetryBackoff:                options.DefaultAuthWebhookRetryBackoff(),
		CacheTTL:                           authenticatedFor,
		ClientCertificateCAContentProvider: published.ClientCA,
		RequestHeaderConfig:                published.FrontProxy,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("delegating authentication: %w", err)
	}
	config.Authentication.Authenticator = authenticator
	config.Authentication.RequestHeaderConfig = published.FrontProxy
	return published.Known, nil
}

func anonymousProbes() *apiserver.AnonymousAuthConfig {
	anonymous := &apiserver.AnonymousAuthConfig{Enabled: true}
	for _, p := range probePaths {
		anonymous.Conditions = append(anonymous.Conditions, apiserver.AnonymousAuthCondition{Path: p})
	}
	return anonymous
}

// authorizer asks the hub about every path except the probes. It allows system:masters without a
// review, as the hub does.
func (d *delegation) authorizer() (authorizer.Authorizer, error) {
	probes, err := path.NewAuthorizer(probePaths)
	if err != nil {
		return nil, fmt.Errorf("allowing the probes: %w", err)
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: d.client.AuthorizationV1(),
		AllowCacheTTL:             authorizedFor,
		DenyCacheTTL:              authorizedFor,
		WebhookRetryBackoff:       options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("delegating authorization: %w", err)
	}
	all, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "system-masters", Authorizer: authorizerfactory.NewPrivilegedGroups("system:masters")},
		union.NamedAuthorizer{AuthorizerName: "probes", Authorizer: probes},
		union.NamedAuthorizer{AuthorizerName: "hub", Authorizer: reviews},
	)
	if err != nil {
		return nil, fmt.Errorf("joining authorizers: %w", err)
	}
	return all, nil
}
