// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config returns a new configuration of the break-glass administrator (system:masters) without a
// client-side limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns a break-glass client for the kinds that the functions add to its scheme.
func (c *Cluster) Client(kinds ...func(*runtime.Scheme) error) (client.Client, error) {
	known := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(kinds...)
	if err := builder.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", c.Name, err)
	}
	return client.New(c.Config(), client.Options{Scheme: known})
}

// ConfigFor issues a client certificate for the user and returns a configuration with it.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	issued, err := c.users.client(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("issuing a credential of %s: %w", c.Name, err)
	}
	return &rest.Config{
		Host: c.URL,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.CABundle,
			CertData: issued.cert,
			KeyData:  issued.key,
		},
		QPS: -1,
	}, nil
}

// Kubeconfig writes a kubeconfig with a new client certificate of the user to <user>.kubeconfig in
// the cluster's folder and returns its path. Start writes those of Options.Admin and BreakGlass.
func (c *Cluster) Kubeconfig(user string, groups ...string) (string, error) {
	cfg, err := c.ConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	path := c.kubeconfigPath(user)
	return path, WriteKubeconfig(path, cfg)
}

// kubeconfigPath returns a plain file name for a user such as "system:kube-scheduler".
func (c *Cluster) kubeconfigPath(user string) string {
	return c.path(strings.NewReplacer(":", "-", "/", "-").Replace(user) + ".kubeconfig")
}

// WriteKubeconfig writes a configuration with embedded credentials as a kubeconfig file that only
// this user can read.
func WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "default"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := writeFile(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// writeKubeconfigs writes those of the cluster's own programs and of its two administrators.
func (c *Cluster) writeKubeconfigs() error {
	users := []User{
		{Name: BreakGlass, Groups: []string{mastersGroup}},
		c.options.Admin,
		{Name: controllerUser},
		{Name: schedulerUser},
		// KWOK acts as every kubelet.
		{Name: kwokUser, Groups: []string{mastersGroup}},
	}
	for _, user := range users {
		if _, err := c.Kubeconfig(user.Name, user.Groups...); err != nil {
			return err
		}
	}
	return nil
}
