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

// believedFor is how long the hub's answers about a client are: whose token it is, and
// whether a dial is allowed.
const believedFor = 10 * time.Second

// Identity is whom the hub knows by a token.
type Identity struct {
	// Name and Groups are those of a user of the hub.
	Name   string
	Groups []string
	// Expires is when the token does; zero when it does not say.
	Expires time.Time
}

// Identify returns whose token it is; not ok if it is nobody's. An error means that the hub
// did not say.
type Identify func(ctx context.Context, token string) (id Identity, ok bool, err error)

// Tokens asks the hub whose tokens are that were made for one audience: for any other they
// are nobody's. It is not k8s.io/apiserver's authenticator of webhooks, which makes the same
// error of a token that is refused and of a hub that is away.
func Tokens(hub authenticationclient.TokenReviewsGetter, audience string) Identify {
	return func(ctx context.Context, token string) (Identity, bool, error) {
		review, err := hub.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return Identity{}, false, fmt.Errorf("asking the hub whose token it is: %w", err)
		}
		status := review.Status
		// A hub that knows no audiences leaves them out: its tokens are for everybody.
		if !status.Authenticated || !slices.Contains(status.Audiences, audience) {
			return Identity{}, false, nil
		}
		return Identity{Name: status.User.Username, Groups: status.User.Groups, Expires: expiryOf(token)}, true, nil
	}
}

// Remembering asks once about a token that is shown again and again within ten seconds:
// clients show theirs with every dial.
func Remembering(identify Identify) Identify {
	answers := tokencache.New(authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		id, ok, err := identify(ctx, token)
		return &authenticator.Response{User: &user.DefaultInfo{Name: id.Name, Groups: id.Groups}}, ok, err
	}), false, believedFor, believedFor)
	return func(ctx context.Context, token string) (Identity, bool, error) {
		answer, ok, err := answers.AuthenticateToken(ctx, token)
		if err != nil || !ok {
			return Identity{}, false, err
		}
		return Identity{Name: answer.User.GetName(), Groups: answer.User.GetGroups(), Expires: expiryOf(token)}, true, nil
	}
}

// expiryOf reads when a token expires, which a review does not say. The hub has
// verified the token; one of another form has no expiry that anybody could read.
func expiryOf(token string) time.Time {
	var known struct {
		Expires int64 `json:"exp"`
	}
	if untrusted.Claims(token, &known) != nil || known.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(known.Expires, 0)
}
