// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"

	"fleetgate.io/fleetgate/test/support/bomb"
)

// secret stands for every credential in the tests: no error may repeat it.
const secret = "s3cr3t"

// pair is a certificate and its key, in base64.
func pair(t testing.TB) (certificate, key string) {
	t.Helper()
	c, k, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(c), base64.StdEncoding.EncodeToString(k)
}

// document is a kubeconfig with that cluster and user, each a flow mapping.
func document(cluster, user string) string {
	return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u, namespace: clusters}}],
  clusters: [{name: k, cluster: {` + cluster + `}}], users: [{name: u, user: {` + user + `}}]}`
}

func TestParse_UsesCurrentContext(t *testing.T) {
	certificate, key := pair(t)
	ca, err := base64.StdEncoding.DecodeString(certificate)
	if err != nil {
		t.Fatal(err)
	}
	clientKey, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		document string
		want     *Access
	}{
		"a token": {
			document(`server: "https://hub:6443"`, "token: "+secret),
			&Access{Server: "https://hub:6443", Namespace: "clusters", Token: secret},
		},
		"a client certificate, behind a proxy": {
			document(`server: "https://hub/prefix", proxy-url: "http://proxy:3128", tls-server-name: inside, certificate-authority-data: `+certificate,
				"client-certificate-data: "+certificate+", client-key-data: "+key),
			&Access{
				Server: "https://hub/prefix", Namespace: "clusters", TLSServerName: "inside", CA: ca,
				ProxyURL: &url.URL{Scheme: "http", Host: "proxy:3128"}, ClientCertificate: ca, ClientKey: clientKey,
			},
		},
		"errors outside the current context are ignored": {
			strings.Replace(document(`server: "https://hub"`, "token: "+secret), "users: [", `users: [{name: other, user: {exec: {command: rm}}}, `, 1),
			&Access{Server: "https://hub", Namespace: "clusters", Token: secret},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
			if config := got.Config(); config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CertFile != "" {
				t.Errorf("the config would run or read something: %v", config)
			}
		})
	}
}

// badKubeconfigs would make a program run, read or call something, or are unusable, each with a
// part of the error.
func badKubeconfigs(t testing.TB) map[string]struct{ document, names string } {
	certificate, key := pair(t)
	good, token := `server: "https://hub"`, "token: "+secret
	return map[string]struct{ document, names string }{
		"nothing":                       {"", "current-context"},
		"no YAML":                       {"{" + secret, "not a kubeconfig"},
		"another kind of document":      {"[" + secret + "]", "not a kubeconfig"},
		"too long":                      {strings.Repeat("#", MaxLength+1), "more than"},
		"no current context":            {strings.Replace(document(good, token), "current-context: c", "current-context: x", 1), "current-context"},
		"a context without its cluster": {strings.Replace(document(good, token), "cluster: k,", "cluster: x,", 1), "cluster or a user"},
		"a context without its user":    {strings.Replace(document(good, token), "user: u,", "user: x,", 1), "cluster or a user"},
		"a bad namespace":               {strings.Replace(document(good, token), "namespace: clusters", `namespace: "../x"`, 1), "namespace"},
		"plain HTTP":                    {document(`server: "http://hub"`, token), "server"},
		"a file as server":              {document(`server: "file:///etc/passwd"`, token), "server"},
		"no server":                     {document("", token), "server"},
		"a user in the server's URL":    {document(`server: "https://me:`+secret+`@hub"`, token), "server"},
		"unverified TLS":                {document(good+", insecure-skip-tls-verify: true", token), "insecure-skip-tls-verify"},
		"a path of a CA":                {document(good+", certificate-authority: /etc/passwd", token), "certificate-authority"},
		"a CA that is none":             {document(good+", certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte(secret)), token), "certificate-authority-data"},
		"a CA that takes a minute":      {document(good+", certificate-authority-data: "+base64.StdEncoding.EncodeToString(bomb.Authority(t)), token), "8192 bits in its RSA key"},
		"a key that takes a minute":     {document(good, "client-certificate-data: "+certificate+", client-key-data: "+base64.StdEncoding.EncodeToString(bomb.Key(t))), "16384 bytes"},
		"a server name that is none":    {document(good+`, tls-server-name: "a b"`, token), "tls-server-name"},
		"a proxy of another kind":       {document(good+`, proxy-url: "socks5://me:`+secret+`@proxy"`, token), "proxy-url"},
		"a command":                     {document(good, `exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/x], interactiveMode: Never}`), "exec"},
		"a command beside a token":      {document(good, token+`, exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}`), "exec"},
		"a plug-in":                     {document(good, `auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}`), "auth-provider"},
		"a path of a token":             {document(good, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), "tokenFile"},
		"a path of a certificate":       {document(good, token+", client-certificate: /etc/ssl/x"), "client-certificate"},
		"a path of a key":               {document(good, token+", client-key: /etc/ssl/x"), "client-key"},
		"a password":                    {document(good, "username: me, password: "+secret), "password"},
		"somebody else's name":          {document(good, token+", as: system:admin"), "as"},
		"somebody else's groups":        {document(good, token+`, as-groups: ["system:masters"]`), "as"},
		"a certificate without its key": {document(good, "client-certificate-data: "+certificate), "client-key-data"},
		"a key without its certificate": {document(good, "client-key-data: "+key), "client-certificate-data"},
		"no credential":                 {document(good, ""), "neither token"},
	}
}

func TestParseRefusesWhatActs(t *testing.T) {
	if kinds := len(badKubeconfigs(t)); kinds < 20 {
		t.Errorf("%d kinds are tried, of 20 at least", kinds)
	}
	for name, tc := range badKubeconfigs(t) {
		t.Run(name, func(t *testing.T) {
			access, err := Parse([]byte(tc.document))
			if err == nil {
				t.Fatalf("taken: %+v", access)
			}
			if !strings.Contains(err.Error(), tc.names) {
				t.Errorf("error %q does not name %q", err, tc.names)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("error %q repeats a secret", err)
			}
		})
	}
}

// Whatever a kubeconfig contains, the resulting configuration reads no file, runs nothing and uses
// TLS.
func FuzzParse(f *testing.F) {
	for _, bad := range badKubeconfigs(f) {
		f.Add([]byte(bad.document))
	}
	f.Add([]byte(document(`server: "https://hub"`, "token: x")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		access, err := Parse(raw)
		if err != nil {
			return
		}
		config := access.Config()
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.Insecure ||
			config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" || config.Username != "" || config.Impersonate.UserName != "" {
			t.Errorf("the config does more than reach a server: %v", config)
		}
		if !strings.HasPrefix(strings.ToLower(access.Server), "https://") {
			t.Errorf("server %q", access.Server)
		}
	})
}
