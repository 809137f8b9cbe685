// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// MaxLength limits the size, in bytes.
const MaxLength = 512 * 1024

// Access is a kubeconfig's data for one API server. It holds credentials: never log it.
type Access struct {
	// Server is the API server's URL, with https.
	Server string
	// TLSServerName is the name in its certificate. If unset, it is the host of Server.
	TLSServerName string
	// CA are the PEM certificates that verify it. If unset, the operating system's.
	CA []byte
	// ProxyURL is the forward proxy, or nil.
	ProxyURL *url.URL
	// Namespace is that of the context. It may be empty.
	Namespace string
	// Token is the bearer token. Empty if there is a client certificate.
	Token string
	// ClientCertificate and ClientKey are PEM. Empty if there is a token.
	ClientCertificate, ClientKey []byte
}

// Config is the client configuration.
func (a *Access) Config() *rest.Config {
	config := &rest.Config{
		Host:        a.Server,
		BearerToken: a.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: a.TLSServerName, CAData: a.CA, CertData: a.ClientCertificate, KeyData: a.ClientKey,
		},
	}
	if a.ProxyURL != nil {
		config.Proxy = http.ProxyURL(a.ProxyURL)
	}
	return config
}

// Parse reads the current context of a kubeconfig. Its error names all problems.
func Parse(raw []byte) (*Access, error) {
	if len(raw) > MaxLength {
		return nil, fmt.Errorf("the kubeconfig has more than %d bytes", MaxLength)
	}
	plain, err := untrusted.ToJSON(raw, untrusted.Object)
	if err != nil {
		return nil, fmt.Errorf("it is not a kubeconfig in YAML or JSON: %w", err)
	}
	config, err := clientcmd.Load(plain)
	if err != nil {
		// The parser's own message may quote its input, including credentials.
		return nil, errors.New("it is not a kubeconfig in YAML or JSON")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || current == nil {
		return nil, errors.New("current-context names no context: set it")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("the current context names a cluster or a user that is not there")
	}
	proxy, proxyErr := ParseProxy("proxy-url", cluster.ProxyURL)
	if err := errors.Join(checkCluster(cluster), proxyErr, checkUser(user), checkNamespace(current.Namespace)); err != nil {
		return nil, err
	}
	return &Access{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, CA: cluster.CertificateAuthorityData,
		ProxyURL: proxy, Namespace: current.Namespace,
		Token: user.Token, ClientCertificate: user.ClientCertificateData, ClientKey: user.ClientKeyData,
	}, nil
}

func checkCluster(c *clientcmdapi.Cluster) error {
	var errs []error
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		errs = append(errs, errors.New("server must be an https URL without user, query and fragment"))
	}
	if c.InsecureSkipTLSVerify {
		errs = append(errs, errors.New("insecure-skip-tls-verify must not be set: give certificate-authority-data"))
	}
	if c.CertificateAuthority != "" {
		errs = append(errs, errors.New("certificate-authority is a path, which is not read: give certificate-authority-data"))
	}
	if len(c.CertificateAuthorityData) > 0 {
		if _, err := untrusted.Certificates(c.CertificateAuthorityData); err != nil {
			errs = append(errs, fmt.Errorf("certificate-authority-data must be certificates in PEM form: %w", err))
		}
	}
	if c.TLSServerName != "" && len(validation.IsDNS1123Subdomain(c.TLSServerName)) > 0 {
		errs = append(errs, errors.New("tls-server-name must be a DNS name"))
	}
	return errors.Join(errs...)
}

// ParseProxy accepts proxies that forward without inspection, and returns nil for an empty text.
// Its error names the field and does not quote the URL, which may hold a password.
func ParseProxy(field, text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Scheme != "http" && proxy.Scheme != "https" || proxy.Hostname() == "" {
		return nil, fmt.Errorf("%s must be an http or https URL", field)
	}
	return proxy, nil
}

func checkUser(u *clientcmdapi.AuthInfo) error {
	var errs []error
	refuse := func(given bool, sentence string) {
		if given {
			errs = append(errs, errors.New(sentence))
		}
	}
	refuse(u.Exec != nil, "exec is a command, which is not run: give a token or a client certificate")
	refuse(u.AuthProvider != nil, "auth-provider is a plug-in, which is not run: give a token or a client certificate")
	refuse(u.TokenFile != "", "tokenFile is a path, which is not read: give token")
	refuse(u.ClientCertificate != "", "client-certificate is a path, which is not read: give client-certificate-data")
	refuse(u.ClientKey != "", "client-key is a path, which is not read: give client-key-data")
	refuse(u.Username != "" || u.Password != "", "API servers do not accept username and password: use a token or a client certificate")
	refuse(u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0,
		"impersonation (as, as-groups and others) must not be set: use the credential of the user itself")
	certificate := len(u.ClientCertificateData) > 0 || len(u.ClientKeyData) > 0
	if certificate {
		if err := untrusted.CheckKeyPair(u.ClientCertificateData, u.ClientKeyData); err != nil {
			errs = append(errs, fmt.Errorf("client-certificate-data and client-key-data must be a certificate and its key in PEM form: %w", err))
		}
	}
	refuse(len(errs) == 0 && u.Token == "" && !certificate, "the user has neither token nor client-certificate-data")
	return errors.Join(errs...)
}

func checkNamespace(namespace string) error {
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return errors.New("the context's namespace is not the name of a namespace")
	}
	return nil
}
