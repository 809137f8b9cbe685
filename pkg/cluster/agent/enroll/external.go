// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// External is an identity that another program issues and refreshes, such as a cloud identity with
// a token file. It registers nothing and stores nothing: it waits until a MemberCluster on the hub
// names the identity. Create it with NewExternal.
type External struct {
	member string
	hub    *rest.Config
	clock  clock.Clock

	// admitted is closed when this identity has read the member's InternalMemberCluster.
	admitted chan struct{}
	// problem is the current problem; nil if there is none.
	problem atomic.Pointer[refusal.Refusal]
}

const (
	// externalRetry is the interval of requests until the hub admits the identity.
	externalRetry = 2 * time.Second
	// externalCheck is the interval afterwards, for the readiness probe.
	externalCheck = time.Minute
)

// NewExternal returns an External. hub is the configuration to reach the hub; its token file is
// re-read, and its exec plugin is run whenever the credential has expired.
func NewExternal(member string, hub *rest.Config, clock clock.Clock) *External {
	e := &External{member: member, hub: rest.CopyConfig(hub), clock: clock, admitted: make(chan struct{})}
	e.hub.UserAgent = "fleetgate-agent"
	e.problem.Store(refuse(NotStarted, nil, "the agent has not connected to the hub yet"))
	return e
}

// Run checks the identity until ctx is done, and then returns nil.
func (e *External) Run(ctx context.Context) error {
	hub, err := restClient(e.hub)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.clock.After(e.try(ctx, hub)):
		}
	}
	return nil
}

// try checks once and returns the delay until the next check.
func (e *External) try(ctx context.Context, hub rest.Interface) time.Duration {
	if problem := e.check(ctx, hub); problem != nil {
		e.report(ctx, problem)
		return externalRetry
	}
	e.admit(ctx)
	return externalCheck
}

func restClient(hub *rest.Config) (rest.Interface, error) {
	config := rest.CopyConfig(hub)
	config.Timeout = hubCallTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client for the hub: %w", err)
	}
	return client.RESTClient(), nil
}

// check reads the member's InternalMemberCluster, which only the member's identity can read.
func (e *External) check(ctx context.Context, hub rest.Interface) *refusal.Refusal {
	err := hub.Get().AbsPath(internalPath(e.member)).Do(ctx).Error()
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return refuse(CredentialRefused, err,
			"hub %s does not accept the credential that this agent was given: check the program that refreshes it", e.hub.Host)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return refuse(RegistrationPending, err,
			"hub %s does not let this agent act for member %q (%v): create MemberCluster %q there with this agent's user as spec.identity",
			e.hub.Host, e.member, err, e.member)
	case isUntrusted(err):
		return refuse(HubNotTrusted, err,
			"the certificate of hub %s is not signed by the given CA, or is for another name or time (%v): check --hub-url, --hub-ca-file and this machine's clock",
			e.hub.Host, cause(err))
	case isUnreachable(err):
		return refuse(HubUnreachable, err, "hub %s does not answer (%v): check --hub-url, and the network to it", e.hub.Host, cause(err))
	default:
		return refuse(HubNotReady, err, "hub %s answers, but not as expected (%v): check that it is the hub's API server and that the gateway is installed there",
			e.hub.Host, cause(err))
	}
}

func (e *External) report(ctx context.Context, problem *refusal.Refusal) {
	before := e.problem.Swap(problem)
	if ctx.Err() == nil && (before == nil || before.Message != problem.Message) {
		log.FromContext(ctx).Info("Not enrolled: "+problem.Message, "reason", problem.Reason)
	}
}

func (e *External) admit(ctx context.Context) {
	if e.problem.Swap(nil) != nil {
		log.FromContext(ctx).Info("The hub admitted this agent", "member", e.member, "hub", e.hub.Host)
	}
	select {
	case <-e.admitted:
	default:
		close(e.admitted)
	}
}

// Unstored returns nil: the agent stores nothing.
func (e *External) Unstored() error { return nil }

// Ready returns nil while the hub admits the identity, otherwise the refusal. It is a readiness
// check.
func (e *External) Ready() error {
	if problem := e.problem.Load(); problem != nil {
		return problem
	}
	return nil
}

// Member waits until the hub admits the identity and returns the member's name.
func (e *External) Member(ctx context.Context) (string, error) {
	return e.member, e.await(ctx)
}

// HubConfig waits until the hub admits the identity and returns the configuration to reach it.
func (e *External) HubConfig(ctx context.Context) (*rest.Config, error) {
	return rest.CopyConfig(e.hub), e.await(ctx)
}

// Moved returns nil: the URL of the hub is fixed.
func (e *External) Moved() <-chan struct{} { return nil }

// Mover returns nil: the issuer of the identity configures the URL of the hub.
func (e *External) Mover() func(ctx context.Context, server string, ca []byte) error { return nil }

// Origin is the URL of the hub.
func (e *External) Origin() string { return e.hub.Host }

func (e *External) await(ctx context.Context) error {
	select {
	case <-e.admitted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the hub to know member %q: %w", e.member, ctx.Err())
	}
}

var errNotSent = errors.New("not sent")

// Token returns the bearer token that a request to the hub would contain now. It is empty for a
// client certificate.
func (e *External) Token(ctx context.Context) (string, error) {
	header := ""
	wrapped, err := rest.HTTPWrappersForConfig(e.hub, roundTripper(func(request *http.Request) (*http.Response, error) {
		header = request.Header.Get("Authorization")
		return nil, errNotSent
	}))
	if err != nil {
		return "", fmt.Errorf("reading the agent's credential: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.hub.Host, nil)
	if err != nil {
		return "", fmt.Errorf("reading the agent's credential: %w", err)
	}
	if _, err := wrapped.RoundTrip(request); !errors.Is(err, errNotSent) {
		return "", fmt.Errorf("reading the agent's credential: %w", err)
	}
	return strings.TrimPrefix(header, "Bearer "), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
