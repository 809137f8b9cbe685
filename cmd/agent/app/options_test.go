// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestValidateReportsEveryErrorAtOnce(t *testing.T) {
	external := func(change func(*Options)) func(*Options) {
		return func(o *Options) {
			o.MemberName, o.HubURL, o.HubTokenFile = "edge", "https://hub", "/config/token"
			change(o)
		}
	}
	tests := map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults":              {func(*Options) {}, nil},
		"an identity that is given": {external(func(*Options) {}), nil},
		"a kubeconfig of the hub":   {func(o *Options) { o.MemberName, o.HubKubeconfig = "edge", "hub.kubeconfig" }, nil},
		"two bootstraps":            {func(o *Options) { o.BootstrapFile, o.BootstrapKubeconfig = "a", "b" }, []string{"--bootstrap-kubeconfig"}},
		"a hub without a member":    {func(o *Options) { o.HubURL = "https://hub" }, []string{"--member-name"}},
		"a member without a hub":    {func(o *Options) { o.MemberName = "edge" }, []string{"either --hub-url or --hub-kubeconfig"}},
		"two ways to the hub":       {external(func(o *Options) { o.HubKubeconfig = "x" }), []string{"either --hub-url or --hub-kubeconfig"}},
		"no token":                  {external(func(o *Options) { o.HubTokenFile = "" }), []string{"--hub-token-file"}},
		"plain HTTP and a name too long": {external(func(o *Options) { o.HubURL, o.MemberName = "http://hub", strings.Repeat("x", 51) }),
			[]string{"--hub-url", "--member-name"}},
		"names that are none": {func(o *Options) { o.HubName, o.Namespace, o.AccountNamespace = "A", "B", "C" },
			[]string{`--hub-name "A"`, `--namespace "B"`, `--account-namespace "C"`}},
		"the longest name of a hub":        {func(o *Options) { o.HubName = strings.Repeat("x", 16) }, nil},
		"a name of a hub that is too long": {func(o *Options) { o.HubName = strings.Repeat("x", 17) }, []string{"more than 16"}},
		"ManifestWorks and nothing else":   {external(func(o *Options) { o.Components, o.MemberName = []string{"works"}, strings.Repeat("x", 63) }), nil},
		"ManifestWorks of nobody":          {func(o *Options) { o.Components = []string{"works"} }, []string{"--components=works needs --member-name"}},
		"another component, a bad ID and a negative grace": {func(o *Options) { o.Components, o.AgentID, o.EvictionGrace = []string{"tunnel"}, "a b", -1 },
			[]string{"--components", "--agent-id", "--eviction-grace"}},
		"an executor that does something else": {func(o *Options) { o.Executor = "ask" }, []string{"--executor \"ask\" is neither review nor impersonate"}},
		"a certificate for a given identity":   {external(func(o *Options) { o.HubCertificate = true }), []string{"--hub-certificate needs an agent that registers"}},
		"registering with a given identity":    {external(func(o *Options) { o.BootstrapFile = "values.yaml" }), []string{"does not register"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			tt.change(options)
			err := options.Validate()
			if (err != nil) != (len(tt.want) > 0) {
				t.Fatalf("got %v, want problems with %v", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no error says %q:\n%v", part, err)
				}
			}
		})
	}
}

// The first hub's names are those that every document has.
func TestNamespacesOfAHub(t *testing.T) {
	member := writeKubeconfig(t)
	tests := map[string]struct {
		change                func(*Options)
		namespace, ofAccounts string
	}{
		"the only hub":    {func(*Options) {}, "fleet-system", "open-cluster-management-managed-serviceaccount"},
		"one with a name": {func(o *Options) { o.HubName = strings.Repeat("x", 16) }, "fleet-system-xxxxxxxxxxxxxxxx", "open-cluster-management-managed-serviceaccount-xxxxxxxxxxxxxxxx"},
		"others that are given": {func(o *Options) { o.HubName, o.Namespace, o.AccountNamespace = "two", "agents", "accounts" },
			"agents", "accounts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			options.MemberKubeconfig = member
			tt.change(options)
			config, err := options.Config()
			if err != nil {
				t.Fatal(err)
			}
			if config.Namespace != tt.namespace || config.AccountNamespace != tt.ofAccounts {
				t.Errorf("got %s and %s, want %s and %s", config.Namespace, config.AccountNamespace, tt.namespace, tt.ofAccounts)
			}
			if problems := validation.IsDNS1123Label(config.AccountNamespace); len(problems) > 0 {
				t.Errorf("%s is no namespace: %v", config.AccountNamespace, problems)
			}
		})
	}
}

func writeKubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "member.kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: "https://member.test"}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member"}
	config.CurrentContext = "member"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABootstrapFileThatIsNotThereIsNamedAndDoesNotStopAnAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.yaml")
	o := &Options{BootstrapFile: path}
	got, missing, err := o.loadBootstrap()
	if got != nil || missing != "--bootstrap-file "+path+" does not exist" || err != nil {
		t.Errorf("got %v, %q, %v", got, missing, err)
	}
}

func TestAnAgentsIDStaysWhereverTheHubIs(t *testing.T) {
	member := writeKubeconfig(t)
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"the only hub":                   {func(*Options) {}, "fleet-system"},
		"another hub":                    {func(o *Options) { o.HubName = "east" }, "fleet-system-east"},
		"one that was given":             {func(o *Options) { o.AgentID = "klusterlet" }, "klusterlet"},
		"one that applies and no more":   {func(o *Options) { o.Components = []string{componentWorks} }, ""},
		"one that does so and was given": {func(o *Options) { o.Components, o.AgentID = []string{componentWorks}, "klusterlet" }, "klusterlet"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.MemberKubeconfig = member
			tc.change(o)
			config, err := o.Config()
			if err != nil {
				t.Fatal(err)
			}
			if config.AgentID != tc.want {
				t.Errorf("it is %q, want %q", config.AgentID, tc.want)
			}
		})
	}
}
