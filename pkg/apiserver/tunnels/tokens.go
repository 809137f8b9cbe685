// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// believedFor is how long the hub's token reviews and dial decisions are cached.
const believedFor = 10 * time.Second

// Identity is the user to whom a token belongs.
type Identity struct {
	Name   string
	Groups []string
	// Expires is the expiry of the token, or zero if it has none.
	Expires time.Time
}

// Identify returns the owner of a token. It is not ok if the hub does not accept the token. An
// error means that the hub did not decide.
type Identify func(ctx context.Context, token string) (id Identity, ok bool, err error)

// Tokens reviews tokens on the hub for one audience and rejects tokens of any other. It replaces
// the webhook authenticator of k8s.io/apiserver, which returns the same error for a rejected token
// and an unreachable hub.
func Tokens(hub authenticationclient.TokenReviewsGetter, audience string) Identify {
	return func(ctx context.Context, token string) (Identity, bool, error) {
		review, err := hub.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return Identity{}, false, fmt.Errorf("asking the hub whose token it is: %w", err)
		}
		status := review.Status
		// A hub that does not support audiences returns none. Its tokens are valid for every
		// audience.
		if !status.Authenticated || !slices.Contains(status.Audiences, audience) {
			return Identity{}, false, nil
		}
		return Identity{Name: status.User.Username, Groups: status.User.Groups, Expires: expiryOf(token)}, true, nil
	}
}

// Remembering caches reviews for ten seconds, because clients present their token with every dial.
func Remembering(identify Identify) Identify {
	cached := tokencache.New(authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		id, ok, err := identify(ctx, token)
		return &authenticator.Response{User: &user.DefaultInfo{Name: id.Name, Groups: id.Groups}}, ok, err
	}), false, believedFor, believedFor)
	return func(ctx context.Context, token string) (Identity, bool, error) {
		response, ok, err := cached.AuthenticateToken(ctx, token)
		if err != nil || !ok {
			return Identity{}, false, err
		}
		return Identity{Name: response.User.GetName(), Groups: response.User.GetGroups(), Expires: expiryOf(token)}, true, nil
	}
}

// expiryOf reads the expiry from the token, because a review does not have it. The hub has already
// verified the token. A token of another format has no readable expiry.
func expiryOf(token string) time.Time {
	var known struct {
		Expires int64 `json:"exp"`
	}
	if untrusted.Claims(token, &known) != nil || known.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(known.Expires, 0)
}
