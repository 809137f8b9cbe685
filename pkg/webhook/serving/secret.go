// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// SecretName is the Secret, in the gateway's namespace, that holds the authority.
const SecretName = "gateway-serving-ca"

// FromAuthority serves certificates of the gateway's own authority, valid for the given DNS names
// and addresses. The client must not read from a cache: caching Secrets for it would hold every
// Secret of the hub in memory.
func FromAuthority(hub client.Client, namespace string, names []string) *Certificates {
	real := clock.RealClock{}
	return newCertificates(&authoritySource{hub: hub, clock: real, namespace: namespace, names: names}, real)
}

// authoritySource shares the authority with other replicas through a Secret and signs its own
// leaves.
type authoritySource struct {
	hub       client.Client
	clock     clock.PassiveClock
	namespace string
	names     []string

	// known is the authority as it was last read or written. If somebody deletes the Secret, it is
	// written again, so that the served certificates stay trusted.
	known *authority
	// leaf is the last signed certificate, signedBy the certificate of its CA.
	leaf     material
	signedBy []byte
	renewAt  time.Time
}

func (s *authoritySource) String() string {
	return fmt.Sprintf("serving certificate signed by Secret %s/%s", s.namespace, SecretName)
}

// load signs a new leaf when the CA has changed, or the leaf has a third of its life left.
func (s *authoritySource) load(ctx context.Context) (material, error) {
	err := retry.OnError(retry.DefaultRetry, lostRace, func() error { return s.readOrWrite(ctx) })
	if err != nil {
		return material{}, err
	}
	current := s.known
	now := s.clock.Now()
	if !bytes.Equal(s.signedBy, current.current.cert) || !now.Before(s.renewAt) {
		cert, key, err := current.current.sign(s.names, now)
		if err != nil {
			return material{}, err
		}
		s.leaf, s.signedBy, s.renewAt = material{cert: cert, key: key}, current.current.cert, now.Add(leafLifetime*2/3)
	}
	found := s.leaf
	found.bundle = current.bundle()
	return found, nil
}

// lostRace is true if another replica wrote first: its version counts.
func lostRace(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// readOrWrite reads the Secret, and writes what is missing or due.
func (s *authoritySource) readOrWrite(ctx context.Context) error {
	var secret corev1.Secret
	err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: SecretName}, &secret)
	if apierrors.IsNotFound(err) {
		return s.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s/%s: %w", s.namespace, SecretName, err)
	}
	found, changed, err := readAuthority(secret.Data).advanced(s.clock.Now())
	if err != nil {
		return err
	}
	if changed {
		secret.Data = found.data()
		if err := s.hub.Update(ctx, &secret); err != nil {
			return fmt.Errorf("writing Secret %s/%s: %w", s.namespace, SecretName, err)
		}
		log.FromContext(ctx).Info("Renewed the serving authority", "secret", secret.Namespace+"/"+secret.Name)
	}
	s.known = &found
	return nil
}

func (s *authoritySource) create(ctx context.Context) error {
	var found authority
	if s.known != nil {
		found = *s.known
	}
	found, _, err := found.advanced(s.clock.Now())
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: SecretName},
		Type:       corev1.SecretTypeTLS,
		Data:       found.data(),
	}
	if err := s.hub.Create(ctx, secret); err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", s.namespace, SecretName, err)
	}
	s.known = &found
	return nil
}
