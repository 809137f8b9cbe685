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
const DefaultReviewPeriod = 20 * time.Second

// errRightLost is the cause with which requests end whose caller may no longer make them.
var errRightLost = errors.New("the right to this request was taken away")

// rights are all that let a request in.
type rights struct {
	// caller and asked are whom and what the hub was asked about.
	caller user.Info
	asked  []authorizer.Attributes
	// link and as are which member's agent was asked, and about whom; as is empty if
	// nobody was.
	link *link
	as   Impersonation
}

// key is the same for requests that the same rights let in.
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
		r.caller.GetName(), r.caller.GetUID(), r.caller.GetGroups(), r.caller.GetExtra(), questions, r.link.member, r.as.key(),
	})
	return string(key), err
}

// reviews ask again, as long as requests last, for the rights that let them in: once for
// all requests that the same rights let in.
type reviews struct {
	period     time.Duration
	authorizer authorizer.UnconditionalAuthorizer
	// mu guards the rest.
	mu      sync.Mutex
	running map[string]*review
}

// review is of the requests with one key.
type review struct {
	rights rights
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
	key, err := x.rights.key()
	if err != nil {
		cancel(fmt.Errorf("describing who asks for what: %w", err))
		return ctx, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	joined := r.running[key]
	if joined == nil {
		joined = r.start(parent, key, x.rights)
	}
	joined.cancels[&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		r.leave(key, joined, &cancel)
	}
}

func (r *reviews) start(parent context.Context, key string, rights rights) *review {
	ctx, stop := context.WithCancel(context.WithoutCancel(parent))
	made := &review{rights: rights, cancels: map[*context.CancelCauseFunc]struct{}{}, stop: stop, done: make(chan struct{})}
	r.running[key] = made
	go func() {
		defer close(made.done)
		if lost := r.await(ctx, rights); lost != nil {
			r.end(key, made, lost)
		}
	}()
	return made
}

// leave takes a request out; the last one waits until nobody asks for it any more.
func (r *reviews) leave(key string, left *review, cancel *context.CancelCauseFunc) {
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
func (r *reviews) end(key string, lost *review, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[key] == lost {
		delete(r.running, key)
	}
	for cancel := range lost.cancels {
		(*cancel)(why)
	}
}

// await returns why the requests must end, or nil when ctx has ended.
func (r *reviews) await(ctx context.Context, rights rights) error {
	for {
		wait := time.NewTimer(r.period + rand.N(r.period/4+1))
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-wait.C:
		}
		if lost := r.ask(ctx, rights); lost != nil {
			return lost
		}
	}
}

// ask returns which right is gone. What could not be found out is no reason: neither a
// hub that restarts nor an agent that is slow ends everybody's watches.
func (r *reviews) ask(ctx context.Context, rights rights) error {
	var unknown []error
	for _, attributes := range rights.asked {
		decision, _, err := r.authorizer.Authorize(ctx, attributes)
		if err == nil && decision != authorizer.DecisionAllow {
			return fmt.Errorf("%w: on the hub, user %q may no longer %s %s of member %q", errRightLost,
				rights.caller.GetName(), attributes.GetVerb(), subject(attributes), rights.link.member)
		}
		unknown = append(unknown, err)
	}
	if rights.as.User != "" {
		refusal, err := rights.link.grants.within(ctx, rights.as, r.period)
		if err == nil && refusal != "" {
			return fmt.Errorf("%w: the agent of member %q no longer lets the gateway act as user %q: %s", errRightLost,
				rights.link.member, rights.as.User, refusal)
		}
		unknown = append(unknown, err)
	}
	if err := errors.Join(unknown...); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("A request under way could not be reviewed", "member", rights.link.member, "reason", printable(err.Error(), 512))
	}
	return nil
}

func subject(a authorizer.Attributes) string {
	if a.GetSubresource() == "" {
		return a.GetResource()
	}
	return a.GetResource() + "/" + a.GetSubresource()
}
