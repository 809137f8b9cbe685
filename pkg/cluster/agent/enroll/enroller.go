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
	// DefaultTokenLifetime is how long a renewed token is asked to live.
	DefaultTokenLifetime = 7 * 24 * time.Hour
	// DefaultRenewInterval is how often the token is renewed.
	DefaultRenewInterval = time.Hour
)

// ErrIdentityChanged is returned by Run when the hub gave the agent another name than
// before: whatever was built on the former one must be built anew, which is easiest
// done by starting the agent again.
var ErrIdentityChanged = errors.New("the hub knows this cluster as another member now: start the agent again")

// Options are what an Enroller needs.
type Options struct {
	// Member is a client of the member's own API server.
	Member kubernetes.Interface
	// Namespace is the agent's namespace on the member. Empty means
	// clusterv1beta1.SystemNamespace.
	Namespace string
	// Bootstrap hands out registration values. Nil, or a nil answer, means those in
	// Secret BootstrapSecret, if it is there.
	Bootstrap Source
	// Missing, if set, says where registration values were looked for in vain, such as
	// "--bootstrap-file values.yaml is not there".
	Missing string
	// ClientID, if set, stands over the one in the bootstrap.
	ClientID string
	// Labels, if set, stand over those in the bootstrap.
	Labels map[string]string
	// TokenLifetime is how long a renewed token is asked to live; what the hub grants
	// counts. Zero means DefaultTokenLifetime.
	TokenLifetime time.Duration
	// RenewInterval is how often the token is renewed. Zero means
	// DefaultRenewInterval.
	RenewInterval time.Duration
	// Prove, if set, is what another way to the hub has to do beside taking the credential, before
	// the agent leaves the present one. The configuration has a token.
	Prove func(ctx context.Context, hub *rest.Config, member string) error
	// WrapHubTransport, if set, goes around every transport to the hub.
	WrapHubTransport func(http.RoundTripper) http.RoundTripper
	// Clock tells the time. Nil means the real one.
	Clock clock.Clock
}

// Enroller enrolls an agent with the hub and keeps it enrolled. Make it with New.
type Enroller struct {
	options Options
	store   *store

	// current is the credential in use; nil until there is one.
	current atomic.Pointer[credential]
	// enrolled is closed when the first credential has served.
	enrolled chan struct{}
	// trouble is what stands in the way now; nil if nothing does.
	trouble atomic.Pointer[refusal.Refusal]
	// doubted has one place: somebody saw the hub refuse the current token.
	doubted chan struct{}

	// turn is held while the credential in use is made another.
	turn sync.Mutex
	mu   sync.Mutex // guards moved
	// moved is closed when the way to the hub becomes another.
	moved chan struct{}
}

// New makes an Enroller.
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

// Run enrolls, and renews until ctx is done. It returns nil then, and otherwise only
// ErrIdentityChanged: everything else is retried.
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

// Ready is nil while the agent is enrolled, and else the refusal that keeps it from
// that: a readiness check.
func (e *Enroller) Ready() error {
	if trouble := e.trouble.Load(); trouble != nil {
		return trouble
	}
	return nil
}

// Member waits until the agent is enrolled, and returns its member's name.
func (e *Enroller) Member(ctx context.Context) (string, error) {
	current, err := e.await(ctx)
	if err != nil {
		return "", err
	}
	return current.member, nil
}

// Token waits until the agent is enrolled, and returns the token that is current now.
func (e *Enroller) Token(ctx context.Context) (string, error) {
	current, err := e.await(ctx)
	if err != nil {
		return "", err
	}
	return current.token, nil
}

// HubConfig waits until the agent is enrolled, and returns how to reach the hub as
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

// hubConfig is how to reach the hub with a token.
func (e *Enroller) hubConfig(hub hubAddress, token string) *rest.Config {
	config := &rest.Config{
		Host:            hub.server,
		TLSClientConfig: rest.TLSClientConfig{CAData: hub.ca},
		BearerToken:     token,
		Timeout:         hubCallTimeout,
		UserAgent:       "fleetgate-agent",
		WrapTransport:   e.options.WrapHubTransport,
	}
	// What cannot be parsed was refused when it came in.
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

// doubt makes keep renew at once.
func (e *Enroller) doubt() {
	select {
	case e.doubted <- struct{}{}:
	default:
	}
}

// retry tries until it works, ctx is done (nil) or the identity changed. What stands
// in the way is logged when it changes.
func (e *Enroller) retry(ctx context.Context, try func(context.Context) error) error {
	pause := pauses{}
	for {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			//lint:ignore nilerr Whoever stops does not ask why the last try failed.
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

// pauses are how long to wait after each reason why something did not work. Every reason has a
// back-off of its own: what is new is tried again soon, and a busy hub that says now this and now
// that is not asked as if each were news.
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
	// pendingCap is how long to wait at most for a request that the hub has: a thousand
	// agents that ask more often keep the hub from answering any of them.
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

// enroll ends with a credential that has served once.
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

// useStored uses a credential from before, by the way to the hub that was left last if need be,
// or, where the hub does not know it any more, the one that it has left for the agent's key.
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
	returned, failure := e.comeBack(ctx, stored)
	if failure != nil || returned == nil {
		log.FromContext(ctx).V(1).Info("The hub has left nothing for the agent's key", "why", failure)
		return err
	}
	return e.use(ctx, returned)
}

// reach takes the hub's address from the bootstrap, if there is one: that is the newer.
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

// register stores the key before anything is sent, and the credential before it is
// used.
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
	granted, err := e.exchange(ctx, bootstrap, id, clientID)
	if err != nil {
		return nil, err
	}
	return granted, e.store.putCredential(ctx, granted)
}

// use renews the credential with itself, which proves that it works, makes the result
// current, and only then forgets the registration token.
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
	first := e.current.Swap(c) == nil
	if e.trouble.Swap(nil) != nil {
		log.FromContext(ctx).Info("Enrolled", "member", c.member, "hub", c.server)
	}
	if first {
		close(e.enrolled)
	}
}
