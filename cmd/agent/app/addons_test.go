// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestServerOf_InheritsCAAndProxy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy, err := url.Parse("http://user:password@proxy:3128")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		hub  rest.Config
		want clientcmdapi.Cluster
	}{
		"a CA and a proxy": {
			rest.Config{Host: "https://hub:6443", BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}, Proxy: http.ProxyURL(proxy)},
			clientcmdapi.Cluster{Server: "https://hub:6443", CertificateAuthorityData: []byte("ca"), ProxyURL: proxy.String()},
		},
		"a CA in a file": {
			rest.Config{Host: "https://hub:6443", TLSClientConfig: rest.TLSClientConfig{CAFile: file}},
			clientcmdapi.Cluster{Server: "https://hub:6443", CertificateAuthorityData: []byte("from a file")},
		},
		"a public CA": {rest.Config{Host: "https://hub"}, clientcmdapi.Cluster{Server: "https://hub"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serverOf(&tc.hub)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
