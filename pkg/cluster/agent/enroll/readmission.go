// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// A rebuilt hub does not know the agent's credential. If its CA is the former one, the agent requests,
// without a credential, a token that is encrypted with its key. An administrator of the hub
// requests that token.

// returnToHub returns the credential that the hub created for this agent's key; nil if there is none.
// The member name must be unchanged.
func (e *Enroller) returnToHub(ctx context.Context, former *credential) (*credential, error) {
	id, err := e.store.identity(ctx)
	if err != nil {
		return nil, err
	}
	hub, err := registrationClient(e.hubConfig(former.hubAddress, ""))
	if err != nil {
		return nil, refuse(HubNotReady, err, "hub %s cannot be reached: %v", former.server, err)
	}
	left := &registrationv1alpha1.ClusterRegistration{}
	err = hub.Get(ctx, client.ObjectKey{
		Namespace: registrationv1alpha1.ReturningNamespace, Name: registrationv1alpha1.RequestName(id.key.PublicKey())}, left)
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, nil // usually the hub was not rebuilt
	case err != nil:
		return nil, explainHub(err, former.server)
	case !left.Status.Granted:
		return nil, nil
	}
	opened, err := id.key.Open(left.Status.SealedToken, left.UID, left.Spec.ClientID)
	if err != nil || opened.Member != former.member {
		return nil, refuse(RegistrationRefused, err,
			"what hub %s has left for this agent's key in ClusterRegistration %q is not for member %q: delete that object on the hub",
			former.server, left.Name, former.member)
	}
	log.FromContext(ctx).Info("The rebuilt hub readmitted this agent by its key", "member", former.member, "hub", former.server)
	back := *former
	back.token, back.expires = opened.Token, opened.Expires
	return &back, e.store.putCredential(ctx, &back)
}
