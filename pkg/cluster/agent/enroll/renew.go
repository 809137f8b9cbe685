// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// renew requests a new token from the hub and stores it. A token that the member does not store, for example because
// an admission webhook for Secrets is down, works too: see Unstored.
func (e *Enroller) renew(ctx context.Context, c *credential) (*credential, error) {
	hub, err := kubernetes.NewForConfig(e.hubConfig(c.hubAddress, c.token))
	if err != nil {
		return nil, fmt.Errorf("building a client for the hub: %w", err)
	}
	lifetime, err := e.lifetime(ctx, hub, c.member)
	if err != nil {
		return nil, explainRenewal(err, c)
	}
	request := renewalRequest(clusterv1beta1.AgentCredentialSecret, lifetime)
	renewedToken, err := hub.CoreV1().ServiceAccounts(clusterv1beta1.MemberNamespace(c.member)).
		CreateToken(ctx, clusterv1beta1.AgentAccount, request, metav1.CreateOptions{})
	if err != nil {
		return nil, explainRenewal(err, c)
	}
	renewed := *c
	renewed.token, renewed.expires = renewedToken.Status.Token, renewedToken.Status.ExpirationTimestamp.Time
	renewed.unstored = e.store.putCredential(ctx, &renewed)
	return &renewed, nil
}

// lifetime returns the lifetime to request: the hub's maximum, or Options.TokenLifetime. The hub
// rejects requests above its maximum.
func (e *Enroller) lifetime(ctx context.Context, hub kubernetes.Interface, member string) (time.Duration, error) {
	secret, err := hub.CoreV1().Secrets(clusterv1beta1.MemberNamespace(member)).
		Get(ctx, clusterv1beta1.AgentCredentialSecret, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	duration, err := time.ParseDuration(secret.Annotations[clusterv1beta1.AnnotationTokenLifetime])
	if err != nil || duration <= 0 {
		//lint:ignore nilerr A hub of an earlier version sets none.
		return e.options.TokenLifetime, nil
	}
	return duration, nil
}

func explainRenewal(err error, c *credential) *refusal.Refusal {
	switch {
	case apierrors.IsUnauthorized(err):
		return refuse(CredentialRefused, err,
			"hub %s no longer accepts the credential of member %q: it was revoked, or the member was deleted there", c.server, c.member)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return refuse(HubNotReady, err,
			"hub %s does not let member %q renew its token (%v): check that MemberCluster %q is ready to join there", c.server, c.member, err, c.member)
	default:
		return explainHub(err, c.server)
	}
}

// keep renews until ctx is done or the hub rejects the credential. A failed renewal keeps the token
// until it expires. A token that was not stored is renewed soon.
func (e *Enroller) keep(ctx context.Context) {
	backoff := newBackoff()
	next := e.nextRenewal(&backoff)
	for e.awaitRenewal(ctx, next) {
		err := e.renewCurrent(ctx)
		if err == nil {
			next = e.nextRenewal(&backoff)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		e.report(ctx, err)
		now := e.options.Clock.Now()
		if refusal.ReasonOf(err) == CredentialRefused || !now.Before(e.current.Load().expires) {
			return
		}
		next = now.Add(backoff.Step())
	}
}

// awaitRenewal returns true when a renewal is due, or, after a minimum interval, when the hub
// rejected the current token. It returns false when ctx is done.
func (e *Enroller) awaitRenewal(ctx context.Context, next time.Time) bool {
	soonest := e.options.Clock.After(recheckInterval)
	due := e.options.Clock.After(next.Sub(e.options.Clock.Now()))
	select {
	case <-ctx.Done():
		return false
	case <-due:
		return true
	case <-soonest:
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-e.doubted:
	}
	return true
}

// recheckInterval is the minimum interval between renewals after rejected requests.
const recheckInterval = time.Second

func (e *Enroller) nextRenewal(backoff *wait.Backoff) time.Time {
	now := e.options.Clock.Now()
	if e.Unstored() != nil {
		return now.Add(backoff.Step())
	}
	*backoff = newBackoff()
	return now.Add(renewIn(e.current.Load().expires.Sub(now), e.options.RenewInterval))
}

// renewIn is the delay before a token with this remaining lifetime is renewed: the interval or two
// thirds of the lifetime, whichever is shorter, less some jitter.
func renewIn(left, interval time.Duration) time.Duration {
	const jitter = 0.1
	next := max(min(interval, left*2/3), time.Second)
	return next - time.Duration(float64(next)*jitter*rand.Float64())
}

// renewalRequest requests a token bound to the same Secret as the present one: deleting the Secret
// revokes all of them.
func renewalRequest(secret string, lifetime time.Duration) *authenticationv1.TokenRequest {
	seconds := int64(lifetime.Seconds())
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret},
	}}
}
