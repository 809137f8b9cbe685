// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package execcredential

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

const memberURL = "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy"

func authority(t *testing.T, name string) []byte {
	t.Helper()
	ca, _, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestCheck_AcceptsOnlyHub(t *testing.T) {
	ours, foreign := authority(t, "hub"), authority(t, "thief")
	hub := &Hub{URLs: []string{"https://hub:6443", "https://public.example.org/hub"}, CAs: [][]byte{ours}}
	for name, test := range map[string]struct {
		to *clientauthenticationv1.Cluster
		// want is in the rejection; empty for none.
		want string
	}{
		"a member":                    {to: &clientauthenticationv1.Cluster{Server: memberURL}},
		"with the hub's CA":           {to: &clientauthenticationv1.Cluster{Server: memberURL, CertificateAuthorityData: ours}},
		"a view":                      {to: &clientauthenticationv1.Cluster{Server: "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/fleetviews/all/proxy"}},
		"by another URL, with a path": {to: &clientauthenticationv1.Cluster{Server: "https://public.example.org:443/hub/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy"}},
		"nothing is said":             {want: "provideClusterInfo"},
		"another host":                {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "hub", "thief", 1)}, want: "is not the hub"},
		"another port":                {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "6443", "6444", 1)}, want: "is not the hub"},
		"no port":                     {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, ":6443", "", 1)}, want: "is not the hub"},
		"a host with the hub's in it": {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "hub:6443", "hub.thief:6443", 1)}, want: "is not the hub"},
		"the hub as a user":           {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "hub:6443", "hub:6443@thief", 1)}, want: "more than host"},
		"not encrypted":               {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "https", "http", 1)}, want: "does not use https"},
		"another path of the hub":     {to: &clientauthenticationv1.Cluster{Server: "https://hub:6443/api/v1/namespaces/x/services/y/proxy"}, want: "not that of a member"},
		"a path that leads out":       {to: &clientauthenticationv1.Cluster{Server: memberURL + "/../../../../../../x/proxy"}, want: "is not the hub"},
		"a path with more behind":     {to: &clientauthenticationv1.Cluster{Server: memberURL + "/x/proxy"}, want: "not that of a member"},
		"a path that hides a slash":   {to: &clientauthenticationv1.Cluster{Server: strings.Replace(memberURL, "m1/proxy", "..%2F..%2Fx/more", 1)}, want: "not that of a member"},
		"a query":                     {to: &clientauthenticationv1.Cluster{Server: memberURL + "?x=y"}, want: "more than host"},
		"a CA of somebody":            {to: &clientauthenticationv1.Cluster{Server: memberURL, CertificateAuthorityData: foreign}, want: "not the hub's CA"},
		"both CAs":                    {to: &clientauthenticationv1.Cluster{Server: memberURL, CertificateAuthorityData: append(append([]byte{}, ours...), foreign...)}, want: "not the hub's CA"},
		"a CA that is none":           {to: &clientauthenticationv1.Cluster{Server: memberURL, CertificateAuthorityData: []byte("x")}, want: "contains no certificate"},
		"nobody is verified":          {to: &clientauthenticationv1.Cluster{Server: memberURL, InsecureSkipTLSVerify: true}, want: "insecure-skip-tls-verify"},
		"by a proxy of somebody":      {to: &clientauthenticationv1.Cluster{Server: memberURL, ProxyURL: "http://thief"}, want: "proxy-url"},
		"verified as somebody else":   {to: &clientauthenticationv1.Cluster{Server: memberURL, TLSServerName: "thief"}, want: "tls-server-name"},
		"what is no URL":              {to: &clientauthenticationv1.Cluster{Server: "https://hub:port/"}, want: "is not a valid URL"},
	} {
		t.Run(name, func(t *testing.T) {
			err := hub.Check(test.to)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func info(t *testing.T, server string) []byte {
	t.Helper()
	text, err := json.Marshal(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: kind},
		Spec:     clientauthenticationv1.ExecCredentialSpec{Cluster: &clientauthenticationv1.Cluster{Server: server}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRespond_CallersCredential(t *testing.T) {
	hub := &Hub{URLs: []string{"https://hub:6443"}}
	ends := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	token := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, ends.Unix())) + ".x"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(t.TempDir(), "login")
	script := "#!/bin/sh\necho '{\"status\":{\"token\":\"from-'$1'\"}}'\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		own   *rest.Config
		token string
		ends  *metav1.Time
	}{
		"a token with an end": {&rest.Config{BearerToken: token}, token, &metav1.Time{Time: ends.Add(-expiryMargin)}},
		"a token without":     {&rest.Config{BearerToken: "opaque"}, "opaque", nil},
		"a file":              {&rest.Config{BearerToken: "stale", BearerTokenFile: file}, "from-a-file", nil},
		"a command":           {&rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: plugin, Args: []string{"login"}, APIVersion: clientauthenticationv1.SchemeGroupVersion.String()}}, "from-login", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Respond(t.Context(), info(t, memberURL), hub, test.own)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Token != test.token || !got.Status.ExpirationTimestamp.Equal(test.ends) {
				t.Errorf("got %+v", got.Status)
			}
		})
	}
}

func TestRespond_ErrorsNameRemedy(t *testing.T) {
	hub := &Hub{URLs: []string{"https://hub:6443"}}
	own := &rest.Config{BearerToken: "secret-token"}
	for want, text := range map[string][]byte{
		"KUBERNETES_EXEC_INFO is not set": nil,
		"is not a valid ExecCredential":   []byte("{"),
		"set apiVersion to":               []byte(`{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}`),
		"is not the hub":                  info(t, strings.Replace(memberURL, "hub", "thief", 1)),
	} {
		if got, err := Respond(t.Context(), text, hub, own); err == nil || got != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, %v, want %q", got, err, want)
		}
	}
	if _, err := Respond(t.Context(), info(t, memberURL), hub, &rest.Config{}); err == nil || !strings.Contains(err.Error(), "has no token, client certificate or exec plugin") {
		t.Errorf("got %v", err)
	}
}

func TestRespond_RejectsImpersonation(t *testing.T) {
	hub := &Hub{URLs: []string{"https://hub:6443"}}
	for name, as := range map[string]rest.ImpersonationConfig{
		"user": {UserName: "reader"}, "uid": {UID: "1"}, "groups": {Groups: []string{"readers"}}, "extra": {Extra: map[string][]string{"scope": {"read"}}},
	} {
		own := &rest.Config{BearerToken: "secret-token", Impersonate: as}
		if got, err := Respond(t.Context(), info(t, memberURL), hub, own); err == nil || got != nil || !strings.Contains(err.Error(), "use a context without") {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
