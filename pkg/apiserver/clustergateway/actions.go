// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// actionsPerMember limits the cached decisions of a member.
	actionsPerMember = 4096
	// maxReview limits how much of a reply is read. Replies have about 500 bytes.
	maxReview = 64 << 10

	selfReviewPath = "/apis/" + authorizationv1.GroupName + "/v1/selfsubjectaccessreviews"
)

// action is what a request does on its member, in the terms of the member's authorizer.
type action authorizationv1.SelfSubjectAccessReviewSpec

// actionOf returns the action for which the member's API server will authorize the request.
func actionOf(request *Request) action {
	info := request.Info
	if !info.IsResourceRequest {
		return action{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: info.Path, Verb: info.Verb}}
	}
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: info.Namespace, Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name,
	}
	if info.FieldSelector != "" {
		attributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: info.FieldSelector}
	}
	if info.LabelSelector != "" {
		attributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: info.LabelSelector}
	}
	return action{ResourceAttributes: attributes}
}

// onEverything is the same verb on all resources in all namespaces. A caller that may do that may
// do it to each resource, so one decision covers all watches of a controller. ok is false if there is
// no such action.
func (a action) onEverything() (all action, ok bool) {
	if a.ResourceAttributes == nil {
		return a, false
	}
	return action{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.ResourceAttributes.Verb, Group: "*", Version: "*", Resource: "*"}}, true
}

func (a action) key() (string, error) {
	key, err := json.Marshal(a)
	return string(key), err
}

// String formats the action for messages: "watch pods in namespace shop".
func (a action) String() string {
	if a.NonResourceAttributes != nil {
		return a.NonResourceAttributes.Verb + " " + a.NonResourceAttributes.Path
	}
	of := a.ResourceAttributes
	text := of.Verb + " " + of.Resource
	if of.Group != "" {
		text += "." + of.Group
	}
	if of.Subresource != "" {
		text += "/" + of.Subresource
	}
	if of.Namespace != "" {
		text += " in namespace " + of.Namespace
	}
	return text
}

// actions asks the API server of one member, as a caller, whether the caller is allowed an action
// there. Kubernetes lets every authenticated user review itself (ClusterRole system:basic-user). Where
// an administrator removed that permission, there is no decision.
type actions struct {
	serverName string
	// send sends a request to the member with the gateway's token.
	send func(out *http.Request, upgrade bool) (*http.Response, error)
	// results caches, by identity and action, whether the action is allowed.
	results *resultCache[bool]
}

func newActions(serverName string, send func(*http.Request, bool) (*http.Response, error)) *actions {
	return &actions{serverName: serverName, send: send, results: newResultCache[bool](actionsPerMember)}
}

// allowed is true if the member allows the identity the action. An empty identity is the gateway's
// own account. No decision is older than age. An error means that the member did not decide.
func (a *actions) allowed(ctx context.Context, as Impersonation, what action, age time.Duration) (bool, error) {
	if all, ok := what.onEverything(); ok {
		if allowed, err := a.within(ctx, as, all, age); err != nil || allowed {
			return allowed, err
		}
	}
	return a.within(ctx, as, what, age)
}

func (a *actions) within(ctx context.Context, as Impersonation, what action, age time.Duration) (bool, error) {
	key, err := what.key()
	if err != nil {
		return false, fmt.Errorf("encoding the action: %w", err)
	}
	keep := func(bool) time.Duration { return age }
	return a.results.within(ctx, as.key()+key, age, keep, func(ctx context.Context) (bool, error) {
		allowed, err := a.review(ctx, as, what)
		if err != nil {
			return false, fmt.Errorf("reviewing access at the member's API server: %w", err)
		}
		return allowed, nil
	})
}

func (a *actions) review(ctx context.Context, as Impersonation, what action) (bool, error) {
	body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec(what),
	})
	if err != nil {
		return false, fmt.Errorf("encoding the review: %w", err)
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.serverName+selfReviewPath, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("creating the request: %w", err)
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set("Accept", "application/json")
	if as.User != "" {
		setIdentity(out.Header, as)
	}
	res, err := a.send(out, false)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxReview))
	if err != nil {
		return false, fmt.Errorf("reading the reply: %w", err)
	}
	if res.StatusCode != http.StatusCreated {
		return false, fmt.Errorf("it replied with %d", res.StatusCode)
	}
	var reviewed authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(content, &reviewed); err != nil {
		return false, fmt.Errorf("reading the reply: %w", err)
	}
	// RBAC reports a missing role in the reason. An EvaluationError without a decision means that
	// an authorizer could not be reached.
	if reviewed.Status.EvaluationError != "" && !reviewed.Status.Allowed && !reviewed.Status.Denied {
		return false, fmt.Errorf("it could not decide: %s", untrusted.Excerpt(reviewed.Status.EvaluationError, maxRefusal))
	}
	return reviewed.Status.Allowed, nil
}
