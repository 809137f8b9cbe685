// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The hub's API server can get another URL, or a certificate of another CA. The hub says so
// while the former way still holds. The agent tries the new one by renewing its token there,
// and by what else it is asked to prove, and only then leaves the former, which it remembers: if
// the new one fails before it has served another time, it goes back.

// Move leads to the hub by another URL and CA from now on, if the hub accepts the agent's
// credential there; a CA of nil means one that everybody trusts. Otherwise the error says why
// not, and all stays as it is.
func (e *Enroller) Move(ctx context.Context, server string, ca []byte) error {
	if parsed, err := url.Parse(server); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("the hub's next URL %q is not one that begins with https://", server)
	}
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return errors.New("the hub's next CA is not certificates in PEM form")
	}
	if _, err := e.await(ctx); err != nil {
		return err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	current := e.current.Load()
	to := hubAddress{server: server, ca: ca, proxy: current.proxy}
	if current.hubAddress.equal(to) {
		return nil
	}
	next := *current
	next.hubAddress, next.previous = to, &current.hubAddress
	if next.origin == nil {
		next.origin = &current.hubAddress
	}
	renewed, err := e.renew(ctx, &next)
	if err != nil {
		return fmt.Errorf("the agent stays with %s: %w", current.server, err)
	}
	if err := e.prove(ctx, renewed); err != nil {
		stays := *current
		stays.token, stays.expires = renewed.token, renewed.expires
		e.publish(ctx, &stays)
		return errors.Join(fmt.Errorf("the agent stays with %s: %w", current.server, err), e.store.putCredential(ctx, &stays))
	}
	log.FromContext(ctx).Info("The hub has moved, and the agent with it", "from", current.server, "to", server)
	e.goOver(ctx, renewed)
	return nil
}

func (e *Enroller) prove(ctx context.Context, c *credential) error {
	if e.options.Prove == nil {
		return nil
	}
	return e.options.Prove(ctx, e.hubConfig(c.hubAddress, c.token), c.member)
}

// Mover is Move: an agent that registered itself goes where the hub says.
func (e *Enroller) Mover() func(ctx context.Context, server string, ca []byte) error { return e.Move }

// Moved is closed when the way to the hub becomes another one than it is now: whoever uses
// the result of HubConfig asks for another.
func (e *Enroller) Moved() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.moved
}

// Origin is the URL by which the agent knew the hub first, before it moved.
func (e *Enroller) Origin() string {
	current := e.current.Load()
	if current == nil {
		return ""
	}
	if current.origin != nil {
		return current.origin.server
	}
	return current.server
}

// goOver uses a credential with another way to the hub.
func (e *Enroller) goOver(ctx context.Context, c *credential) {
	e.publish(ctx, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.moved)
	e.moved = make(chan struct{})
}

// renewCurrent renews the credential in use. The way by which that works has proved itself:
// no other is remembered. One that the hub cannot be reached by is left for the former.
func (e *Enroller) renewCurrent(ctx context.Context) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	current := e.current.Load()
	next := *current
	next.previous = nil
	renewed, err := e.renew(ctx, &next)
	if err == nil {
		e.publish(ctx, renewed)
		return nil
	}
	back := current.back()
	if back == nil {
		return err
	}
	renewed, failure := e.renew(ctx, back)
	if failure != nil {
		return err
	}
	log.FromContext(ctx).Info("The hub is not where it said that it would be; the agent goes back", "from", current.server, "to", back.server, "why", err.Error())
	e.goOver(ctx, renewed)
	return nil
}

// back is the credential with the way that was left last; nil if there is none.
func (c *credential) back() *credential {
	if c.previous == nil {
		return nil
	}
	former := *c
	former.hubAddress, former.previous = *c.previous, nil
	return &former
}

// mayGoBack reports whether the way to the hub has yet to prove itself.
func (e *Enroller) mayGoBack() bool {
	current := e.current.Load()
	return current != nil && current.previous != nil
}
