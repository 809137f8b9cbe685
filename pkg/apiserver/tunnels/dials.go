// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/options"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
)

// Dials asks the hub who may dial through a member's tunnel: the right is create on tunnels/dial
// with the member's name. Decisions are cached for ten seconds.
type Dials struct{ reviews authorizer.Authorizer }

// NewDials returns Dials with an empty cache.
func NewDials(hub authorizationclient.AuthorizationV1Interface) (*Dials, error) {
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: hub,
		AllowCacheTTL:             believedFor,
		DenyCacheTTL:              believedFor,
		WebhookRetryBackoff:       options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("delegating authorization: %w", err)
	}
	return &Dials{reviews: reviews}, nil
}

// Allowed is true if a user with these groups may dial through the member's tunnel. An error means
// that the hub did not decide.
func (d *Dials) Allowed(ctx context.Context, name string, groups []string, member string) (bool, error) {
	decision, _, err := d.reviews.Authorize(ctx, dialOf(name, groups, member))
	return decision == authorizer.DecisionAllow, err
}

// dialOf describes the required permission.
func dialOf(name string, groups []string, member string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: name, Groups: append(slices.Clone(groups), user.AllAuthenticated)},
		Verb:            "create",
		APIGroup:        tunnelv1alpha1.GroupVersion.Group,
		APIVersion:      tunnelv1alpha1.GroupVersion.Version,
		Resource:        tunnelv1alpha1.Resource,
		Subresource:     "dial",
		Name:            member,
		ResourceRequest: true,
	}
}
