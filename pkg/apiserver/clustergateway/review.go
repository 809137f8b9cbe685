// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// DefaultReviewPeriod is how often the authorization of a long-running request is checked again,
// plus up to a quarter of jitter. The first check comes earlier, at a random time. The hub's decisions
// are cached for 10 s, so a request ends 35 s after its permission was revoked, and after at most a
// minute on a slow hub. Members review equally often. Their decisions are cached for as long as the
// period, so a revocation there takes 45 s.
const DefaultReviewPeriod = 20 * time.Second

const (
	// MaxUnreviewed is how long a request continues while the hub or the agent does not decide. A
	// restart of the hub must not end everybody's watches, but a hub that never decides cannot
	// revoke anything.
	MaxUnreviewed = 10 * time.Minute
	// reviewTimeout limits one review.
	reviewTimeout = 30 * time.Second
)

// errRightLost is the cause with which requests end whose caller lost the permission.
var errRightLost = errors.New("the right to this request was revoked")

// errUnreviewed is the errRightLost of a permission that nobody confirms.
var errUnreviewed = fmt.Errorf("%w, or could not be reviewed for %v", errRightLost, MaxUnreviewed)

// check is what a review checks. Requests with the same check share the review.
type check struct {
	// key is equal for equal checks.
	key string
	// run returns why the requests must end, or why that is unknown.
	run func(ctx context.Context) (lost, unknown error)
	// expires ends the requests when the result is unknown for MaxUnreviewed. A member's API server
	// may have no result as long as it runs.
	expires bool
}

// checks returns the check by the hub and the agent, which most requests of a caller share, and the
// one by the member's API server.
func (r *reviews) checks(of rights) ([]check, error) {
	access, err := of.key()
	if err != nil {
		return nil, fmt.Errorf("encoding the attributes of the request: %w", err)
	}
	action, err := of.action.key()
	if err != nil {
		return nil, fmt.Errorf("encoding the action on the member: %w", err)
	}
	return []check{
		{key: "proxy " + access, expires: true, run: func(ctx context.Context) (error, error) { return r.reviewProxy(ctx, of) }},
		{key: "action " + of.route.member + " " + of.as.key() + action, run: func(ctx context.Context) (error, error) { return r.reviewAction(ctx, of) }},
	}, nil
}

// key is equal for requests that the same permissions on the hub and the same grant admitted.
func (r rights) key() (string, error) {
	type attributes struct{ Verb, Namespace, Group, Version, Resource, Subresource, Name, Path string }
	all := make([]attributes, 0, len(r.authorized))
	for _, a := range r.authorized {
		encoded := attributes{
			Verb: a.GetVerb(), Namespace: a.GetNamespace(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
		if !a.IsResourceRequest() {
			encoded.Path = a.GetPath()
		}
		all = append(all, encoded)
	}
	key, err := json.Marshal([]any{
		r.caller.GetName(), r.caller.GetUID(), r.caller.GetGroups(), r.caller.GetExtra(), all, r.route.member, r.as.key(), r.fanned,
	})
	return string(key), err
}

// reviews check the permissions of long-running requests periodically. They run each check once for
// all requests that share it.
type reviews struct {
	period     time.Duration
	authorizer authorizer.UnconditionalAuthorizer
	// mu guards the following fields.
	mu      sync.Mutex
	running map[string]*review
}

func newReviews(period time.Duration, by authorizer.UnconditionalAuthorizer) *reviews {
	return &reviews{period: period, authorizer: by, running: map[string]*review{}}
}

// review covers the requests with one check.
type review struct {
	check check
	// cancels end the requests, guarded by reviews.mu.
	cancels map[*context.CancelCauseFunc]struct{}
	// stop ends the review, done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}
}

// join reviews a request until the returned function is called. The context ends, with errRightLost
// in its cause, when one of the permissions is lost.
func (r *reviews) join(parent context.Context, x *exchange) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	checks, err := r.checks(x.rights)
	if err != nil {
		cancel(err)
		return ctx, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var joined []*review
	for _, c := range checks {
		one := r.running[c.key]
		if one == nil {
			one = r.start(parent, c)
		}
		one.cancels[&cancel] = struct{}{}
		joined = append(joined, one)
	}
	return ctx, func() {
		cancel(nil)
		for _, one := range joined {
			r.leave(one, &cancel)
		}
	}
}

func (r *reviews) start(parent context.Context, c check) *review {
	ctx, stop := context.WithCancel(context.WithoutCancel(parent))
	started := &review{check: c, cancels: map[*context.CancelCauseFunc]struct{}{}, stop: stop, done: make(chan struct{})}
	r.running[c.key] = started
	go func() {
		defer close(started.done)
		if lost := r.await(ctx, c); lost != nil {
			r.end(started, lost)
		}
	}()
	return started
}

// leave removes a request. The last one waits until its review has stopped.
func (r *reviews) leave(left *review, cancel *context.CancelCauseFunc) {
	key := left.check.key
	r.mu.Lock()
	delete(left.cancels, cancel)
	last := len(left.cancels) == 0
	if last && r.running[key] == left {
		delete(r.running, key)
	}
	r.mu.Unlock()
	if last {
		left.stop()
		<-left.done
	}
}

// end ends all requests of a review.
func (r *reviews) end(lost *review, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[lost.check.key] == lost {
		delete(r.running, lost.check.key)
	}
	for cancel := range lost.cancels {
		(*cancel)(why)
	}
}

// await returns why the requests must end, or nil when ctx has ended.
func (r *reviews) await(ctx context.Context, c check) error {
	known := time.Now()
	// The first review is at a random time, because thousands of requests can begin at once.
	pause := rand.N(r.period + r.period/4 + 1)
	for {
		wait := time.NewTimer(pause)
		pause = r.period + rand.N(r.period/4+1)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-wait.C:
		}
		checking, cancel := context.WithTimeout(ctx, reviewTimeout)
		lost, unknown := c.run(checking)
		cancel()
		switch {
		case ctx.Err() != nil:
			//lint:ignore nilerr The request has ended, which is no reason to end it.
			return nil
		case lost != nil:
			return lost
		case unknown == nil:
			known = time.Now()
		case c.expires && time.Since(known) >= MaxUnreviewed:
			return fmt.Errorf("%w: %w", errUnreviewed, unknown)
		}
	}
}

// reviewProxy returns which permission on the hub, or which grant of the agent, was lost.
func (r *reviews) reviewProxy(ctx context.Context, rights rights) (lost, unknown error) {
	var failed []error
	for _, attributes := range rights.authorized {
		decision, err := r.authorize(ctx, attributes, rights.fanned)
		if err == nil && decision != authorizer.DecisionAllow {
			return fmt.Errorf("%w: on the hub, user %q may no longer %s %s of member %q", errRightLost,
				rights.caller.GetName(), attributes.GetVerb(), subject(attributes), rights.route.member), nil
		}
		failed = append(failed, err)
	}
	if rights.as.User != "" {
		refusal, err := rights.route.grants.within(ctx, rights.as, r.period)
		if err == nil && refusal != "" {
			return fmt.Errorf("%w: the agent of member %q no longer lets the gateway act as user %q: %s", errRightLost,
				rights.route.member, rights.as.User, refusal), nil
		}
		failed = append(failed, err)
	}
	unknown = errors.Join(failed...)
	notReviewed(ctx, rights, unknown)
	return nil, unknown
}

// authorize asks the hub. For a request of a view it asks about all members first, so that a thousand
// requests of a caller share one review.
func (r *reviews) authorize(ctx context.Context, of authorizer.Attributes, fanned bool) (authorizer.Decision, error) {
	if fanned {
		decision, _, err := r.authorizer.Authorize(ctx, ofAllMembers(of))
		if err != nil || decision == authorizer.DecisionAllow {
			return decision, err
		}
	}
	decision, _, err := r.authorizer.Authorize(ctx, of)
	return decision, err
}

// ofAllMembers are the attributes without the member's name.
func ofAllMembers(of authorizer.Attributes) authorizer.AttributesRecord {
	all := withVerb(of, of.GetVerb())
	all.Name, all.Namespace = "", of.GetNamespace()
	return all
}

// reviewAction returns that the member's own RBAC no longer allows the request.
func (r *reviews) reviewAction(ctx context.Context, rights rights) (lost, unknown error) {
	allowed, err := rights.route.actions.allowed(ctx, rights.as, rights.action, r.period)
	if err != nil {
		notReviewed(ctx, rights, err)
		return nil, err
	}
	if allowed {
		return nil, nil
	}
	who := "the gateway's account"
	if rights.as.User != "" {
		who = fmt.Sprintf("user %q", rights.as.User)
	}
	return fmt.Errorf("%w: on member %q, %s may no longer %s", errRightLost, rights.route.member, who, rights.action), nil
}

func notReviewed(ctx context.Context, rights rights, err error) {
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Could not review a request in flight", "member", rights.route.member, "reason", untrusted.Excerpt(err.Error(), 512))
	}
}

func subject(a authorizer.Attributes) string {
	if a.GetSubresource() == "" {
		return a.GetResource()
	}
	return a.GetResource() + "/" + a.GetSubresource()
}
