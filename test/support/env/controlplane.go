// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	frontProxyUser = "front-proxy-client"
	controllerUser = "system:kube-controller-manager"
	schedulerUser  = "system:kube-scheduler"
	kwokUser       = "kwok"

	// etcdPeerPort is the address for etcd's peers.
	etcdPeerPort = 2380

	// serviceAccountIssuer is kubeadm's, the same on every cluster. As for real clusters, only the
	// key distinguishes their tokens.
	serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"
)

// ports of a cluster. They do not change over restarts.
type ports struct {
	Etcd      int `json:"etcd"`
	APIServer int `json:"apiServer"`
}

// programs returns the programs of a cluster with these options.
func (o Options) programs() []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager"}
	if o.hasScheduler() {
		names = append(names, "kube-scheduler")
	}
	if o.Nodes > 0 {
		names = append(names, "kwok")
	}
	return names
}

func (o Options) hasScheduler() bool { return o.Nodes > 0 || o.Address != "" }

// checkPrograms fails before anything is started if a program is missing.
func (o Options) checkPrograms() error {
	for _, name := range o.programs() {
		if _, err := program(o.BinDir, name); err != nil {
			return fmt.Errorf("cluster %s: %w", o.Name, err)
		}
	}
	return nil
}

// flags prints pairs of name and value as program arguments.
func flags(settings ...string) []string {
	args := make([]string, 0, len(settings)/2)
	for pair := range slices.Chunk(settings, 2) {
		args = append(args, "--"+strings.Join(pair, "="))
	}
	return args
}

func (c *Cluster) etcdArgs() []string {
	url := "https://" + c.at(c.ports.Etcd)
	args := flags(
		"name", c.Name,
		"data-dir", c.path("etcd"),
		"listen-client-urls", url,
		"advertise-client-urls", url,
		"client-cert-auth", "true",
		"trusted-ca-file", c.pki("etcd-ca.crt"),
		"cert-file", c.pki("etcd-server.crt"),
		"key-file", c.pki("etcd-server.key"),
		// There are no peers, but etcd always listens for them, on a port of its choice.
		"listen-peer-urls", "https://"+c.at(0),
		"initial-advertise-peer-urls", "https://"+c.at(etcdPeerPort),
		"initial-cluster", c.Name+"=https://"+c.at(etcdPeerPort),
		"peer-client-cert-auth", "true",
		"peer-trusted-ca-file", c.pki("etcd-ca.crt"),
		"peer-cert-file", c.pki("etcd-server.crt"),
		"peer-key-file", c.pki("etcd-server.key"),
		"log-level", "warn",
	)
	if !c.options.Detached {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *Cluster) apiServerArgs() []string {
	addresses := c.options.addresses()
	args := flags(
		"bind-address", addresses.loopback,
		"secure-port", strconv.Itoa(c.ports.APIServer),
		// Endpoints cannot be loopback addresses, and no Pod would use them.
		"advertise-address", addresses.loopback,
		"endpoint-reconciler-type", "none",
		"service-cluster-ip-range", addresses.services,
		"allow-privileged", "true",

		"etcd-servers", "https://"+c.at(c.ports.Etcd),
		"etcd-cafile", c.pki("etcd-ca.crt"),
		"etcd-certfile", c.pki("etcd-client.crt"),
		"etcd-keyfile", c.pki("etcd-client.key"),
		"encryption-provider-config", c.path(encryptionFile),

		"tls-cert-file", c.pki("apiserver.crt"),
		"tls-private-key-file", c.pki("apiserver.key"),
		"client-ca-file", c.pki("ca.crt"),
		"authentication-config", c.path(authenticationFile),
		"enable-bootstrap-token-auth", "true",
		"authorization-mode", "Node,RBAC",
		"enable-admission-plugins", "NodeRestriction",

		"service-account-issuer", serviceAccountIssuer,
		"service-account-key-file", c.pki("sa.pub"),
		"service-account-signing-key-file", c.pki("sa.key"),

		"requestheader-client-ca-file", c.pki("front-proxy-ca.crt"),
		"requestheader-allowed-names", frontProxyUser,
		"requestheader-username-headers", "X-Remote-User",
		"requestheader-uid-headers", "X-Remote-Uid",
		"requestheader-group-headers", "X-Remote-Group",
		"requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"proxy-client-cert-file", c.pki("front-proxy-client.crt"),
		"proxy-client-key-file", c.pki("front-proxy-client.key"),

		// Otherwise a stopping API server leaves watches open, its own too, until it is killed.
		"shutdown-watch-termination-grace-period", "2s",
	)
	if c.options.Audit {
		args = append(args, flags("audit-policy-file", c.path(auditPolicyFile), "audit-log-path", c.path(auditLogFile))...)
	}
	if c.options.Address != "" {
		args = append(args, c.realNodesArgs()...)
	}
	return append(args, c.options.APIServerFlags...)
}

func (c *Cluster) controllerManagerArgs() []string {
	return flags(
		"kubeconfig", c.kubeconfigPath(controllerUser),
		"secure-port", "0",
		"leader-elect", "false",
		"use-service-account-credentials", "true",
		"controllers", "*,token-cleaner-controller",
		"cluster-name", c.Name,
		"cluster-signing-cert-file", c.pki("ca.crt"),
		"cluster-signing-key-file", c.pki("ca.key"),
		"root-ca-file", c.pki("ca.crt"),
		"service-account-private-key-file", c.pki("sa.key"),
		"service-cluster-ip-range", c.options.addresses().services,
		// A client-side limit would slow tests down without testing anything.
		"kube-api-qps", "500", "kube-api-burst", "1000",
	)
}

func (c *Cluster) schedulerArgs() []string {
	return flags(
		"kubeconfig", c.kubeconfigPath(schedulerUser),
		"secure-port", "0",
		"leader-elect", "false",
		"kube-api-qps", "500", "kube-api-burst", "1000",
	)
}

func (c *Cluster) kwokArgs() []string {
	return flags(
		"kubeconfig", c.kubeconfigPath(kwokUser),
		"config", c.path(stagesFile),
		"manage-all-nodes", "true",
		// Without leases the node controller marks nodes unreachable after 40 seconds.
		"node-lease-duration-seconds", "40",
	)
}

// etcdConfig is the API server's configuration for etcd.
func (c *Cluster) etcdConfig() *rest.Config {
	return &rest.Config{
		Host: "https://" + c.at(c.ports.Etcd),
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: c.pki("etcd-ca.crt"), CertFile: c.pki("etcd-client.crt"), KeyFile: c.pki("etcd-client.key"),
		},
	}
}

// makeProcesses prepares the programs in start order.
func (c *Cluster) makeProcesses() error {
	etcdReady, err := c.probe(c.etcdConfig(), "/health")
	if err != nil {
		return err
	}
	ready, err := c.probe(c.config, "/readyz")
	if err != nil {
		return err
	}
	if c.Etcd, err = c.process("etcd", c.etcdArgs(), etcdReady); err != nil {
		return err
	}
	if c.APIServer, err = c.process("kube-apiserver", c.apiServerArgs(), ready); err != nil {
		return err
	}
	if c.ControllerManager, err = c.process("kube-controller-manager", c.controllerManagerArgs(), c.controllersWork); err != nil {
		return err
	}
	if c.options.hasScheduler() {
		if c.Scheduler, err = c.process("kube-scheduler", c.schedulerArgs(), nil); err != nil {
			return err
		}
	}
	if c.options.Nodes == 0 {
		return nil
	}
	c.KWOK, err = c.process("kwok", c.kwokArgs(), c.nodesWork)
	return err
}

func (c *Cluster) process(name string, args []string, ready func(context.Context) error) (*Process, error) {
	return NewProcess(ProcessOptions{
		Name:         name,
		Dir:          c.Dir,
		Path:         filepath.Join(c.options.BinDir, name),
		Args:         args,
		Detached:     c.options.Detached,
		Ready:        ready,
		StartTimeout: c.options.StartTimeout,
		// Otherwise KWOK reads a configuration from the user's home.
		Env: []string{"HOME=" + c.Dir},
	})
}

// probe checks the readiness endpoint of an HTTPS server, with a new connection each time: an old
// one may belong to the process before a restart.
func (c *Cluster) probe(cfg *rest.Config, path string) (func(context.Context) error, error) {
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	return Answers(client, cfg.Host+path), nil
}
