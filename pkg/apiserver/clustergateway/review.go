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

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// DefaultReviewPeriod is how often it is asked again whether a request that lasts may go
// on, a quarter more at most. With the 10 s for which the hub's answers are believed, a
// request ends 35 s after the right to it was taken away, at most a minute on a slow hub.
// A member is asked as often; its answers are believed as long, so that takes 45 s.
const DefaultReviewPeriod = 20 * time.Second

// errRightLost is the cause with which requests end whose caller may no longer make them.
var errRightLost = errors.New("the right to this request was taken away")

// rights are all that let a request in.
type rights struct {
	// caller and asked are whom and what the hub was asked about.
	caller user.Info
	asked  []authorizer.Attributes
	// route and as are which member's agent was asked, and about whom; as is empty if
	// nobody was.
	route *route
	as    Impersonation
	// action is what the member was asked to do.
	action action
}

// question is what a review asks, one for all requests that have the same.
type question struct {
	// key is the same for the same question.
	key string
	// ask returns why the requests must end. What cannot be found out is no reason: neither
	// a hub that restarts nor an agent that is slow ends everybody's watches.
	ask func(ctx context.Context) error
}

// questions are those to the hub and the agent, which most requests of a caller share, and
// the one to the member's own API server.
func (r *reviews) questions(of rights) ([]question, error) {
	way, err := of.key()
	if err != nil {
		return nil, fmt.Errorf("describing who asks for what: %w", err)
	}
	action, err := of.action.key()
	if err != nil {
		return nil, fmt.Errorf("describing what is done on the member: %w", err)
	}
	return []question{
		{key: "way " + way, ask: func(ctx context.Context) error { return r.askWay(ctx, of) }},
		{key: "action " + of.route.member + " " + of.as.key() + action, ask: func(ctx context.Context) error { return r.askMember(ctx, of) }},
	}, nil
}

// key is the same for requests that the same rights on the hub, and the same grant, let in.
func (r rights) key() (string, error) {
	type question struct{ Verb, Namespace, Group, Version, Resource, Subresource, Name, Path string }
	questions := make([]question, 0, len(r.asked))
	for _, a := range r.asked {
		q := question{
			Verb: a.GetVerb(), Namespace: a.GetNamespace(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
		if !a.IsResourceRequest() {
			q.Path = a.GetPath()
		}
		questions = append(questions, q)
	}
	key, err := json.Marshal([]any{
		r.caller.GetName(), r.caller.GetUID(), r.caller.GetGroups(), r.caller.GetExtra(), questions, r.route.member, r.as.key(),
	})
	return string(key), err
}

// reviews ask again, as long as requests last, for the rights that let them in: each
// question once for all requests that raise it.
type reviews struct {
	period     time.Duration
	authorizer authorizer.UnconditionalAuthorizer
	// mu guards the rest.
	mu      sync.Mutex
	running map[string]*review
}

// review is of the requests with one question.
type review struct {
	question question
	// cancels end the requests, guarded by reviews.mu.
	cancels map[*context.CancelCauseFunc]struct{}
	// stop ends the review, done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}
}

// join has a request reviewed until the function that it returns is called. The context
// ends, with errRightLost in its cause, when one of the rights is gone.
func (r *reviews) join(parent context.Context, x *exchange) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	questions, err := r.questions(x.rights)
	if err != nil {
		cancel(err)
		return ctx, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var joined []*review
	for _, q := range questions {
		one := r.running[q.key]
		if one == nil {
			one = r.start(parent, q)
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

func (r *reviews) start(parent context.Context, q question) *review {
	ctx, stop := context.WithCancel(context.WithoutCancel(parent))
	made := &review{question: q, cancels: map[*context.CancelCauseFunc]struct{}{}, stop: stop, done: make(chan struct{})}
	r.running[q.key] = made
	go func() {
		defer close(made.done)
		if lost := r.await(ctx, q); lost != nil {
			r.end(made, lost)
		}
	}()
	return made
}

// leave takes a request out; the last one waits until nobody asks for it any more.
func (r *reviews) leave(left *review, cancel *context.CancelCauseFunc) {
	key := left.question.key
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
	if r.running[lost.question.key] == lost {
		delete(r.running, lost.question.key)
	}
	for cancel := range lost.cancels {
		(*cancel)(why)
	}
}

// await returns why the requests must end, or nil when ctx has ended.
func (r *reviews) await(ctx context.Context, q question) error {
	for {
		wait := time.NewTimer(r.period + rand.N(r.period/4+1))
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-wait.C:
		}
		if lost := q.ask(ctx); lost != nil {
			return lost
		}
	}
}

// askWay returns which right on the hub, or which grant of the agent, is gone.
func (r *reviews) askWay(ctx context.Context, rights rights) error {
	var unknown []error
	for _, attributes := range rights.asked {
		decision, _, err := r.authorizer.Authorize(ctx, attributes)
		if err == nil && decision != authorizer.DecisionAllow {
			return fmt.Errorf("%w: on the hub, user %q may no longer %s %s of member %q", errRightLost,
				rights.caller.GetName(), attributes.GetVerb(), subject(attributes), rights.route.member)
		}
		unknown = append(unknown, err)
	}
	if rights.as.User != "" {
		refusal, err := rights.route.grants.within(ctx, rights.as, r.period)
		if err == nil && refusal != "" {
			return fmt.Errorf("%w: the agent of member %q no longer lets the gateway act as user %q: %s", errRightLost,
				rights.route.member, rights.as.User, refusal)
		}
		unknown = append(unknown, err)
	}
	notReviewed(ctx, rights, errors.Join(unknown...))
	return nil
}

// askMember returns that the member's own RBAC no longer allows the request.
func (r *reviews) askMember(ctx context.Context, rights rights) error {
	allowed, err := rights.route.actions.allowed(ctx, rights.as, rights.action, r.period)
	if err != nil {
		notReviewed(ctx, rights, err)
		return nil
	}
	if allowed {
		return nil
	}
	who := "the gateway's account"
	if rights.as.User != "" {
		who = fmt.Sprintf("user %q", rights.as.User)
	}
	return fmt.Errorf("%w: on member %q, %s may no longer %s", errRightLost, rights.route.member, who, rights.action)
}

func notReviewed(ctx context.Context, rights rights, err error) {
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("A request under way could not be reviewed", "member", rights.route.member, "reason", Printable(err.Error(), 512))
	}
}

func subject(a authorizer.Attributes) string {
	if a.GetSubresource() == "" {
		return a.GetResource()
	}
	return a.GetResource() + "/" + a.GetSubresource()
}
