// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubcertificate

import (
	"context"
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secret contains the certificate and its key, in the agent's namespace on the member.
const Secret = "agent-certificate"

// originKey is its key for the hub that issued the certificate.
const originKey = "hub"

// store implements certificate.Store with the Secret.
type store struct {
	*Keeper
	//nolint:containedctx // The interface passes no context; this is that of Keeper.Run.
	ctx context.Context
}

var _ certificate.Store = (*store)(nil)

// Current returns the stored certificate, or an error that triggers a request.
func (s *store) Current() (*tls.Certificate, error) {
	cert, key, err := s.Pair(s.ctx)
	if err != nil {
		return nil, err
	}
	none := certificate.NoCertKeyError("no certificate of this hub is kept")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		//lint:ignore nilerr An invalid certificate is replaced.
		return nil, &none
	}
	return &pair, nil
}

// Pair returns the stored certificate and its key, or nil if the member has none of this hub.
func (k *Keeper) Pair(ctx context.Context) (cert, key []byte, err error) {
	secret, err := k.Member.CoreV1().Secrets(k.Namespace).Get(ctx, Secret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading Secret %s/%s: %w", k.Namespace, Secret, err)
	case string(secret.Data[originKey]) != k.Origin:
		return nil, nil, nil
	}
	return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], nil
}

// Update stores a new certificate.
func (s *store) Update(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate that the hub gave: %w", err)
	}
	secrets := s.Member.CoreV1().Secrets(s.Namespace)
	secret, err := secrets.Get(s.ctx, Secret, metav1.GetOptions{})
	write := func() (*corev1.Secret, error) { return secrets.Update(s.ctx, secret, metav1.UpdateOptions{}) }
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: Secret}, Type: corev1.SecretTypeTLS}, nil
		write = func() (*corev1.Secret, error) { return secrets.Create(s.ctx, secret, metav1.CreateOptions{}) }
	}
	if err == nil {
		secret.Data = map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, originKey: []byte(s.Origin)}
		_, err = write()
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the certificate in Secret %s/%s: %w", s.Namespace, Secret, err)
	}
	return &pair, nil
}

// Forget deletes the certificate of a member that has left.
func Forget(ctx context.Context, member kubernetes.Interface, namespace string) error {
	err := member.CoreV1().Secrets(namespace).Delete(ctx, Secret, metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Secret %s/%s: %w", namespace, Secret, err)
	}
	return nil
}
