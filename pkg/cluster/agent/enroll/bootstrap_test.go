// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// caOf returns the certificate of a test server, in PEM.
func caOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestParseBootstrap(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(caOf(server)), "\n", "\n  ")
	good := "clusterNamespace: clusters\napiServerURL: https://hub:6443\ntoken: secret-token\ntokenName: t\napiServerCA: |\n" + indented + "\n"
	tests := map[string]struct {
		values string
		names  []string
	}{
		"a registration Secret's": {good, nil},
		"with a user's additions": {good + "clientID: mine\nlabels: {env: prod}\ndebug: true\n", nil},
		"an empty file names all": {"", []string{"apiServerURL", "token", "clusterNamespace"}},
		"no https":                {strings.Replace(good, "https://", "http://", 1), []string{"apiServerURL"}},
		"no host":                 {strings.Replace(good, "https://hub:6443", "https://", 1), []string{"apiServerURL"}},
		"an invalid CA":           {strings.Replace(good, "BEGIN CERTIFICATE", "BEGIN NOTHING", 1), []string{"apiServerCA"}},
		"an invalid namespace":    {strings.Replace(good, ": clusters", ": ../kube-system", 1), []string{"clusterNamespace"}},
		"no YAML":                 {"token: secret-token\n\t{", []string{"YAML"}},
		"a wrong type":            {"token: {secret-token: 1}", []string{"YAML"}},
		"too large":               {good + strings.Repeat("#", maxValuesLength), []string{"bytes"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseBootstrap([]byte(tc.values))
			if (err != nil) != (len(tc.names) > 0) {
				t.Fatalf("got %v, want problems with %v", err, tc.names)
			}
			for _, part := range tc.names {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%q shows the token", err)
			}
		})
	}
}

func TestBootstrapOf_ReadsValuesOrAKubeconfig(t *testing.T) {
	keys := map[string][]byte{
		"clusterNamespace": []byte("clusters"), "apiServerURL": []byte("https://hub:6443"), "token": []byte("x"), "tokenName": []byte("t"),
	}
	values := map[string][]byte{
		registrationv1alpha1.RegistrationValuesKey: []byte("clusterNamespace: clusters\napiServerURL: https://hub:6443\ntoken: x\ntokenName: t\n"),
	}
	want := &Bootstrap{AgentValues: registrationv1alpha1.AgentValues{
		ClusterNamespace: "clusters", APIServerURL: "https://hub:6443", Token: "x", TokenName: "t",
	}}
	for name, data := range map[string]map[string][]byte{"one key each": keys, "values.yaml": values} {
		t.Run(name, func(t *testing.T) {
			got, err := bootstrapOf(&corev1.Secret{Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("bootstrap (-want +got):\n%s", diff)
			}
		})
	}
}

// jwt returns an unsigned token with the claims of an account.
func jwt(subject string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{"sub":"`+subject+`"}`)) + ".x"
}

func TestClaimsOf_ReadsNamespaceAndNameOfARegistrationToken(t *testing.T) {
	const uid = "67cec7a4-3386-4fd5-9de2-20397e7b0029"
	tests := map[string]struct{ token, namespace, name string }{
		"a registration token": {jwt("system:serviceaccount:clusters:new-token-" + uid), "clusters", "new-token"},
		"another account's":    {jwt("system:serviceaccount:clusters:default"), "clusters", ""},
		"a user's":             {jwt("jane"), "", ""},
		"no JSON Web Token":    {"abc", "", ""},
		"invalid base64":       {"a.b!.c", "", ""},
		"empty claims":         {"e30.e30.x", "", ""},
		"invalid JSON":         {"e30." + base64.RawURLEncoding.EncodeToString([]byte("[")) + ".x", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace, token := claimsOf(tc.token)
			if namespace != tc.namespace || token != tc.name {
				t.Errorf("got %q, %q, want %q, %q", namespace, token, tc.namespace, tc.name)
			}
		})
	}

	values, err := ParseBootstrap([]byte("apiServerURL: https://hub\ntoken: " + tests["a registration token"].token))
	if err != nil {
		t.Fatalf("a token and a URL are not enough: %v", err)
	}
	if values.ClusterNamespace != "clusters" || values.TokenName != "new-token" {
		t.Errorf("got %q, %q", values.ClusterNamespace, values.TokenName)
	}
}

func TestParseBootstrapKubeconfig(t *testing.T) {
	document := func(user string) string {
		return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u, namespace: clusters}}],
  clusters: [{name: k, cluster: {server: "https://hub:6443", proxy-url: "http://proxy:3128"}}], users: [{name: u, user: {` + user + `}}]}`
	}
	got, err := ParseBootstrapKubeconfig([]byte(document("token: secret-token")))
	if err != nil {
		t.Fatal(err)
	}
	want := &Bootstrap{ProxyURL: "http://proxy:3128", AgentValues: registrationv1alpha1.AgentValues{
		ClusterNamespace: "clusters", APIServerURL: "https://hub:6443", Token: "secret-token",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bootstrap (-want +got):\n%s", diff)
	}
	if _, err := ParseBootstrapKubeconfig([]byte(document("exec: {command: rm, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"))); err == nil {
		t.Error("an exec plugin was accepted")
	}
}

func TestEnroller_NamesTheMissingBootstrapFile(t *testing.T) {
	e := New(Options{Member: fake.NewClientset(), Missing: "--bootstrap-file /etc/fleetgate/values.yaml is not there"})
	err := e.enroll(t.Context())
	if refusal.ReasonOf(err) != NeedsToken || !strings.Contains(err.Error(), "no registration token (--bootstrap-file /etc/fleetgate/values.yaml is not there): give it") {
		t.Errorf("got %v", err)
	}
}
