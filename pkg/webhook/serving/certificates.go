// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// checkInterval is how often a source is checked.
	checkInterval = 5 * time.Second
	// firstInterval is how often it is checked before there is anything to serve.
	firstInterval = 100 * time.Millisecond
	// handover is how long a certificate that needs a new bundle waits until the bundle is
	// everywhere: the leader writes it at once, and API servers follow within moments.
	handover = time.Minute
)

// errNoCertificate is returned until there is a certificate to serve.
var errNoCertificate = errors.New("there is no serving certificate yet")

// material is the current content of a source.
type material struct {
	// cert and key are the leaf's chain and key, bundle the CAs that verify it (PEM).
	cert, key, bundle []byte
}

// A source is polled for the certificate to serve.
type source interface {
	// load returns what to serve now. An error keeps the served certificate.
	load(ctx context.Context) (material, error)
	// String names the source for logs.
	String() string
}

// Certificates serves a certificate that is always current. Create one with FromAuthority,
// FromFiles or FromCertManager, and Start it.
type Certificates struct {
	source source
	clock  clock.Clock
	first  chan struct{}
	// bundleChanged holds a value when CABundle has changed.
	bundleChanged chan struct{}

	// mu guards the following fields.
	mu sync.Mutex
	// served and parsed are the certificate that is served.
	served material
	parsed *tls.Certificate
	// retained is the previous bundle: another replica may still serve its certificate.
	retained []byte
	// bundle is the result of CABundle: it verifies the previous, current and next certificate.
	bundle []byte
	// waiting is the certificate that will be served after the handover time.
	waiting   []byte
	waitsTill time.Time
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*Certificates)(nil)

func newCertificates(from source, clock clock.Clock) *Certificates {
	return &Certificates{source: from, clock: clock, first: make(chan struct{}), bundleChanged: make(chan struct{}, 1)}
}

// Start keeps the certificate current until the context ends. If the source becomes unreadable,
// that is logged once, and the current certificate is still served.
func (c *Certificates) Start(ctx context.Context) error {
	logger, failed := log.FromContext(ctx), false
	for {
		err := c.refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			logger.Error(err, "The serving certificate cannot be looked up", "source", c.source.String())
		}
		failed = err != nil
		interval := checkInterval
		if !c.ready() {
			interval = firstInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.clock.After(interval):
		}
	}
}

// NeedLeaderElection is false: every replica serves.
func (c *Certificates) NeedLeaderElection() bool { return false }

// refresh checks the source once.
func (c *Certificates) refresh(ctx context.Context) error {
	found, err := c.source.load(ctx)
	if err != nil {
		return err
	}
	parsed, err := parseLeaf(found)
	if err != nil {
		return fmt.Errorf("reading %s: %w", c.source, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(found, parsed)
	return nil
}

// take serves the found certificate, now or, if its bundle has to be distributed first, later. Call
// it with the lock.
func (c *Certificates) take(found material, parsed *tls.Certificate) {
	now := c.clock.Now()
	switch {
	case c.parsed == nil:
		c.serve(found, parsed)
		close(c.first)
	case bytes.Equal(found.cert, c.served.cert) && bytes.Equal(found.key, c.served.key):
		c.served.bundle, c.waiting = found.bundle, nil
	case verifies(c.served.bundle, parsed.Leaf, now), now.After(c.parsed.Leaf.NotAfter):
		c.serve(found, parsed)
	case c.waiting == nil || !bytes.Equal(c.waiting, found.cert):
		c.waiting, c.waitsTill = found.cert, now.Add(handover)
	case !now.Before(c.waitsTill):
		c.serve(found, parsed)
	}
	c.publish(joinBundles(now, found.bundle, c.served.bundle, c.retained))
}

// serve makes the certificate the served one.
func (c *Certificates) serve(found material, parsed *tls.Certificate) {
	c.retained, c.waiting = c.served.bundle, nil
	c.served, c.parsed = found, parsed
	for _, listener := range c.listeners {
		listener.Enqueue()
	}
}

// publish makes the bundle the result of CABundle.
func (c *Certificates) publish(bundle []byte) {
	if bytes.Equal(bundle, c.bundle) {
		return
	}
	c.bundle = bundle
	select {
	case c.bundleChanged <- struct{}{}:
	default: // The last change was not read yet.
	}
}

func parseLeaf(found material) (*tls.Certificate, error) {
	parsed, err := tls.X509KeyPair(found.cert, found.key)
	if err != nil {
		return nil, err
	}
	if parsed.Leaf == nil {
		if parsed.Leaf, err = x509.ParseCertificate(parsed.Certificate[0]); err != nil {
			return nil, err
		}
	}
	return &parsed, nil
}

// verifies is true if the bundle verifies the leaf now.
func verifies(bundle []byte, leaf *x509.Certificate, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

// joinBundles returns every certificate of the bundles once, without expired ones.
func joinBundles(now time.Time, bundles ...[]byte) []byte {
	var joined bytes.Buffer
	seen := map[string]bool{}
	for _, rest := range bundles {
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil || now.After(certificate.NotAfter) || seen[string(block.Bytes)] {
				continue // Unreadable certificates verify nothing.
			}
			seen[string(block.Bytes)] = true
			joined.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
		}
	}
	return joined.Bytes()
}

func (c *Certificates) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parsed != nil
}

// WaitForFirst returns when there is a certificate to serve, or with the context's error.
func (c *Certificates) WaitForFirst(ctx context.Context) error {
	select {
	case <-c.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the %s: %w", c.source, context.Cause(ctx))
	}
}

// GetCertificate is for tls.Config.
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed == nil {
		return nil, fmt.Errorf("%w: see %s", errNoCertificate, c.source)
	}
	return c.parsed, nil
}

// Name is the source of the certificate, for logs.
func (c *Certificates) Name() string { return c.source.String() }

// CurrentCertKeyContent returns certificate and key as PEM; both are empty until WaitForFirst has
// returned.
func (c *Certificates) CurrentCertKeyContent() ([]byte, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served.cert, c.served.key
}

// AddListener notifies the listener of every later certificate.
func (c *Certificates) AddListener(listener dynamiccertificates.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, listener)
}

// CABundle returns the PEM bundle that verifies the certificate, and those that replicas serve
// around a rotation. It waits, up to the context's end, for the first certificate.
func (c *Certificates) CABundle(ctx context.Context) ([]byte, error) {
	if err := c.WaitForFirst(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bundle, nil
}

// BundleChanged yields when CABundle has changed since the last value; it is for one reader.
func (c *Certificates) BundleChanged() <-chan struct{} { return c.bundleChanged }
