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

// The hub's API server can get another URL or CA. The hub announces it while the former URL still
// works. The agent tests the new URL by renewing its token there and by Options.Prove, and only
// then switches. It remembers the former URL until the new one has worked again, and returns to
// it if the new one fails first.

// Move switches to another URL and CA of the hub if the hub accepts the agent's credential there. A
// nil CA means the system's trusted CAs. On an error nothing changes.
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
	if err == nil {
		err = renewed.unstored // A restarted agent would return to the former URL.
	}
	if err != nil {
		return fmt.Errorf("the agent stays with %s: %w", current.server, err)
	}
	if err := e.prove(ctx, renewed); err != nil {
		stays := *current
		stays.token, stays.expires = renewed.token, renewed.expires
		e.publish(ctx, &stays)
		return errors.Join(fmt.Errorf("the agent stays with %s: %w", current.server, err), e.store.putCredential(ctx, &stays))
	}
	log.FromContext(ctx).Info("The agent switched to the new URL of the hub", "from", current.server, "to", server)
	e.switchTo(ctx, renewed)
	return nil
}

func (e *Enroller) prove(ctx context.Context, c *credential) error {
	if e.options.Prove == nil {
		return nil
	}
	return e.options.Prove(ctx, e.hubConfig(c.hubAddress, c.token), c.member)
}

// Mover returns Move: a registered agent follows the hub's announcements.
func (e *Enroller) Mover() func(ctx context.Context, server string, ca []byte) error { return e.Move }

// Moved returns a channel that is closed when the URL of the hub changes. Users of HubConfig then
// need a new one.
func (e *Enroller) Moved() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.moved
}

// Origin is the URL of the hub at registration.
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

// switchTo uses a credential with another URL of the hub.
func (e *Enroller) switchTo(ctx context.Context, c *credential) {
	e.publish(ctx, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.moved)
	e.moved = make(chan struct{})
}

// renewCurrent renews the current credential. A URL where that succeeds is proven, and the former
// one is dropped. If it fails, renewCurrent tries the former URL.
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
	log.FromContext(ctx).Info("The new URL of the hub failed; the agent returned to the former one", "from", current.server, "to", back.server, "reason", err.Error())
	e.switchTo(ctx, renewed)
	return nil
}

// back returns the credential with the former URL; nil if there is none.
func (c *credential) back() *credential {
	if c.previous == nil {
		return nil
	}
	former := *c
	former.hubAddress, former.previous = *c.previous, nil
	return &former
}

// isUnproven reports whether the present URL is not proven yet.
func (e *Enroller) isUnproven() bool {
	current := e.current.Load()
	return current != nil && current.previous != nil
}
