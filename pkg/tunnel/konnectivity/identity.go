// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Identity is a peer's proven identity.
type Identity struct {
	// Name and Groups are as Kubernetes reads them: a certificate's common name and organizations,
	// without those that begin with "system:", or the user of a token.
	Name   string
	Groups []string
	// Expires is the expiry of the credential; zero if unknown.
	Expires time.Time

	// token is kept for later reviews; never shown.
	token string
}

// Credentials say how the peers of one listener authenticate. At least one method is needed, and a
// peer needs only one. The two listeners of a gateway must not share them.
type Credentials struct {
	// ClientCAs returns the CAs that verify client certificates, for each connection, so that a
	// rotation needs no restart. Nil: no certificates.
	ClientCAs func() (*x509.CertPool, error)
	// Token returns the owner of a bearer token. ok is false if the token is not valid or was
	// issued for another listener (its audience). Nil: no tokens.
	Token func(ctx context.Context, token string) (id Identity, ok bool, err error)
}

var errNoCredentials = errors.New("a listener needs client certificates or tokens, or both, to know its peers by")

func (c Credentials) validate() error {
	if c.ClientCAs == nil && c.Token == nil {
		return errNoCredentials
	}
	return nil
}

// tlsConfig is the listener's side of the handshake. A certificate of another CA fails it. So does
// a missing certificate, unless tokens are accepted.
func (c Credentials) tlsConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols []string) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: certificate,
		NextProtos:     protocols,
	}
	if c.ClientCAs == nil {
		return config
	}
	current := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.ClientCAs()
		if err != nil {
			return nil, fmt.Errorf("reading the CAs of clients: %w", err)
		}
		// A clone for each handshake, so that no session is resumed with older CAs.
		config := current.Clone()
		config.SessionTicketsDisabled = true
		config.ClientCAs = pool
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if c.Token != nil {
			config.ClientAuth = tls.VerifyClientCertIfGiven
		}
		return config, nil
	}
	return config
}

// identify returns a peer's identity from its verified certificate, or from its token if there is
// none. ok is false if it proved nothing.
func (c Credentials) identify(ctx context.Context, state tls.ConnectionState, authorization []string) (Identity, bool, error) {
	if len(state.VerifiedChains) > 0 {
		leaf := state.VerifiedChains[0][0]
		id := Identity{Name: leaf.Subject.CommonName, Groups: ordinary(leaf.Subject.Organization), Expires: leaf.NotAfter}
		return id, id.Name != "", nil
	}
	if c.Token == nil || len(authorization) != 1 {
		return Identity{}, false, nil
	}
	const scheme = "bearer "
	given := authorization[0]
	if len(given) <= len(scheme) || !strings.EqualFold(given[:len(scheme)], scheme) {
		return Identity{}, false, nil
	}
	return c.review(ctx, strings.TrimSpace(given[len(scheme):]))
}

// ordinary removes groups that only the hub may grant, such as system:masters: the CA of a listener
// is not the hub's.
func ordinary(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return strings.HasPrefix(group, "system:") })
}

func (c Credentials) review(ctx context.Context, token string) (Identity, bool, error) {
	id, ok, err := c.Token(ctx, token)
	if err != nil {
		return Identity{}, false, fmt.Errorf("reviewing a token: %w", err)
	}
	id.token = token
	return id, ok && id.Name != "", nil
}

// stillValid is true if an accepted identity would be accepted now. A certificate is valid until it
// expires; a token can be revoked before.
func (c Credentials) stillValid(ctx context.Context, id Identity) (bool, error) {
	if id.token == "" {
		return true, nil
	}
	again, ok, err := c.review(ctx, id.token)
	return ok && again.Name == id.Name, err
}
