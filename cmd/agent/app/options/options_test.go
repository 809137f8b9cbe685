// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

func TestValidateReportsEveryErrorAtOnce(t *testing.T) {
	external := func(change func(*Options)) func(*Options) {
		return func(o *Options) {
			o.Hub.MemberName, o.Hub.URL, o.Hub.TokenFile = "edge", "https://hub", "/config/token"
			change(o)
		}
	}
	tests := map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults":              {func(*Options) {}, nil},
		"an identity that is given": {external(func(*Options) {}), nil},
		"a kubeconfig of the hub":   {func(o *Options) { o.Hub.MemberName, o.Hub.Kubeconfig = "edge", "hub.kubeconfig" }, nil},
		"two bootstraps":            {func(o *Options) { o.Registration.BootstrapFile, o.Registration.BootstrapKubeconfig = "a", "b" }, []string{"registration.bootstrapKubeconfig (--bootstrap-kubeconfig): Forbidden"}},
		"a hub without a member":    {func(o *Options) { o.Hub.URL = "https://hub" }, []string{"hub: Forbidden: has no effect without hub.memberName (--member-name)"}},
		"a member without a hub":    {func(o *Options) { o.Hub.MemberName = "edge" }, []string{"either url (--hub-url) or kubeconfig (--hub-kubeconfig)"}},
		"two ways to the hub":       {external(func(o *Options) { o.Hub.Kubeconfig = "x" }), []string{"either url (--hub-url) or kubeconfig (--hub-kubeconfig)"}},
		"no token":                  {external(func(o *Options) { o.Hub.TokenFile = "" }), []string{"hub.tokenFile (--hub-token-file): Required value"}},
		"plain HTTP and a name too long": {external(func(o *Options) { o.Hub.URL, o.Hub.MemberName = "http://hub", strings.Repeat("x", 51) }),
			[]string{"hub.url (--hub-url): Invalid value", "hub.memberName (--member-name): Invalid value"}},
		"names that are none": {func(o *Options) { o.Hub.Name, o.Member.Namespace, o.Accounts.Namespace = "A", "B", "C" },
			[]string{`hub.name (--hub-name): Invalid value: "A"`, `member.namespace (--namespace): Invalid value: "B"`, `accounts.namespace (--account-namespace): Invalid value: "C"`}},
		"the longest name of a hub":        {func(o *Options) { o.Hub.Name = strings.Repeat("x", 16) }, nil},
		"a name of a hub that is too long": {func(o *Options) { o.Hub.Name = strings.Repeat("x", 17) }, []string{"hub.name (--hub-name): Too long"}},
		"ManifestWorks and nothing else":   {external(func(o *Options) { o.Member.Components, o.Hub.MemberName = []string{"works"}, strings.Repeat("x", 63) }), nil},
		"ManifestWorks of nobody":          {func(o *Options) { o.Member.Components = []string{"works"} }, []string{"member.components (--components): Forbidden: has no effect without hub.memberName (--member-name)"}},
		"another component, a bad ID and a negative grace": {func(o *Options) {
			o.Member.Components, o.Works.AgentID, o.Works.EvictionGracePeriod.Duration = []string{"tunnel"}, "a b", -1
		},
			[]string{"member.components (--components): Invalid value", "works.agentID (--agent-id): Invalid value", "works.evictionGracePeriod: Invalid value"}},
		"an executor that does something else": {func(o *Options) { o.Works.Executor = "ask" }, []string{`works.executor: Unsupported value: "ask": supported values: "review", "impersonate"`}},
		"a certificate for a given identity":   {external(func(o *Options) { o.Registration.HubCertificate = true }), []string{"registration.hubCertificate: Forbidden: needs an agent that registers"}},
		"labels":                               {func(o *Options) { o.Registration.Labels = map[string]string{"a": "b c"} }, []string{"registration.labels[a]: Invalid value"}},
		"Konnectivity without a server": {func(o *Options) {
			o.Tunnel.Protocol, o.Tunnel.CertFile, o.Tunnel.Allow = "konnectivity", "a", []string{"10.0.0.1"}
		},
			[]string{"tunnel.server: Invalid value", "tunnel.certFile: Forbidden: set both or neither", "tunnel.allow: Invalid value"}},
		"data connections of Konnectivity": {func(o *Options) {
			o.Tunnel.Protocol, o.Tunnel.Server, o.Tunnel.DataConnections = "konnectivity", "gateway:8091", true
		}, []string{"tunnel.dataConnections: Forbidden: has no effect without protocol native"}},
		"a server of the native tunnel": {func(o *Options) { o.Tunnel.Server = "a:1" }, []string{"tunnel: Forbidden: has no effect without protocol konnectivity"}},
		"another protocol":              {func(o *Options) { o.Tunnel.Protocol = "x" }, []string{`tunnel.protocol: Unsupported value: "x"`}},
		"addresses": {func(o *Options) { o.Process.MetricsBindAddress, o.Process.HealthProbeBindAddress = "x", "0" },
			[]string{"process.metricsBindAddress (--metrics-bind-address)", "process.healthProbeBindAddress (--health-probe-bind-address)"}},
		"a wait that is too short":          {func(o *Options) { o.Works.RemovalWait.Duration, o.Works.NamespacedApplier = 0, "A" }, []string{"works.removalWait", "works.namespacedApplier"}},
		"registering with a given identity": {external(func(o *Options) { o.Registration.BootstrapFile = "values.yaml" }), []string{"does not register"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := New()
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

func TestLoad_FlagsOverrideTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(`{apiVersion: config.fleetgate.io/v1alpha1, kind: AgentConfiguration, hub: {name: east},
  registration: {labels: {env: lab}, clientID: file}, works: {removalWait: 1m}, tunnel: {protocol: native}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlags(flags)
	recorder := configfile.Record(flags)
	if err := flags.Parse([]string{"--client-id=flag", "--components=works"}); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path, recorder)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Hub.Name, want.Registration.ClientID, want.Registration.Labels = "east", "flag", map[string]string{"env": "lab"}
	want.Works.RemovalWait.Duration, want.Member.Components = time.Minute, []string{"works"}
	if diff := cmp.Diff(*want, got.AgentConfiguration); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every flag but --config and --member-kubeconfig overrides a field, and there are few.
func TestFlags_OverrideFields(t *testing.T) {
	const most = 20
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlags(flags)
	fields, count := configfile.Fields(Defaults()), 0
	flags.VisitAll(func(f *pflag.Flag) {
		count++
		if path := configfile.FieldOf(f); f.Name != "config" && f.Name != "member-kubeconfig" && !slices.Contains(fields, path) {
			t.Errorf("--%s overrides %q, which is no field", f.Name, path)
		}
	})
	if count > most {
		t.Errorf("the agent has %d flags, more than %d: make the new one a field only", count, most)
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
		"one with a name": {func(o *Options) { o.Hub.Name = strings.Repeat("x", 16) }, "fleet-system-xxxxxxxxxxxxxxxx", "open-cluster-management-managed-serviceaccount-xxxxxxxxxxxxxxxx"},
		"others that are given": {func(o *Options) { o.Hub.Name, o.Member.Namespace, o.Accounts.Namespace = "two", "agents", "accounts" },
			"agents", "accounts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := New()
			options.MemberKubeconfig = member
			tt.change(options)
			config, err := options.Config()
			if err != nil {
				t.Fatal(err)
			}
			if config.Member.Namespace != tt.namespace || config.Accounts.Namespace != tt.ofAccounts {
				t.Errorf("got %s and %s, want %s and %s", config.Member.Namespace, config.Accounts.Namespace, tt.namespace, tt.ofAccounts)
			}
			if problems := validation.IsDNS1123Label(config.Accounts.Namespace); len(problems) > 0 {
				t.Errorf("%s is no namespace: %v", config.Accounts.Namespace, problems)
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
	o := New()
	o.Registration.BootstrapFile = path
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
		"another hub":                    {func(o *Options) { o.Hub.Name = "east" }, "fleet-system-east"},
		"one that was given":             {func(o *Options) { o.Works.AgentID = "klusterlet" }, "klusterlet"},
		"one that applies and no more":   {func(o *Options) { o.Member.Components = []string{componentWorks} }, ""},
		"one that does so and was given": {func(o *Options) { o.Member.Components, o.Works.AgentID = []string{componentWorks}, "klusterlet" }, "klusterlet"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			o.MemberKubeconfig = member
			tc.change(o)
			config, err := o.Config()
			if err != nil {
				t.Fatal(err)
			}
			if config.Works.AgentID != tc.want {
				t.Errorf("it is %q, want %q", config.Works.AgentID, tc.want)
			}
		})
	}
}
