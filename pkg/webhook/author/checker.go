// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// ExecuteVerb is the permission, on a ManifestWork and for the account's full name, to have it
// applied as that account.
const ExecuteVerb = "execute-as"

const (
	// atOnce limits concurrent requests to the hub for one review: the API server waits five
	// seconds for an answer.
	atOnce = 16
	// maxReviews limits the reviews of one request. A placement takes at most two for each kind
	// that a namespace may hold, besides those of its selectors.
	maxReviews = 2000
)

// A Checker checks and caches one user's permissions during one request. It is for one goroutine.
type Checker struct {
	user    authenticationv1.UserInfo
	reviews client.Writer
	known   map[Access]bool
}

// NewChecker returns a Checker that creates SubjectAccessReviews for a user.
func NewChecker(user authenticationv1.UserInfo, reviews client.Writer) *Checker {
	return &Checker{user: user, reviews: reviews, known: map[Access]bool{}}
}

// User is the name of the checked user.
func (a *Checker) User() string { return a.user.Username }

// May returns, for each question, whether the user has one of its accesses. It checks the next one
// only if the previous one is not allowed. The error means that this could not be determined.
func (a *Checker) May(ctx context.Context, questions ...Question) ([]bool, error) {
	may := make([]bool, len(questions))
	for next := 0; ; next++ {
		var open []Access
		for i, question := range questions {
			if !may[i] && next < len(question.Any) {
				open = append(open, question.Any[next])
			}
		}
		if len(open) == 0 {
			return may, nil
		}
		if err := a.learn(ctx, open); err != nil {
			return nil, err
		}
		for i, question := range questions {
			may[i] = may[i] || next < len(question.Any) && a.known[question.Any[next]]
		}
	}
}

// learn checks the accesses that are not cached yet.
func (a *Checker) learn(ctx context.Context, accesses []Access) error {
	var missing []Access
	seen := map[Access]bool{}
	for _, access := range accesses {
		if _, done := a.known[access]; !done && !seen[access] {
			seen[access], missing = true, append(missing, access)
		}
	}
	if len(a.known)+len(missing) > maxReviews {
		return fmt.Errorf("checking the rights of user %q needs more than %d SubjectAccessReviews: write several smaller objects", a.user.Username, maxReviews)
	}
	allowed, err := inParallel(ctx, missing, a.allows)
	if err != nil {
		return err
	}
	for i, access := range missing {
		a.known[access] = allowed[i]
	}
	return nil
}

// byWildcard ends a verb that is granted only by "*".
const byWildcard = "-by-wildcard"

// isOwnVerb is true for fleetgate's own verbs, which let a user cause more than a verb of Kubernetes
// would.
func isOwnVerb(verb string) bool {
	return verb == placementv1beta1.PlaceVerb || verb == placementv1beta1.RenderVerb || verb == ExecuteVerb
}

// allows does not accept "*" in a namespace as a grant of fleetgate's own verbs. The administrator of
// one namespace should control the objects in it; the author of that role did not have such verbs
// in mind. A user with "*" in all namespaces is an administrator of the hub.
func (a *Checker) allows(ctx context.Context, access Access) (bool, error) {
	allowed, err := a.review(ctx, access)
	if err != nil || !allowed || access.Namespace == "" || !isOwnVerb(access.Verb) {
		return allowed, err
	}
	unnamed := access
	unnamed.Verb += byWildcard
	wildcard, err := a.review(ctx, unnamed)
	if err != nil || !wildcard {
		return !wildcard, err
	}
	access.Namespace = ""
	return a.review(ctx, access)
}

func (a *Checker) review(ctx context.Context, access Access) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(a.user.Extra))
	for key, values := range a.user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.user.Username, Groups: a.user.Groups, UID: a.user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: access.Verb, Group: access.Group, Resource: access.Resource, Subresource: access.Subresource, Namespace: access.Namespace, Name: access.Name,
		},
	}}
	if err := a.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the hub whether %q may %s: %w", a.user.Username, access, err)
	}
	return review.Status.Allowed, nil
}

// inParallel returns the answer for each of the things, or the first error.
func inParallel[T any](ctx context.Context, things []T, ask func(context.Context, T) (bool, error)) ([]bool, error) {
	answers := make([]bool, len(things))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, thing := range things {
		group.Go(func() (err error) {
			answers[i], err = ask(ctx, thing)
			return err
		})
	}
	return answers, group.Wait()
}
