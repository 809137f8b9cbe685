// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"fleetgate.io/fleetgate/pkg/cluster/sealing"
)

// Secrets on the member, in the agent's namespace.
const (
	// KeySecret contains the agent's key pair.
	KeySecret = "agent-key"
	// CredentialSecret contains the agent's credential on the hub.
	CredentialSecret = "agent-credential"
	// BootstrapSecret contains the registration values until the agent is enrolled.
	BootstrapSecret = "fleet-agent-bootstrap"
)

// Keys of KeySecret.
const (
	privateKeyKey   = "private-key"
	clientRandomKey = "client-random"
	// previousKeyKey is the key of the Secret for the former private key, if the agent is to get a
	// new one.
	previousKeyKey = "previous-private-key"
)

// Keys of CredentialSecret.
const (
	serverKey  = "server"
	caKey      = "ca.crt"
	proxyKey   = "proxy-url"
	memberKey  = "member"
	tokenKey   = "token"
	expiresKey = "expires"
	// Addresses of the hub before it moved: the last one, and the one at registration.
	previousPrefix = "previous-"
	originPrefix   = "origin-"
)

// hubAddress is the URL, CA and proxy of the hub.
type hubAddress struct {
	server string
	ca     []byte
	// proxy is a URL, or empty.
	proxy string
}

func addressIn(b *Bootstrap) hubAddress {
	return hubAddress{server: b.APIServerURL, ca: []byte(b.APIServerCA), proxy: b.ProxyURL}
}

func (h hubAddress) equal(other hubAddress) bool {
	return h.server == other.server && h.proxy == other.proxy && bytes.Equal(h.ca, other.ca)
}

// credential is the agent's identity on the hub and the address of the hub.
type credential struct {
	hubAddress
	member  string
	token   string
	expires time.Time
	// previous is the last address of the hub, until the present one has worked twice. origin is
	// the address at registration. Both are nil if the hub has not moved.
	previous, origin *hubAddress
	// unstored is why the Secret has a former token, which is valid until it expires; nil if it has this one.
	unstored error
}

// write sets the keys of an address, with a prefix.
func (h hubAddress) write(data map[string][]byte, prefix string) {
	data[prefix+serverKey], data[prefix+caKey] = []byte(h.server), h.ca
	if h.proxy != "" {
		data[prefix+proxyKey] = []byte(h.proxy)
	}
}

// readAddress reads the keys of an address; nil if there is none.
func readAddress(data map[string][]byte, prefix string) *hubAddress {
	if len(data[prefix+serverKey]) == 0 {
		return nil
	}
	return &hubAddress{server: string(data[prefix+serverKey]), ca: data[prefix+caKey], proxy: string(data[prefix+proxyKey])}
}

// identity is the agent's key pair and its random nonce.
type identity struct {
	key    *sealing.Key
	random string
	// previous is the former private key; nil if it was not replaced.
	previous *sealing.Key
}

// store reads and writes the agent's Secrets on the member.
type store struct {
	member    kubernetes.Interface
	namespace string
}

// identity returns the stored key and creates it the first time. If two agents create one
// concurrently, both use the first.
func (s *store) identity(ctx context.Context) (*identity, error) {
	secrets := s.member.CoreV1().Secrets(s.namespace)
	secret, err := secrets.Get(ctx, KeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: KeySecret}}, nil
	}
	if err == nil && (secret.UID == "" || isReplaced(secret)) {
		if err := s.putNewKey(ctx, secret); err != nil {
			return nil, err
		}
		secret, err = secrets.Get(ctx, KeySecret, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", KeySecret, err)
	}
	id := &identity{random: string(secret.Data[clientRandomKey])}
	id.key, err = sealing.ParseKey(secret.Data[privateKeyKey])
	if err == nil && len(secret.Data[previousKeyKey]) > 0 {
		id.previous, err = sealing.ParseKey(secret.Data[previousKeyKey])
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q (delete it to start with a new key): %w", KeySecret, err)
	}
	return id, nil
}

// isReplaced reports whether a user moved the key to the previous one.
func isReplaced(secret *corev1.Secret) bool {
	return len(secret.Data[privateKeyKey]) == 0 && len(secret.Data[previousKeyKey]) > 0
}

// putNewKey adds a new key to the Secret, or creates the Secret. If another agent was faster, its
// key stays.
func (s *store) putNewKey(ctx context.Context, secret *corev1.Secret) error {
	key, err := sealing.NewKey()
	if err != nil {
		return err
	}
	private, err := key.Bytes()
	if err != nil {
		return err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[privateKeyKey], secret.Data[clientRandomKey] = private, []byte(rand.Text())
	secrets := s.member.CoreV1().Secrets(s.namespace)
	if secret.UID == "" {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("storing the key in Secret %q: %w", KeySecret, err)
	}
	return nil
}

// forgetPreviousKey deletes the previous key, which no longer owns a cluster.
func (s *store) forgetPreviousKey(ctx context.Context) error {
	secrets := s.member.CoreV1().Secrets(s.namespace)
	secret, err := secrets.Get(ctx, KeySecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %q: %w", KeySecret, err)
	}
	if len(secret.Data[previousKeyKey]) == 0 {
		return nil
	}
	delete(secret.Data, previousKeyKey)
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("deleting the previous key from Secret %q: %w", KeySecret, err)
	}
	return nil
}

// credential returns the stored credential, or nil if there is no readable one.
func (s *store) credential(ctx context.Context) (*credential, error) {
	secret, err := s.member.CoreV1().Secrets(s.namespace).Get(ctx, CredentialSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", CredentialSecret, err)
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data[expiresKey]))
	c := &credential{
		hubAddress: hubAddress{
			server: string(secret.Data[serverKey]), ca: secret.Data[caKey], proxy: string(secret.Data[proxyKey]),
		},
		member:  string(secret.Data[memberKey]),
		token:   string(secret.Data[tokenKey]),
		expires: expires,

		previous: readAddress(secret.Data, previousPrefix),
		origin:   readAddress(secret.Data, originPrefix),
	}
	if err != nil || c.server == "" || c.member == "" || c.token == "" {
		//lint:ignore nilerr An unreadable credential is replaced.
		return nil, nil
	}
	return c, nil
}

func (s *store) putCredential(ctx context.Context, c *credential) error {
	secrets := s.member.CoreV1().Secrets(s.namespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: CredentialSecret},
		Data: map[string][]byte{
			memberKey:  []byte(c.member),
			tokenKey:   []byte(c.token),
			expiresKey: []byte(c.expires.UTC().Format(time.RFC3339)),
		},
	}
	c.write(secret.Data, "")
	if c.previous != nil {
		c.previous.write(secret.Data, previousPrefix)
	}
	if c.origin != nil {
		c.origin.write(secret.Data, originPrefix)
	}
	_, err := secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("storing the credential in Secret %q: %w", CredentialSecret, err)
	}
	return nil
}

// bootstrap parses the bootstrap Secret; nil if there is none.
func (s *store) bootstrap(ctx context.Context) (*Bootstrap, error) {
	secret, err := s.member.CoreV1().Secrets(s.namespace).Get(ctx, BootstrapSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", BootstrapSecret, err)
	}
	return bootstrapOf(secret)
}

func (s *store) deleteBootstrap(ctx context.Context) error {
	err := s.member.CoreV1().Secrets(s.namespace).Delete(ctx, BootstrapSecret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Secret %q: %w", BootstrapSecret, err)
	}
	return nil
}

// defaultClientID is the UID of the member's namespace kube-system, which is unique and exists in
// every cluster.
func (s *store) defaultClientID(ctx context.Context) (string, error) {
	namespace, err := s.member.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace %q for the client ID: %w", metav1.NamespaceSystem, err)
	}
	if namespace.UID == "" {
		return "", errors.New("namespace kube-system has no UID for the client ID")
	}
	return string(namespace.UID), nil
}
