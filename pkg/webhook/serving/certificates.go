// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving gives the gateway the certificate under which the hub's API
// server reaches it, for webhooks and for the aggregated API alike, and the CA
// bundle that has to stand in webhook configurations and APIServices.
//
// The authority lives in one Secret that all replicas share; each replica signs
// a leaf of its own in memory and renews it by itself (cert-manager's library
// does both). Nothing is written to disk, and no cert-manager needs to run.
package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	cmtls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretName is the Secret, in the gateway's namespace, that holds the authority.
const SecretName = "gateway-serving-ca"

const (
	authorityLifetime = 365 * 24 * time.Hour
	leafLifetime      = 7 * 24 * time.Hour
	retryInterval     = time.Second
)

// Certificates serves a certificate that is always current.
type Certificates struct {
	source    *cmtls.DynamicSource
	reader    client.Reader
	namespace string
}

var (
	_ dynamiccertificates.CertKeyContentProvider = (*Certificates)(nil)
)

// New returns the certificates of a gateway in namespace, valid for the given
// DNS names. The reader must not be a cache: the CA bundle is read rarely, and
// caching Secrets for it would hold every Secret of the hub in memory.
func New(config *rest.Config, reader client.Reader, namespace string, dnsNames []string) *Certificates {
	return &Certificates{
		source: &cmtls.DynamicSource{
			DNSNames:      dnsNames,
			RetryInterval: retryInterval,
			Authority: &authority.DynamicAuthority{
				RESTConfig:      config,
				SecretNamespace: namespace,
				SecretName:      SecretName,
				CommonName:      "fleetgate-gateway",
				CADuration:      authorityLifetime,
				LeafDuration:    leafLifetime,
			},
		},
		reader:    reader,
		namespace: namespace,
	}
}

// Start keeps the certificate current until the context ends.
func (c *Certificates) Start(ctx context.Context) error { return c.source.Start(ctx) }

// NeedLeaderElection is false: every replica serves.
func (c *Certificates) NeedLeaderElection() bool { return false }

// WaitForFirst returns when there is a certificate to serve, or with the
// context's error.
func (c *Certificates) WaitForFirst(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return c.source.Healthy(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the serving certificate (is Secret %s/%s writable?): %w", c.namespace, SecretName, err)
	}
	return nil
}

// GetCertificate is for tls.Config.
func (c *Certificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.source.GetCertificate(hello)
}

// Name says where the certificate comes from, for logs.
func (c *Certificates) Name() string {
	return "serving certificate signed by " + c.namespace + "/" + SecretName
}

// CurrentCertKeyContent returns certificate and key as PEM; both are empty until
// WaitForFirst has returned.
func (c *Certificates) CurrentCertKeyContent() ([]byte, []byte) {
	current, err := c.source.GetCertificate(nil)
	if err != nil {
		return nil, nil
	}
	var chain bytes.Buffer
	for _, der := range current.Certificate {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	key, err := x509.MarshalPKCS8PrivateKey(current.PrivateKey)
	if err != nil {
		return nil, nil
	}
	return chain.Bytes(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
}

// AddListener ignores the listener: the API server's certificate controller
// looks again every minute by itself, and leaves are renewed days ahead.
func (c *Certificates) AddListener(dynamiccertificates.Listener) {}

// CABundle returns the PEM bundle that verifies the certificate. It waits, up to
// the context's end, for the authority to be written once.
func (c *Certificates) CABundle(ctx context.Context) ([]byte, error) {
	var found []byte
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var secret corev1.Secret
		err := c.reader.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: SecretName}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		found = secret.Data["ca.crt"]
		return len(found) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle from Secret %s/%s: %w", c.namespace, SecretName, err)
	}
	return found, nil
}
