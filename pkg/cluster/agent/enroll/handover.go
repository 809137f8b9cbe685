// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
)

// An administrator of a member can move its agent to another hub: the agent uses the values in
// Secret BootstrapSecret once its present hub no longer accepts it.

// StoredIdentity is the identity that an agent stores on its member.
type StoredIdentity struct {
	// Member is the name of the cluster on its hub.
	Member string
	// PublicKey is the public part of the agent's key, which identifies it to hubs.
	PublicKey []byte
	// ProxyURL is the forward proxy to the hub; empty if there is none or the environment sets it.
	ProxyURL string
}

// ReadIdentity reads the identity that the agent of a namespace stores. It writes nothing.
func ReadIdentity(ctx context.Context, member kubernetes.Interface, namespace string) (*StoredIdentity, error) {
	s := &store{member: member, namespace: namespace}
	kept, err := s.credential(ctx)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return nil, fmt.Errorf("namespace %q of the cluster has no Secret %q of an agent that has registered: say in which namespace the agent runs", namespace, CredentialSecret)
	}
	secret, err := member.CoreV1().Secrets(namespace).Get(ctx, KeySecret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", KeySecret, err)
	}
	key, err := sealing.ParseKey(secret.Data[privateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", KeySecret, err)
	}
	return &StoredIdentity{Member: kept.member, PublicKey: key.PublicKey(), ProxyURL: kept.proxy}, nil
}

// LeaveValues writes registration values for the agent of a namespace and replaces existing ones.
func LeaveValues(ctx context.Context, member kubernetes.Interface, namespace string, b *Bootstrap) error {
	values, err := yaml.Marshal(b)
	if err != nil {
		return fmt.Errorf("writing the registration values: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: BootstrapSecret},
		Data:       map[string][]byte{registrationv1alpha1.RegistrationValuesKey: values},
	}
	secrets := member.CoreV1().Secrets(namespace)
	_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing Secret %q on the member: %w", BootstrapSecret, err)
	}
	return nil
}
