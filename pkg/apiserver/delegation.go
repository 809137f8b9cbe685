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

// maxBulk limits the bulk reviews that are in flight.
const maxBulk = 64

// delegation authenticates and authorizes callers through the hub. Each purpose has a client with
// a rate limit of its own: a caller whose token is new must not wait for reviews of other callers,
// and nobody for reviews of requests in flight.
type delegation struct {
	tokens, calls, bulk kubernetes.Interface
}

// newDelegation raises the rate limits, because the first request of every caller costs two
// reviews.
func newDelegation(hub *rest.Config) (*delegation, error) {
	d := &delegation{}
	for _, client := range []*kubernetes.Interface{&d.tokens, &d.calls, &d.bulk} {
		config := rest.CopyConfig(hub)
		config.QPS, config.Burst, config.RateLimiter = 200, 400, nil
		clientset, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting to the hub: %w", err)
		}
		*client = clientset
	}
	return d, nil
}

// authentication configures how callers are authenticated. It follows changes of the front proxy's
// CA and headers and of the CA of client certificates. The returned function fails until all of
// them are known.
func (d *delegation) authentication(ctx context.Context, config *genericserver.Config) (known func() error, err error) {
	published, err := frontproxy.Read(ctx, d.tokens)
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
		TokenAccessReviewClient:            d.tokens.AuthenticationV1(),
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

// authorizers returns that of requests that wait for the decision, and that of requests in flight and
// of members one by one, which has at most maxBulk reviews in flight.
func (d *delegation) authorizers() (calls, bulk authorizer.Authorizer, err error) {
	if calls, err = authorizerOf(d.calls, nil); err != nil {
		return nil, nil, err
	}
	bulk, err = authorizerOf(d.bulk, make(chan struct{}, maxBulk))
	return calls, bulk, err
}

// bounded limits the time of a review and, with slots, how many are in flight.
type bounded struct {
	authorizer.Authorizer
	slots chan struct{}
}

// Authorize implements authorizer.UnconditionalAuthorizer. A review that takes too long is an error.
func (b *bounded) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if b.slots != nil {
		select {
		case b.slots <- struct{}{}:
			defer func() { <-b.slots }()
		case <-ctx.Done():
			return authorizer.DecisionNoOpinion, "", fmt.Errorf("waiting for other reviews: %w", context.Cause(ctx))
		}
	}
	return b.Authorizer.Authorize(ctx, a)
}

// authorizerOf asks the hub about every path except the probes. It allows system:masters without a
// review, as the hub does.
func authorizerOf(hub kubernetes.Interface, slots chan struct{}) (authorizer.Authorizer, error) {
	probes, err := path.NewAuthorizer(probePaths)
	if err != nil {
		return nil, fmt.Errorf("allowing the probes: %w", err)
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: hub.AuthorizationV1(),
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
		union.NamedAuthorizer{AuthorizerName: "hub", Authorizer: &bounded{Authorizer: reviews, slots: slots}},
	)
	if err != nil {
		return nil, fmt.Errorf("joining authorizers: %w", err)
	}
	return all, nil
}
