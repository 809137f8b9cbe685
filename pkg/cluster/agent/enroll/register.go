// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// hubCallTimeout is the timeout of each request of an enrollment.
const hubCallTimeout = 15 * time.Second

// registrationClient returns a client for ClusterRegistrations only. It has a fixed mapping,
// because the hub may forbid discovery.
func registrationClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := registrationv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building a scheme: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(registrationv1alpha1.GroupVersion.WithKind("ClusterRegistration"), meta.RESTScopeNamespace)
	hub, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("building a client for the hub: %w", err)
	}
	return hub, nil
}

// desiredRequest returns the ClusterRegistration of an agent's key. It is the same object whenever
// it is sent.
func desiredRequest(b *Bootstrap, id *identity, clientID string) (*registrationv1alpha1.ClusterRegistration, error) {
	verification, err := id.key.VerificationKey()
	if err != nil {
		return nil, err
	}
	request := &registrationv1alpha1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.ClusterNamespace,
			Name:      registrationv1alpha1.RequestName(id.key.PublicKey()),
		},
		Spec: registrationv1alpha1.ClusterRegistrationSpec{
			ClientID:      clientID,
			ClientRandom:  id.random,
			ClusterLabels: b.Labels,
			PublicKey:     id.key.PublicKey(),

			VerificationKey: verification,
		},
	}
	if b.TokenName != "" {
		request.Labels = map[string]string{registrationv1alpha1.LabelRegistrationToken: b.TokenName}
	}
	if id.previous != nil {
		if request.Spec.PreviousSignature, err = signMove(request, id.previous); err != nil {
			return nil, err
		}
	}
	request.Spec.TokenProof, err = registrationv1alpha1.TokenProof(b.Token, request)
	return request, err
}

// signMove signs the transfer of the cluster from the previous key to the key in the request.
func signMove(request *registrationv1alpha1.ClusterRegistration, previous *sealing.Key) ([]byte, error) {
	statement, err := registrationv1alpha1.MoveStatement(request)
	if err != nil {
		return nil, err
	}
	return previous.Sign(statement)
}

// exchange sends the registration, or gets the one sent before. It returns the credential once it
// is granted, and a refusal until then.
func (e *Enroller) exchange(ctx context.Context, b *Bootstrap, id *identity, clientID string) (*credential, error) {
	hub, err := registrationClient(e.hubConfig(addressIn(b), b.Token))
	if err != nil {
		return nil, refuse(BadBootstrap, err, "the registration values cannot be used: %v", err)
	}
	wanted, err := desiredRequest(b, id, clientID)
	if err != nil {
		return nil, err
	}
	request := &registrationv1alpha1.ClusterRegistration{}
	err = hub.Get(ctx, client.ObjectKeyFromObject(wanted), request)
	if apierrors.IsNotFound(err) {
		request = wanted
		err = hub.Create(ctx, request)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, explainRegistration(err, b)
	}
	return readGrant(request, b, id, clientID)
}

// readGrant converts the status of a registration into a credential or a refusal.
func readGrant(request *registrationv1alpha1.ClusterRegistration, b *Bootstrap, id *identity, clientID string) (*credential, error) {
	if request.Spec.ClientID != "" && request.Spec.ClientID != clientID {
		return nil, refuse(RegistrationRefused, nil,
			"ClusterRegistration %q on hub %s has this agent's key but another client ID: "+
				"give the agent its former client ID, or delete Secret %s on the member to start with a new key",
			request.Name, b.APIServerURL, KeySecret)
	}
	granted := meta.FindStatusCondition(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
	if !request.Status.Granted {
		return nil, explainPending(request, b, granted)
	}
	opened, err := id.key.Open(request.Status.SealedToken, request.UID, clientID)
	if err != nil {
		return nil, refuse(RegistrationRefused, err,
			"what hub %s answered to ClusterRegistration %q does not open with this agent's key: delete that object on the hub",
			b.APIServerURL, request.Name)
	}
	return &credential{
		hubAddress: addressIn(b),
		member:     opened.Member,
		token:      opened.Token,
		expires:    opened.Expires,
	}, nil
}

func explainPending(request *registrationv1alpha1.ClusterRegistration, b *Bootstrap, granted *metav1.Condition) *refusal.Refusal {
	if granted == nil || granted.Reason == registrationv1alpha1.RegistrationReasonWaiting {
		return refuse(RegistrationPending, nil,
			"hub %s has not answered ClusterRegistration %q yet: if this lasts, check that the gateway runs there", b.APIServerURL, request.Name)
	}
	return refuse(RegistrationRefused, nil,
		"hub %s refuses ClusterRegistration %q: %s", b.APIServerURL, request.Name, granted.Message)
}
