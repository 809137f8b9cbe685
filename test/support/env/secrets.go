// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

// Files of a cluster's programs in its folder, in addition to the certificates in pki/.
const (
	authenticationFile = "authentication.yaml"
	encryptionFile     = "encryption.yaml"
	auditPolicyFile    = "audit-policy.yaml"
	auditLogFile       = "audit.log"
	stagesFile         = "kwok-stages.yaml"
)

// addresses are those of a cluster, of one address family.
type addresses struct {
	// loopback is the address at which its programs listen.
	loopback string
	// services is the range of Services, and kubernetes its first address, that of Service
	// default/kubernetes.
	services, kubernetes string
}

func (o Options) addresses() addresses {
	if o.IPv6 {
		return addresses{loopback: "::1", services: "fd00:10:96::/112", kubernetes: "fd00:10:96::1"}
	}
	return addresses{loopback: "127.0.0.1", services: "10.96.0.0/16", kubernetes: "10.96.0.1"}
}

// authenticationConfig allows anonymous requests to health endpoints only.
const authenticationConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

const encryptionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: first
        secret: %s
  - identity: {}
`

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// makeSecrets writes every key, certificate and configuration of a new cluster, and returns the CA
// of its users.
func (c *Cluster) makeSecrets() (*authority, error) {
	if err := os.MkdirAll(c.pki(""), 0o700); err != nil {
		return nil, err
	}
	users, err := newAuthority("kubernetes " + c.Name)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return users.write(c.pki(""), "ca") },
		func() error { return c.makeServing(users) },
		c.makeFrontProxy,
		c.makeEtcd,
		c.makeServiceAccountKey,
		c.makeConfigs,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return users, nil
}

func (c *Cluster) loadSecrets() (*authority, error) {
	cert, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.pki("ca.key"))
	if err != nil {
		return nil, err
	}
	return parseAuthority(pair{cert: cert, key: key})
}

func (c *Cluster) makeServing(users *authority) error {
	hosts := []string{c.options.addresses().kubernetes, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	if c.options.Address != "" {
		if err := c.makeKubeletClient(users); err != nil {
			return err
		}
		hosts = append(hosts, c.options.Address)
	}
	serving, err := users.server("kube-apiserver", hosts...)
	if err != nil {
		return err
	}
	return serving.write(c.pki(""), "apiserver")
}

// makeFrontProxy creates the API server's client certificate for aggregated API servers.
func (c *Cluster) makeFrontProxy() error {
	proxies, err := newAuthority("front-proxy " + c.Name)
	if err != nil {
		return err
	}
	client, err := proxies.client(frontProxyUser)
	if err != nil {
		return err
	}
	if err := client.write(c.pki(""), "front-proxy-client"); err != nil {
		return err
	}
	return proxies.write(c.pki(""), "front-proxy-ca")
}

func (c *Cluster) makeEtcd() error {
	ca, err := newAuthority("etcd " + c.Name)
	if err != nil {
		return err
	}
	server, err := ca.server("etcd")
	if err != nil {
		return err
	}
	client, err := ca.client("kube-apiserver-etcd-client")
	if err != nil {
		return err
	}
	if err := server.write(c.pki(""), "etcd-server"); err != nil {
		return err
	}
	if err := client.write(c.pki(""), "etcd-client"); err != nil {
		return err
	}
	return ca.write(c.pki(""), "etcd-ca")
}

// NewSigningKey creates a key that signs service account tokens. It returns PEM as in pki/sa.key
// and pki/sa.pub of a cluster's folder.
func NewSigningKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if private, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	public, err = encodePublicKey(key)
	return private, public, err
}

func (c *Cluster) makeServiceAccountKey() error {
	private, public, err := NewSigningKey()
	if err != nil {
		return err
	}
	if err := writeFile(c.pki("sa.key"), private); err != nil {
		return err
	}
	return writeFile(c.pki("sa.pub"), public)
}

func (c *Cluster) makeConfigs() error {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	for name, text := range map[string]string{
		authenticationFile: authenticationConfig,
		encryptionFile:     fmt.Sprintf(encryptionConfig, base64.StdEncoding.EncodeToString(key)),
		auditPolicyFile:    auditPolicy,
		stagesFile:         stages,
	} {
		if err := writeFile(c.path(name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

func (c *Cluster) pki(name string) string { return filepath.Join(c.Dir, "pki", name) }
