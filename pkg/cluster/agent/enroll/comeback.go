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

// A hub that is gone and was built anew knows nothing of the agent's credential. If its CA is
// the former one, the agent looks there, without any credential, for a token that the hub has
// sealed to the agent's key: an administrator of the hub has asked for it.

// comeBack is the credential that the hub has left for this agent's key; nil if there is none.
// The agent remains the member that it was.
func (e *Enroller) comeBack(ctx context.Context, former *credential) (*credential, error) {
	id, err := e.store.identity(ctx)
	if err != nil {
		return nil, err
	}
	hub, err := registrationClient(e.hubConfig(former.hubAddress, ""))
	if err != nil {
		return nil, refuse(HubNotReady, err, "hub %s cannot be asked: %v", former.server, err)
	}
	left := &registrationv1alpha1.ClusterRegistration{}
	err = hub.Get(ctx, client.ObjectKey{
		Namespace: registrationv1alpha1.ReturningNamespace, Name: registrationv1alpha1.RequestName(id.key.PublicKey())}, left)
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, nil // mostly the hub has no need of it
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
	log.FromContext(ctx).Info("The hub lets this agent come back by its key", "member", former.member, "hub", former.server)
	back := *former
	back.token, back.expires = opened.Token, opened.Expires
	return &back, e.store.putCredential(ctx, &back)
}
