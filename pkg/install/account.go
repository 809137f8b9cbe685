// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account is the gateway's identity at the hub's API server. Policies name it.
type Account struct {
	// Name is the user name.
	Name string
	// Administrator is true if it has all rights. Then it is not a dedicated account, and policies for
	// it would limit a person.
	Administrator bool
}

// WhoAmI reads a client's account from the hub.
func WhoAmI(ctx context.Context, hub client.Writer) (Account, error) {
	self := &authenticationv1.SelfSubjectReview{}
	if err := hub.Create(ctx, self); err != nil {
		return Account{}, fmt.Errorf("asking the hub who the gateway is: %w", err)
	}
	everything := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	if err := hub.Create(ctx, everything); err != nil {
		return Account{}, fmt.Errorf("asking the hub what the gateway may do: %w", err)
	}
	return Account{Name: self.Status.UserInfo.Username, Administrator: everything.Status.Allowed}, nil
}
