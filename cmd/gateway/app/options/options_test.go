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

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := New().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateReportsEveryErrorAtOnce(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   []string
	}{
		"unknown component":       {func(o *Options) { o.Features.Components = []string{"proxy", "x"} }, []string{`features.components[1] (--components): Unsupported value: "x"`}},
		"no component":            {func(o *Options) { o.Features.Components = nil }, []string{"features.components (--components): Required value: choose from proxy, webhook, controllers"}},
		"unknown API":             {func(o *Options) { o.Features.APIs = append(o.Features.APIs, "y") }, []string{`features.apis[6] (--apis): Unsupported value: "y"`}},
		"proxy without its base":  {func(o *Options) { o.Features.APIs = []string{"gateway"} }, []string{"gateway needs fleet and msa"}},
		"unknown part of OCM":     {func(o *Options) { o.Features.OCM = []string{"x"} }, []string{`features.ocm[0] (--ocm): Unsupported value: "x": supported values: "works", "placement", "registration", "addons"`}},
		"no room for manifests":   {func(o *Options) { o.Placement.ManifestLimit = 0 }, []string{"placement.manifestLimit: Invalid value: 0: leaves no room"}},
		"registration on its own": {func(o *Options) { o.Features.APIs = []string{"rancher"} }, []string{"rancher needs fleet"}},
		"ports": {func(o *Options) { o.Serving.SecurePort, o.Serving.WebhookPort = 0, 70000 },
			[]string{"serving.securePort (--secure-port): Invalid value: 0: must be between 1 and 65535", "serving.webhookPort (--webhook-port): Invalid value: 70000"}},
		"one port twice": {func(o *Options) { o.Serving.WebhookPort = o.Serving.SecurePort }, []string{"must differ from serving.securePort"}},
		"addresses": {func(o *Options) {
			o.Serving.BindAddress, o.Process.MetricsBindAddress, o.Process.HealthProbeBindAddress = "here", "x", "0"
		}, []string{`process.metricsBindAddress (--metrics-bind-address): Invalid value: "x"`, `process.healthProbeBindAddress (--health-probe-bind-address): Invalid value: "0"`, `serving.bindAddress (--bind-address): Invalid value: "here"`}},
		"profiles for everybody": {func(o *Options) { o.Process.PprofBindAddress = ":6060" }, []string{"must be a loopback address"}},
		"profiles somewhere":     {func(o *Options) { o.Process.PprofBindAddress = "6060" }, []string{"process.pprofBindAddress (--pprof-bind-address): Invalid value: \"6060\": must be host:port"}},
		"registration": {func(o *Options) { o.Registration.Namespaces, o.Registration.InfiniteTokenApproval = nil, "always" },
			[]string{"registration.namespaces (--registration-namespaces): Required value", `registration.infiniteTokenApproval: Unsupported value: "always"`}},
		"registration policies": {func(o *Options) { o.Registration.Policy, o.Registration.SelfAssignedLabels = "closed", "drop" },
			[]string{`registration.policy (--registration-policy): Unsupported value: "closed": supported values: "open", "strict"`, `registration.selfAssignedLabels: Unsupported value: "drop"`}},
		"a strict registration that approves by itself": {func(o *Options) { o.Registration.Policy, o.Registration.InfiniteTokenApproval = "strict", "auto" },
			[]string{"registration.infiniteTokenApproval: Forbidden: auto conflicts with registration.policy strict"}},
		"profiles on their own":             {func(o *Options) { o.Features.APIs = []string{"clusterprofile"} }, []string{"clusterprofile needs fleet"}},
		"an external name that none can be": {func(o *Options) { o.Install.Enabled, o.Install.ExternalName = true, "::1" }, []string{"an ExternalName Service cannot have an IPv6 address"}},
		"settings without install": {func(o *Options) { o.Install.Adopt, o.Install.ExternalName = true, "a" },
			[]string{"install.adopt (--adopt): Forbidden: has no effect without install.enabled (--install)", "install.externalName (--external-name): Forbidden"}},
		"groups that members do not grant": {func(o *Options) {
			o.Proxy.MemberGroups = map[string]string{"system:masters": "system:masters", "ops": ""}
		}, []string{`proxy.memberGroups[ops]: Invalid value: ""`, `proxy.memberGroups[system:masters]: Invalid value: "system:masters": members grant no system group`}},
		"plain HTTP": {func(o *Options) { o.Hub.URL = "http://hub" }, []string{`hub.url (--hub-url): Invalid value: "http://hub"`}},
		"Konnectivity": {func(o *Options) {
			k := &o.Tunnels.Konnectivity
			k.Agents, k.FrontendsAddress, k.Allow, k.Streams, k.APIServer = true, "8090", []string{"10.0.0.1"}, 0, "kubernetes"
		}, []string{"tunnels.konnectivity.agents: Forbidden: has no effect without tunnels.agentsAddress (--agents-address)", `tunnels.konnectivity.frontendsAddress: Invalid value: "8090"`,
			`reading "10.0.0.1"`, "tunnels.konnectivity.streams: Invalid value: 0: must be between 1 and 16", `tunnels.konnectivity.apiServer: Invalid value: "kubernetes"`}},
		"data connections without a port for agents": {func(o *Options) { o.Tunnels.DataConnections = true },
			[]string{"tunnels.dataConnections: Forbidden: has no effect without tunnels.agentsAddress (--agents-address)"}},
		"one CA for agents and frontends": {func(o *Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.AgentsClientCAFile, o.Tunnels.Konnectivity.FrontendsCAFile = "gateway:8091", "ca.pem", "ca.pem"
		}, []string{"must differ from tunnels.agentsClientCAFile"}},
		"guard rails and certificates": {func(o *Options) { o.Install.GuardRails, o.Serving.Certificates = "all", "x" },
			[]string{`install.guardRails: Unsupported value: "all"`, `serving.certificates: Unsupported value: "x"`}},
		"certificate files without their names": {func(o *Options) { o.Serving.Certificates, o.Serving.CertFile = "files", "tls.crt" }, []string{"files and the fields certFile, keyFile and caFile need each other"}},
		"names without certificate files":       {func(o *Options) { o.Serving.CertFile, o.Serving.KeyFile, o.Serving.CAFile = "a", "b", "c" }, []string{"files and the fields certFile, keyFile and caFile need each other"}},
		"an audit policy without a log":         {func(o *Options) { o.Proxy.AuditPolicyFile = "policy.yaml" }, []string{"set both or neither of auditPolicyFile and auditLogPath"}},
		"limits":                                {func(o *Options) { o.Proxy.MaxLongRequestsPerUser = 0 }, []string{"proxy.maxLongRequestsPerUser: Invalid value: 0: must be above zero"}},
		"endpoint names": {func(o *Options) {
			o.Serving.EndpointNames = []string{"https://gateway", "gateway.example.com", "*.example.com", "192.0.2.1", "::1", "a b"}
		}, []string{`serving.endpointNames[0]: Invalid value: "https://gateway"`, `serving.endpointNames[5]: Invalid value: "a b"`}},
		"credentials of charts": {func(o *Options) { o.Placement.HelmChartCredentialsFile = "/nowhere/config.json" },
			[]string{"placement.helmChartCredentialsFile: Forbidden: has no effect without placement.helmChartRegistries", "reading the credentials of registries: open /nowhere/config.json"}},
		"registries of charts": {func(o *Options) { o.Placement.HelmChartRegistries = []string{"ghcr.io/acme", "https://ghcr.io"} },
			[]string{`"https://ghcr.io" is no registry`, "placement.helmChartRegistries: Forbidden: has no effect without placement.helmCharts"}},
		"endpoint names of a file": {func(o *Options) {
			o.Serving.EndpointNames, o.Serving.Certificates, o.Serving.CertFile, o.Serving.KeyFile, o.Serving.CAFile = []string{"a"}, "files", "a", "b", "c"
		}, []string{"serving.endpointNames: Forbidden: has no effect with serving.certificates files"}},
		"durations": {func(o *Options) {
			o.Members.AgentTokenLifetime.Duration, o.Members.UnhealthyThreshold.Duration, o.Members.ForceDeleteWaitTime.Duration = time.Minute, 0, -1
		}, []string{`members.agentTokenLifetime: Invalid value: "1m0s"`, `members.unhealthyThreshold: Invalid value: "0s"`, `members.forceDeleteWaitTime: Invalid value: "-1ns"`}},
		"intervals of snapshots": {func(o *Options) {
			o.Placement.SnapshotMinimumInterval.Duration, o.Placement.ChangesCollectionDuration.Duration = -1, -time.Second
		}, []string{`placement.snapshotMinimumInterval: Invalid value: "-1ns"`, `placement.changesCollectionDuration: Invalid value: "-1s"`}},
		"a tenancy without sets":       {func(o *Options) { o.Placement.Tenancy = "cluster-sets" }, []string{"placement.tenancy: Forbidden: has no effect without ocm in features.apis"}},
		"decisions without profiles":   {func(o *Options) { o.Features.APIs, o.Placement.StandardDecisions = []string{"fleet"}, true }, []string{"placement.standardDecisions: Forbidden: has no effect without clusterprofile in features.apis"}},
		"filters that exclude another": {func(o *Options) { o.Placement.SkippedAPIs, o.Placement.AllowedAPIs = "apps;", "batch;" }, []string{"placement: Forbidden: skippedAPIs and allowedAPIs exclude each other"}},
		"webhooks":                     {func(o *Options) { o.Webhooks.Caller = "certificate" }, []string{"webhooks.clientCAFile: Forbidden: caller certificate and clientCAFile need each other"}},
		"klusterlets": {func(o *Options) {
			o.Klusterlets.SignerCertFile, o.Klusterlets.AutoApprovedUsers, o.Klusterlets.Labels = "a", []string{""}, map[string]string{"a": "b c"}
		}, []string{"set both or neither of signerCertFile and signerKeyFile", "klusterlets.autoApprovedUsers[0]: Required value", "klusterlets.labels[a]: Invalid value"}},
		"peers":  {func(o *Options) { o.Tunnels.Peers = []string{"here"} }, []string{"tunnels.peers (--peers): Forbidden: has no effect without tunnels.peerPort", "tunnels.peers[0] (--peers): Invalid value"}},
		"traces": {func(o *Options) { o.Process.Tracing.SamplingRatePerMillion = 5 }, []string{"process.tracing.samplingRatePerMillion: Forbidden: has no effect without an endpoint"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := New()
			tt.change(options)
			err := options.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d errors, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no error says %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestLoad_FlagsOverrideTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, path, `{apiVersion: config.fleetgate.io/v1alpha1, kind: GatewayConfiguration, registration: {namespaces: [file], policy: strict},
  serving: {securePort: 1}, members: {unhealthyThreshold: 2m}, proxy: {auditRequests: false}, features: {components: [proxy]}}`)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlags(flags)
	recorder := configfile.Record(flags)
	if err := flags.Parse([]string{"--registration-namespaces=a", "--registration-namespaces=b,c", "--secure-port=2", "--install"}); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path, recorder)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Registration.Namespaces, want.Registration.Policy = []string{"a", "b", "c"}, "strict"
	want.Serving.SecurePort, want.Install.Enabled = 2, true
	want.Members.UnhealthyThreshold.Duration, want.Proxy.AuditRequests, want.Features.Components = 2*time.Minute, false, []string{"proxy"}
	if diff := cmp.Diff(want, got.file); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every flag but --config and --kubeconfig overrides a field, and there are few.
func TestFlags_OverrideFields(t *testing.T) {
	const most = 30
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlags(flags)
	fields, count := configfile.Fields(Defaults()), 0
	flags.VisitAll(func(f *pflag.Flag) {
		count++
		if path := configfile.FieldOf(f); f.Name != "config" && f.Name != "kubeconfig" && !slices.Contains(fields, path) {
			t.Errorf("--%s overrides %q, which is no field", f.Name, path)
		}
	})
	if count > most {
		t.Errorf("the gateway has %d flags, more than %d: make the new one a field only", count, most)
	}
}

func TestGatewaysWithOtherComponentsHaveAnotherLeader(t *testing.T) {
	got := map[string]string{}
	for name, components := range map[string][]string{
		"all":       {"webhook", "controllers", "proxy"},
		"one":       {"controllers"},
		"two":       {"webhook", "proxy"},
		"two again": {"proxy", "webhook"},
	} {
		got[name] = (&Features{&configv1alpha1.FeaturesConfiguration{Components: components}}).LeaseName()
	}
	want := map[string]string{
		"all": "fleetgate-gateway", "one": "fleetgate-gateway-controllers",
		"two": "fleetgate-gateway-proxy-webhook", "two again": "fleetgate-gateway-proxy-webhook",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Leases differ (-want +got):\n%s", diff)
	}
}

func TestHubAddressComesFromTheKubeconfigUnlessGiven(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	write(t, kubeconfig, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: "https://inside:6443", certificate-authority-data: aW5zaWRl}}]}`)
	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, "outside")

	options := New()
	options.Hub.Kubeconfig = kubeconfig
	config, err := options.Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.Hub.URL != "https://inside:6443" || string(config.HubCA) != "inside" {
		t.Errorf("hub is %s with CA %q, want the kubeconfig's", config.Hub.URL, config.HubCA)
	}
	options.Hub.URL, options.Hub.CAFile = "https://outside", ca
	if config, err = options.Config(); err != nil {
		t.Fatal(err)
	}
	if config.Hub.URL != "https://outside" || string(config.HubCA) != "outside" {
		t.Errorf("hub is %s with CA %q, want the given ones", config.Hub.URL, config.HubCA)
	}
	options.Hub.CAFile = filepath.Join(dir, "missing")
	if _, err := options.Config(); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEveryNamespaceWillDoForRegistration(t *testing.T) {
	for _, tt := range []struct{ given, want []string }{
		{[]string{"clusters", "edge"}, []string{"clusters", "edge"}},
		{[]string{"clusters", "*"}, nil},
	} {
		if diff := cmp.Diff(tt.want, (&Registration{&configv1alpha1.RegistrationConfiguration{Namespaces: tt.given}}).Chosen()); diff != "" {
			t.Errorf("namespaces of %v (-want +got):\n%s", tt.given, diff)
		}
	}
}

func TestAPartOfOCMIsServedIfItsFamilyIs(t *testing.T) {
	parts := New().Features
	if parts.ServesOCM(OCMWorks) {
		t.Error("works are served though nobody asked for family ocm")
	}
	parts.APIs = []string{APIOCM}
	if !parts.ServesOCM(OCMWorks) || !parts.TakesReviews() {
		t.Error("works are not served, or not looked at, though family ocm is served")
	}
	parts.OCM = nil
	if parts.ServesOCM(OCMWorks) || parts.TakesReviews() {
		t.Error("works are served though they are not among the parts")
	}
}
