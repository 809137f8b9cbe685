// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/kubeconfig"
)

// Defaults of Options.
const (
	// DefaultTokenLifetime is the requested lifetime of a renewed token.
	DefaultTokenLifetime = 7 * 24 * time.Hour
	// DefaultRenewInterval is the interval of renewals.
	DefaultRenewInterval = time.Hour
)

// ErrIdentityChanged is returned by Run if the hub knows the agent by another member name than
// before. Everything that depends on the former name is invalid; the simplest remedy is to restart
// the agent.
var ErrIdentityChanged = errors.New("the hub has registered this cluster as another member: restart the agent")

// Options configures an Enroller.
type Options struct {
	// Member is a client of the member's own API server.
	Member kubernetes.Interface
	// Namespace is the agent's namespace on the member. If unset, clusterv1beta1.SystemNamespace.
	Namespace string
	// Bootstrap returns registration values. If it is nil or returns nil, Secret BootstrapSecret is
	// used, if it exists.
	Bootstrap Source
	// Missing, if set, describes an expected but missing source of registration values, such as
	// "--bootstrap-file values.yaml is not there".
	Missing string
	// ClientID, if set, overrides the one in the bootstrap.
	ClientID string
	// Labels, if set, override those in the bootstrap.
	Labels map[string]string
	// TokenLifetime is the requested lifetime of a renewed token; the hub decides. If zero,
	// DefaultTokenLifetime.
	TokenLifetime time.Duration
	// RenewInterval is the interval of renewals. If zero, DefaultRenewInterval.
	RenewInterval time.Duration
	// Prove, if set, tests another URL of the hub, beyond the renewal of the credential, before the
	// agent leaves the present URL. The configuration has a token.
	Prove func(ctx context.Context, hub *rest.Config, member string) error
	// WrapHubTransport, if set, wraps every transport to the hub.
	WrapHubTransport func(http.RoundTripper) http.RoundTripper
	// Clock is replaced in tests. If nil, the real clock.
	Clock clock.Clock
}

// Enroller enrolls an agent with the hub and renews its credential. Create it with New.
type Enroller struct {
	options Options
	store   *store

	// current is the credential in use; nil before the first one.
	current atomic.Pointer[credential]
	// enrolled is closed after the first successful use of a credential.
	enrolled chan struct{}
	// trouble is the present problem; nil if there is none.
	trouble atomic.Pointer[refusal.Refusal]
	// doubted has capacity one. It signals that the hub rejected the current token.
	doubted chan struct{}

	// turn is held while the current credential is replaced.
	turn sync.Mutex
	mu   sync.Mutex // guards moved
	// moved is closed when the URL of the hub changes.
	moved chan struct{}
}

// New returns an Enroller.
func New(options Options) *Enroller {
	if options.Namespace == "" {
		options.Namespace = clusterv1beta1.SystemNamespace
	}
	if options.TokenLifetime == 0 {
		options.TokenLifetime = DefaultTokenLifetime
	}
	if options.RenewInterval == 0 {
		options.RenewInterval = DefaultRenewInterval
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	e := &Enroller{
		options:  options,
		store:    &store{member: options.Member, namespace: options.Namespace},
		enrolled: make(chan struct{}),
		doubted:  make(chan struct{}, 1),
		moved:    make(chan struct{}),
	}
	e.trouble.Store(refuse(NotStarted, nil, "the agent has not begun to register"))
	return e
}

// Run enrolls the agent and renews the credential until ctx is done, and then returns nil. The only
// error is ErrIdentityChanged; it retries everything else.
func (e *Enroller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.retry(ctx, e.enroll); err != nil {
			return err
		}
		if ctx.Err() == nil {
			e.keep(ctx)
		}
	}
	return nil
}

// Ready returns nil while the agent is enrolled, otherwise the refusal. It is a readiness check.
func (e *Enroller) Ready() error {
	if trouble := e.trouble.Load(); trouble != nil {
		return trouble
	}
	return nil
}

// Unstored returns why the member does not store the current token; nil if it does. A restarted agent then has a former
// token, which is valid until it expires.
func (e *Enroller) Unstored() error {
	if current := e.current.Load(); current != nil {
		return current.unstored
	}
	return nil
}

// Member waits until the agent is enrolled and returns the member's name.
func (e *Enroller) Member(ctx context.Context) (string, error) {
	current, err := e.await(ctx)
	if err != nil {
		return "", err
	}
	return current.member, nil
}

// Token waits until the agent is enrolled and returns the current token.
func (e *Enroller) Token(ctx context.Context) (string, error) {
	current, err := e.await(ctx)
	if err != nil {
		return "", err
	}
	return current.token, nil
}

// HubConfig waits until the agent is enrolled and returns the configuration to reach the hub as
// this member. Its transport always uses the current token.
func (e *Enroller) HubConfig(ctx context.Context) (*rest.Config, error) {
	current, err := e.await(ctx)
	if err != nil {
		return nil, err
	}
	config := e.hubConfig(current.hubAddress, "")
	config.Timeout = 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bearer{enroller: e, next: next} })
	return config, nil
}

// hubConfig returns the configuration to reach the hub with a token.
func (e *Enroller) hubConfig(hub hubAddress, token string) *rest.Config {
	config := &rest.Config{
		Host:            hub.server,
		TLSClientConfig: rest.TLSClientConfig{CAData: hub.ca},
		BearerToken:     token,
		Timeout:         hubCallTimeout,
		UserAgent:       "fleetgate-agent",
		WrapTransport:   e.options.WrapHubTransport,
	}
	// An invalid proxy URL was rejected with the bootstrap.
	if proxy, err := kubeconfig.ParseProxy("proxyURL", hub.proxy); err == nil && proxy != nil {
		config.Proxy = http.ProxyURL(proxy)
	}
	return config
}

func (e *Enroller) await(ctx context.Context) (*credential, error) {
	select {
	case <-e.enrolled:
		return e.current.Load(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to be enrolled: %w", ctx.Err())
	}
}

// doubt triggers an immediate renewal.
func (e *Enroller) doubt() {
	select {
	case e.doubted <- struct{}{}:
	default:
	}
}

// retry calls try until it succeeds, ctx is done (nil) or the identity changed. It logs a problem
// when it changes.
func (e *Enroller) retry(ctx context.Context, try func(context.Context) error) error {
	pause := pauses{}
	for {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			//lint:ignore nilerr The agent is stopping; the last error does not matter.
			return nil
		}
		if errors.Is(err, ErrIdentityChanged) {
			return err
		}
		e.report(ctx, err)
		select {
		case <-ctx.Done():
			return nil
		case <-e.options.Clock.After(pause.next(refusal.ReasonOf(err))):
		}
	}
}

// pauses has one backoff per reason of failure. A new reason is retried soon. A busy hub that
// alternates between two errors does not reset the backoff each time.
type pauses map[string]*wait.Backoff

func (p pauses) next(reason string) time.Duration {
	backoff, ok := p[reason]
	if !ok {
		first := newBackoff()
		if reason == RegistrationPending {
			first.Cap = pendingCap
		}
		backoff = &first
		p[reason] = backoff
	}
	return backoff.Step()
}

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
	// pendingCap is the longest delay for a pending request. With shorter delays, a thousand agents
	// would keep the hub from answering any of them.
	pendingCap = 15 * time.Second
)

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: firstRetry, Factor: 1.6, Jitter: 0.2, Steps: 100, Cap: lastRetry}
}

func (e *Enroller) report(ctx context.Context, err error) {
	var p *refusal.Refusal
	if !errors.As(err, &p) {
		p = refuse(MemberFailed, err, "the member's API server does not do what the agent needs: %v", err)
	}
	before := e.trouble.Swap(p)
	if before == nil || before.Message != p.Message {
		log.FromContext(ctx).Info("Not enrolled: "+p.Message, "reason", p.Reason)
	}
}

// enroll returns after the first successful use of a credential.
func (e *Enroller) enroll(ctx context.Context) error {
	bootstrap, err := e.bootstrap(ctx)
	if err != nil {
		return refuse(BadBootstrap, err, "the registration values cannot be used: %v", err)
	}
	stored, err := e.store.credential(ctx)
	if err != nil {
		return err
	}
	if stored != nil {
		err := e.useStored(ctx, reach(stored, bootstrap))
		if refusal.ReasonOf(err) != CredentialRefused {
			return err
		}
	}
	if bootstrap == nil {
		missing := ""
		if e.options.Missing != "" {
			missing = " (" + e.options.Missing + ")"
		}
		return refuse(NeedsToken, nil,
			"this agent has no credential that the hub accepts, and no registration token%s: "+
				"give it the values of a ClusterRegistrationToken, for example in Secret %s of namespace %s", missing, BootstrapSecret, e.options.Namespace)
	}
	granted, err := e.register(ctx, bootstrap)
	if err != nil {
		return err
	}
	if err := e.use(ctx, granted); err != nil {
		return err
	}
	return e.store.forgetPreviousKey(ctx)
}

// useStored uses the stored credential, at the previous URL of the hub if necessary. If the hub no
// longer knows it, useStored uses the credential that the hub created for the agent's key.
func (e *Enroller) useStored(ctx context.Context, stored *credential) error {
	err := error(refuse(CredentialRefused, nil, "the credential of member %q has expired", stored.member))
	if stored.expires.After(e.options.Clock.Now()) {
		err = e.use(ctx, stored)
		if back := stored.back(); back != nil && err != nil {
			err = e.use(ctx, back)
		}
	}
	if refusal.ReasonOf(err) != CredentialRefused {
		return err
	}
	returned, failure := e.returnToHub(ctx, stored)
	if failure != nil || returned == nil {
		log.FromContext(ctx).V(1).Info("The hub has no credential for the agent's key", "reason", failure)
		return err
	}
	return e.use(ctx, returned)
}

// reach replaces the hub's address by that of the bootstrap, if there is one, because the bootstrap
// is newer.
func reach(stored *credential, bootstrap *Bootstrap) *credential {
	c := *stored
	if bootstrap != nil && (c.origin == nil || !c.origin.equal(addressIn(bootstrap))) {
		c.hubAddress, c.previous, c.origin = addressIn(bootstrap), nil, nil
	}
	return &c
}

func (e *Enroller) bootstrap(ctx context.Context) (*Bootstrap, error) {
	b, err := e.givenBootstrap(ctx)
	if b == nil && err == nil {
		b, err = e.store.bootstrap(ctx)
	}
	if b == nil || err != nil {
		return nil, err
	}
	complete := *b
	if e.options.ClientID != "" {
		complete.ClientID = e.options.ClientID
	}
	if e.options.Labels != nil {
		complete.Labels = e.options.Labels
	}
	return &complete, complete.Validate()
}

func (e *Enroller) givenBootstrap(ctx context.Context) (*Bootstrap, error) {
	if e.options.Bootstrap == nil {
		return nil, nil
	}
	return e.options.Bootstrap(ctx)
}

// register stores the key before it sends anything, and the credential before it is used.
func (e *Enroller) register(ctx context.Context, bootstrap *Bootstrap) (*credential, error) {
	id, err := e.store.identity(ctx)
	if err != nil {
		return nil, err
	}
	clientID := bootstrap.ClientID
	if clientID == "" {
		if clientID, err = e.store.defaultClientID(ctx); err != nil {
			return nil, err
		}
	}
	labelled := *bootstrap
	labelled.Labels = e.withFacts(ctx, bootstrap.Labels)
	granted, err := e.exchange(ctx, &labelled, id, clientID)
	if err != nil {
		return nil, err
	}
	return granted, e.store.putCredential(ctx, granted)
}

// use renews the credential, which proves that it works, publishes the result, and only then
// deletes the registration token.
func (e *Enroller) use(ctx context.Context, c *credential) error {
	renewed, err := e.renew(ctx, c)
	if err != nil {
		return err
	}
	if former := e.current.Load(); former != nil && (former.member != renewed.member || !former.hubAddress.equal(renewed.hubAddress)) {
		return ErrIdentityChanged
	}
	if err := e.store.deleteBootstrap(ctx); err != nil {
		return err
	}
	e.publish(ctx, renewed)
	return nil
}

func (e *Enroller) publish(ctx context.Context, c *credential) {
	before := e.Unstored()
	if c.unstored != nil && (before == nil || before.Error() != c.unstored.Error()) {
		log.FromContext(ctx).Error(c.unstored, "Could not store the renewed token; retrying")
	}
	first := e.current.Swap(c) == nil
	if e.trouble.Swap(nil) != nil {
		log.FromContext(ctx).Info("Enrolled", "member", c.member, "hub", c.server)
	}
	if first {
		close(e.enrolled)
	}
}
