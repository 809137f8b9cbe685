// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
)

// own is a kubeconfig of somebody who uses a plugin, behind a forward proxy.
const own = `
apiVersion: v1
kind: Config
current-context: hub
clusters:
- name: hub
  cluster: {server: "https://hub:6443/", certificate-authority: ca.crt, proxy-url: "http://proxy:3128"}
- name: elsewhere
  cluster: {server: "https://elsewhere"}
- name: a-member
  cluster: {server: "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy"}
contexts:
- {name: hub, context: {cluster: hub, user: jane, namespace: shop}}
- {name: elsewhere, context: {cluster: elsewhere, user: joe}}
- {name: a-member, context: {cluster: a-member, user: jane}}
- {name: broken, context: {cluster: nothing, user: jane}}
users:
- name: jane
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [hub], interactiveMode: IfAvailable}
- name: joe
  user: {token: secret-of-joe}
`

func writeOwn(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func runKubeconfig(t *testing.T, member string, o kubeconfigOptions) (*clientcmdapi.Config, error) {
	t.Helper()
	var out bytes.Buffer
	to, err := o.target([]string{member})
	if err != nil {
		return nil, err
	}
	if err := o.run(to, &out, &out); err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return config, nil
}

func TestKubeconfigOfAMemberIsOnesOwnWithAnotherServer(t *testing.T) {
	path := writeOwn(t)
	got, err := runKubeconfig(t, "m1", kubeconfigOptions{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	want := clientcmdapi.NewConfig()
	want.CurrentContext = "hub-m1"
	want.Clusters["hub-m1"] = &clientcmdapi.Cluster{
		Server:               "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy",
		CertificateAuthority: filepath.Join(filepath.Dir(path), "ca.crt"), ProxyURL: "http://proxy:3128",
		Extensions: got.Clusters["hub-m1"].Extensions,
	}
	want.Contexts["hub-m1"] = &clientcmdapi.Context{Cluster: "hub-m1", AuthInfo: "jane", Namespace: "shop", Extensions: got.Contexts["hub-m1"].Extensions}
	want.AuthInfos["jane"] = got.AuthInfos["jane"]
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(clientcmdapi.ExecConfig{})); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
	if exec := got.AuthInfos["jane"].Exec; exec == nil || exec.Command != "login" || exec.Args[0] != "hub" {
		t.Errorf("the plugin is lost: %+v", got.AuthInfos["jane"])
	}
}

func TestKubeconfigForTheGatewaysOwnEndpoint(t *testing.T) {
	path := writeOwn(t)
	ca := filepath.Join(t.TempDir(), "gateway.crt")
	if err := os.WriteFile(ca, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := runKubeconfig(t, "m1", kubeconfigOptions{Kubeconfig: path, Endpoint: "https://gateway:8443/", EndpointCAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	cluster := got.Clusters["hub-m1"]
	if cluster.Server != "https://gateway:8443/clusters/m1" || cluster.CertificateAuthority != "" || string(cluster.CertificateAuthorityData) != "pem" || cluster.ProxyURL == "" {
		t.Errorf("cluster is %+v", cluster)
	}
}

func TestKubeconfigForTheHostOfAMember(t *testing.T) {
	got, err := runKubeconfig(t, "m1", kubeconfigOptions{Kubeconfig: writeOwn(t), Endpoint: "https://*.members.example.org:8443/"})
	if err != nil {
		t.Fatal(err)
	}
	if server := got.Clusters["hub-m1"].Server; server != "https://m1.members.example.org:8443" {
		t.Errorf("the server is %s", server)
	}
}

func TestKubeconfigIsAddedToAFileThatKeepsWhatItHas(t *testing.T) {
	path := writeOwn(t)
	o := kubeconfigOptions{Kubeconfig: path, Into: path}
	for range 2 { // A second time changes nothing.
		if err := o.run(memberconfig.Target{Name: "m1"}, &bytes.Buffer{}, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "hub" || len(got.Contexts) != 5 || len(got.AuthInfos) != 2 || got.Clusters["hub"].CertificateAuthority != "ca.crt" {
		t.Errorf("the file has become %+v", got)
	}
	if context := got.Contexts["hub-m1"]; context == nil || context.Cluster != "hub-m1" || context.AuthInfo != "jane" {
		t.Errorf("context is %+v", context)
	}

	fresh := filepath.Join(t.TempDir(), "new")
	o.Into = fresh
	if err := o.run(memberconfig.Target{Name: "m1"}, &bytes.Buffer{}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file is %v, %v", info, err)
	}
	o.Context, o.Into = "elsewhere", path
	other := strings.Replace(own, "secret-of-joe", "another-secret", 1)
	if err := os.WriteFile(fresh, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Into = fresh
	if err := o.run(memberconfig.Target{Name: "m1"}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), `has another user "joe"`) || strings.Contains(err.Error(), "secret-of") {
		t.Errorf("got %v", err)
	}
}

func TestKubeconfigThatCannotBeMadeIsToldWithTheRemedy(t *testing.T) {
	path := writeOwn(t)
	tests := map[string]struct {
		member  string
		options kubeconfigOptions
		want    string
	}{
		"no such context":           {"m1", kubeconfigOptions{Context: "nowhere"}, "choose one with --context"},
		"a context without cluster": {"m1", kubeconfigOptions{Context: "broken"}, `cluster "nothing", which it does not have`},
		"of a member already":       {"m1", kubeconfigOptions{Context: "a-member"}, "leads to a member already"},
		"not a name":                {"m1/../m2", kubeconfigOptions{}, "is not the name of a member"},
		"a CA for nothing":          {"m1", kubeconfigOptions{EndpointCAFile: "ca"}, "has no effect without --endpoint"},
		"a host for many":           {"all", kubeconfigOptions{Fleet: true, Endpoint: "https://*.members.example.org"}, "no host of their own"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.options.Kubeconfig = path
			if _, err := runKubeconfig(t, tt.member, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestKubeconfigOfTheFleet(t *testing.T) {
	path := writeOwn(t)
	for view, want := range map[string]string{
		"all":                                 "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/fleetviews/all/proxy",
		"production":                          "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/fleetviews/production/proxy",
		"labels:stage=prod":                   "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/fleetviews/labels:stage=prod/proxy",
		"qualified:example.com:zone in (a,b)": "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/fleetviews/qualified:example.com:zone%20in%20%28a%2Cb%29/proxy",
	} {
		got, err := runKubeconfig(t, view, kubeconfigOptions{Kubeconfig: path, Fleet: true})
		if err != nil {
			t.Fatal(err)
		}
		if server := got.Clusters["hub-fleet-"+view].Server; server != want {
			t.Errorf("the server is %s, want %s", server, want)
		}
	}
	got, err := runKubeconfig(t, "all", kubeconfigOptions{Kubeconfig: path, Fleet: true, Endpoint: "https://gateway:8443"})
	if err != nil || got.Clusters["hub-fleet-all"].Server != "https://gateway:8443/fleets/all" {
		t.Errorf("got %v, %v", got, err)
	}
	if to, err := (&kubeconfigOptions{Fleet: true}).target(nil); err != nil || to.Name != "all" {
		t.Errorf("without a name it is %v, %v", to, err)
	}
	for _, bad := range []string{"labels:a=b=c", "labels:example.com/zone=a", "A view"} {
		if _, err := runKubeconfig(t, bad, kubeconfigOptions{Kubeconfig: path, Fleet: true}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := (&kubeconfigOptions{}).target(nil); err == nil {
		t.Error("nothing is taken for a member")
	}
}
