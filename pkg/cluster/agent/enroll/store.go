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
	// KeySecret holds the agent's key pair.
	KeySecret = "agent-key"
	// CredentialSecret holds what the agent needs to speak to the hub.
	CredentialSecret = "agent-credential"
	// BootstrapSecret holds the registration values until they have served.
	BootstrapSecret = "fleet-agent-bootstrap"
)

// Keys of KeySecret.
const (
	privateKeyKey   = "private-key"
	clientRandomKey = "client-random"
	// previousKeyKey is where somebody puts the key that has the cluster so far, if the
	// agent is to have another one.
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
	// Where the hub was before it moved: last, and when the agent registered.
	previousPrefix = "previous-"
	originPrefix   = "origin-"
)

// hubAddress is how the agent gets to the hub.
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

// credential is who the agent is on the hub, and how it gets there.
type credential struct {
	hubAddress
	member  string
	token   string
	expires time.Time
	// previous is the way to the hub that was left last, until the present one has served
	// twice; origin the first of all. Nil: the hub has not moved.
	previous, origin *hubAddress
}

// write enters an address under keys with a prefix.
func (h hubAddress) write(data map[string][]byte, prefix string) {
	data[prefix+serverKey], data[prefix+caKey] = []byte(h.server), h.ca
	if h.proxy != "" {
		data[prefix+proxyKey] = []byte(h.proxy)
	}
}

// readAddress is what write entered, nil if that is nothing.
func readAddress(data map[string][]byte, prefix string) *hubAddress {
	if len(data[prefix+serverKey]) == 0 {
		return nil
	}
	return &hubAddress{server: string(data[prefix+serverKey]), ca: data[prefix+caKey], proxy: string(data[prefix+proxyKey])}
}

// identity is the agent's key pair, and the random text that goes with it.
type identity struct {
	key    *sealing.Key
	random string
	// previous is the key that has the cluster so far; nil if that is key.
	previous *sealing.Key
}

// store keeps the agent's secrets in its namespace on the member.
type store struct {
	member    kubernetes.Interface
	namespace string
}

// identity returns the stored key, making it the first time. Of two agents that make
// one at the same time the first wins, and both use that.
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

// isReplaced tells whether somebody has made the key the previous one.
func isReplaced(secret *corev1.Secret) bool {
	return len(secret.Data[privateKeyKey]) == 0 && len(secret.Data[previousKeyKey]) > 0
}

// putNewKey adds a new key to a Secret that is not there, or has none. Whoever is slower
// than another agent that does the same uses what that has written.
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

// forgetPreviousKey deletes a key that has nothing any more.
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

// credential returns the stored credential, or nil if there is none that can be read.
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
		//lint:ignore nilerr What cannot be read is no credential: another is asked for.
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

// bootstrap reads the bootstrap Secret; nil if there is none.
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

// defaultClientID is the UID of the member's namespace kube-system, which every
// cluster has and no two share.
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
