// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// The executor of a ManifestWork is an account of the cluster that needs the rights for what the
// work does. The agent checks these rights before each reconcile, so that nothing is written for an
// account that lost them; the agent itself writes the objects. An account that can write roles
// could escalate its rights. Whether it can write such a role is tested by a dry run as the
// account.
//
// With Options.Impersonate the agent writes as the account, and the cluster's API server authorizes
// each request. Only the right to delete objects that are removed with the work is checked in
// advance, because the agent removes them.

// notAllowed is the reason of refusals because the executor lacks a right.
const notAllowed = "NotAllowed"

const (
	// retryInterval is the delay before such a refusal is retried.
	retryInterval = time.Minute
	// reviewTTL is how long a review is cached: a large work and its immediate reconciles send
	// one.
	reviewTTL = 5 * time.Second
	// allowedTTL is how long a positive review is cached while rights are watched.
	allowedTTL = time.Minute
	// maxReviews limits the cached reviews.
	maxReviews = 10_000
)

// executors reviews what accounts can do on the cluster.
type executors struct {
	member kubernetes.Interface
	// as returns a client that impersonates an account.
	as    func(engine.Account) (dynamic.Interface, error)
	clock clock.PassiveClock
	// impersonate is set if objects are written as the account.
	impersonate bool
	// rights watches roles and bindings; nil if there is no watch.
	rights *rightsWatch

	mu      sync.Mutex // guards answers
	reviews map[reviewKey]cachedReview
}

type reviewKey struct {
	account engine.Account
	object  authorizationv1.ResourceAttributes
}

type cachedReview struct {
	allowed bool
	at      time.Time
}

func newExecutors(o Options) (*executors, error) {
	clientset, err := kubernetes.NewForConfigAndClient(o.MemberAPI.Config, o.MemberAPI.Client)
	if err != nil {
		return nil, fmt.Errorf("making the cluster's client: %w", err)
	}
	rights, err := newRightsWatch(o.MemberAPI)
	if err != nil {
		return nil, err
	}
	e := &executors{member: clientset, as: o.MemberAPI.As, clock: o.Clock, impersonate: o.Impersonate, rights: rights, reviews: map[reviewKey]cachedReview{}}
	rights.forget = e.forget
	return e, nil
}

// accountOf returns the account of an executor; false if it has none or another subject type.
func accountOf(executor *workv1.ManifestWorkExecutor) (engine.Account, bool) {
	if executor == nil || executor.Subject.Type != workv1.ExecutorSubjectTypeServiceAccount || executor.Subject.ServiceAccount == nil {
		return engine.Account{}, false
	}
	of := executor.Subject.ServiceAccount
	return engine.Account{Namespace: of.Namespace, Name: of.Name}, true
}

// writer returns the client that writes objects, and the start of messages about missing rights.
// Both are empty if the agent writes.
func (e *executors) writer(executor *workv1.ManifestWorkExecutor) (dynamic.Interface, string, error) {
	account, is := accountOf(executor)
	if !e.impersonate || !is {
		return nil, "", nil
	}
	client, err := e.as(account)
	return client, account.Cannot(), err
}

// forget discards all cached reviews.
func (e *executors) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.reviews)
}

// refuse returns why a manifest is not applied for an executor; nil if it can be, or if there is no
// executor. owned is set if the object is removed with the work. The error means that the cluster
// could not be asked.
func (e *executors) refuse(ctx context.Context, executor *workv1.ManifestWorkExecutor, raw []byte, ref manifest.Ref, owned bool) (*refusal.Refusal, error) {
	if executor == nil {
		return nil, nil
	}
	account, is := accountOf(executor)
	switch {
	case executor.Subject.Type != workv1.ExecutorSubjectTypeServiceAccount:
		return &refusal.Refusal{Reason: notAllowed, Message: fmt.Sprintf("only support %s type for the executor", workv1.ExecutorSubjectTypeServiceAccount)}, nil
	case !is:
		return &refusal.Refusal{Reason: notAllowed, Message: "the executor service account is nil"}, nil
	}
	e.rights.need()
	for _, verb := range e.verbs(owned) {
		allowed, err := e.may(ctx, account, authorizationv1.ResourceAttributes{
			Verb: verb, Group: ref.Group, Version: ref.Version, Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return nil, fmt.Errorf("asking the cluster what the executor may do: %w", err)
		}
		if !allowed {
			return denied(ref, ""), nil
		}
	}
	if e.impersonate {
		return nil, nil
	}
	return e.refuseEscalation(ctx, account, raw, ref)
}

// verbs returns the verbs that an executor needs before anything is written. owned is set if the
// object is removed with the work.
func (e *executors) verbs(owned bool) []string {
	var verbs []string
	if !e.impersonate {
		verbs = []string{"create", "update", "patch", "get"}
	}
	if owned {
		verbs = append(verbs, "delete")
	}
	return verbs
}

func denied(ref manifest.Ref, why string) *refusal.Refusal {
	return &refusal.Refusal{Reason: notAllowed, Message: fmt.Sprintf("not allowed to apply the resource %s %s, %s %s%s, will try again in %s",
		ref.Group, ref.Resource, ref.Namespace, ref.Name, why, retryInterval)}
}

// may sends a review or returns the cached one.
func (e *executors) may(ctx context.Context, account engine.Account, object authorizationv1.ResourceAttributes) (bool, error) {
	key, now := reviewKey{account, object}, e.clock.Now()
	e.mu.Lock()
	known, is := e.reviews[key]
	e.mu.Unlock()
	if is && now.Sub(known.at) < e.ttl(known) {
		return known.allowed, nil
	}
	review, err := e.member.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: account.User(), Groups: account.Groups(), ResourceAttributes: &object},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.reviews) >= maxReviews {
		clear(e.reviews)
	}
	e.reviews[key] = cachedReview{review.Status.Allowed, now}
	return review.Status.Allowed, nil
}

// ttl is how long a review is cached. A negative one is never cached for long: the missing right
// may be granted at any moment.
func (e *executors) ttl(a cachedReview) time.Duration {
	if a.allowed && e.rights.sees() {
		return allowedTTL
	}
	return reviewTTL
}

// refuseEscalation refuses roles and bindings that grant rights which the account itself lacks.
func (e *executors) refuseEscalation(ctx context.Context, account engine.Account, raw []byte, ref manifest.Ref) (*refusal.Refusal, error) {
	if !givesRights(ref.GroupVersionResource().GroupResource()) && !reserved.ChecksWriter(ref.GroupKind()) {
		return nil, nil
	}
	object, err := manifest.Decode(raw)
	if err != nil {
		//lint:ignore nilerr The plan has refused the manifest.
		return nil, nil
	}
	client, err := e.as(account)
	if err != nil {
		return nil, fmt.Errorf("making a client of the executor: %w", err)
	}
	_, err = client.Resource(ref.GroupVersionResource()).Namespace(ref.Namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // the API server checks rights before existence
		return nil, nil
	case apierrors.IsForbidden(err):
		return denied(ref, ", error: permission escalation"), nil
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// If the bound role does not exist, the rights of the binding are unknown.
		return denied(ref, ", error: "+err.Error()), nil
	}
	return nil, fmt.Errorf("asking the cluster whether the executor may give rights: %w", err)
}

func givesRights(resource schema.GroupResource) bool {
	if resource.Group != "rbac.authorization.k8s.io" {
		return false
	}
	switch resource.Resource {
	case "roles", "rolebindings", "clusterroles", "clusterrolebindings":
		return true
	}
	return false
}
