// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		"unknown component":       {func(o *Options) { o.Parts.Components = []string{"proxy", "x"} }, []string{"--components has the unknown value x"}},
		"no component":            {func(o *Options) { o.Parts.Components = nil }, []string{"--components is empty"}},
		"unknown API":             {func(o *Options) { o.Parts.APIs = append(o.Parts.APIs, "y") }, []string{"--apis has the unknown value y"}},
		"proxy without its base":  {func(o *Options) { o.Parts.APIs = []string{"gateway"} }, []string{"--apis: gateway needs fleet and msa"}},
		"unknown part of OCM":     {func(o *Options) { o.Parts.OCM = []string{"x"} }, []string{"--ocm has the unknown value x: choose from works, placement, registration"}},
		"no room for manifests":   {func(o *Options) { o.Placement.ManifestLimit = 0 }, []string{"--manifest-limit 0 leaves no room"}},
		"registration on its own": {func(o *Options) { o.Parts.APIs = []string{"rancher"} }, []string{"--apis: rancher needs fleet"}},
		"ports":                   {func(o *Options) { o.Serving.SecurePort, o.Serving.WebhookPort = 0, 70000 }, []string{"--secure-port 0 is not a port", "--webhook-port 70000 is not a port"}},
		"one port twice":          {func(o *Options) { o.Serving.WebhookPort = o.Serving.SecurePort }, []string{"--secure-port and --webhook-port are both 8443"}},
		"addresses": {func(o *Options) { o.Serving.BindAddress, o.Process.Metrics, o.Process.HealthProbes = "here", "x", "0" },
			[]string{`--metrics-bind-address "x"`, `--health-probe-bind-address "0"`, `--bind-address "here"`}},
		"profiles for everybody": {func(o *Options) { o.Process.Profiles = ":6060" }, []string{`--pprof-bind-address ":6060" is not a loopback address`}},
		"profiles somewhere":     {func(o *Options) { o.Process.Profiles = "6060" }, []string{`--pprof-bind-address "6060" is not host:port`}},
		"registration": {func(o *Options) { o.Registration.Namespaces, o.Registration.InfiniteTokenApproval = nil, "always" },
			[]string{"--registration-namespaces is empty", "--infinite-token-approval has the unknown value always"}},
		"registration policies": {func(o *Options) { o.Registration.Policy, o.Registration.SelfAssignedLabels = "closed", "drop" },
			[]string{"--registration-policy has the unknown value closed: choose from open, strict", "--self-assigned-labels has the unknown value drop: choose from count, ignore"}},
		"a strict registration that approves by itself": {func(o *Options) { o.Registration.Policy, o.Registration.InfiniteTokenApproval = "strict", "auto" },
			[]string{"--infinite-token-approval=auto conflicts with --registration-policy=strict"}},
		"profiles on their own":             {func(o *Options) { o.Parts.APIs = []string{"clusterprofile"} }, []string{"--apis: clusterprofile needs fleet"}},
		"an external name that none can be": {func(o *Options) { o.Install.Enabled, o.Install.ExternalName = true, "::1" }, []string{"--external-name \"::1\": an ExternalName Service cannot have an IPv6 address"}},
		"flags without install":             {func(o *Options) { o.Install.Adopt, o.Install.ExternalName = true, "a" }, []string{"--adopt has no effect", "--external-name has no effect"}},
		"plain HTTP":                        {func(o *Options) { o.Hub.URL = "http://hub" }, []string{`--hub-url "http://hub"`}},
		"Konnectivity": {func(o *Options) {
			o.Tunnels.Konnectivity.Agents, o.Tunnels.Konnectivity.Frontends, o.Tunnels.Konnectivity.Allow = true, "8090", []string{"10.0.0.1"}
			o.Tunnels.Konnectivity.Streams, o.Tunnels.Konnectivity.APIServer = 0, "kubernetes"
		}, []string{"--konnectivity-agents has no effect without --agents-address", `--konnectivity-frontends-address "8090"`,
			`--konnectivity-allow: reading "10.0.0.1"`, "--konnectivity-streams 0 is not between 1 and 16",
			`--konnectivity-apiserver "kubernetes" is not host:port`}},
		"one CA for agents and frontends": {func(o *Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.AgentsClientCAFile, o.Tunnels.Konnectivity.FrontendsCA = "gateway:8091", "ca.pem", "ca.pem"
		}, []string{"--agents-client-ca-file and --konnectivity-frontends-ca-file are the same file"}},
		"guard rails and certificates": {func(o *Options) { o.Install.GuardRails, o.Serving.Certificates = "all", "x" },
			[]string{"--guard-rails has the unknown value all: choose from off, selected, reference", "--certificates has the unknown value x: choose from own, cert-manager, files"}},
		"certificate files without their names": {func(o *Options) { o.Serving.Certificates, o.Serving.CertFile = "files", "tls.crt" }, []string{"--certificates=files and the flags"}},
		"names without certificate files":       {func(o *Options) { o.Serving.CertFile, o.Serving.KeyFile, o.Serving.CAFile = "a", "b", "c" }, []string{"--certificates=files and the flags"}},
		"an audit policy without a log":         {func(o *Options) { o.Proxy.AuditPolicyFile = "policy.yaml" }, []string{"--audit-policy-file and --audit-log-path need each other"}},
		"endpoint names": {func(o *Options) {
			o.Serving.EndpointNames = []string{"https://gateway", "gateway.example.com", "*.example.com", "192.0.2.1", "::1", "a b"}
		},
			[]string{`--endpoint-names "https://gateway" is neither`, `--endpoint-names "a b" is neither`}},
		"credentials of charts": {func(o *Options) { o.Placement.HelmChartCredentials = "/nowhere/config.json" },
			[]string{"--helm-chart-credentials has no effect without --helm-chart-registries", "--helm-chart-credentials: reading the credentials of registries: open /nowhere/config.json"}},
		"registries of charts": {func(o *Options) { o.Placement.HelmChartRegistries = []string{"ghcr.io/acme", "https://ghcr.io"} },
			[]string{`--helm-chart-registries: "https://ghcr.io" is no registry`, "--helm-chart-registries has no effect without --helm-charts"}},
		"endpoint names of a file": {func(o *Options) {
			o.Serving.EndpointNames, o.Serving.Certificates, o.Serving.CertFile, o.Serving.KeyFile, o.Serving.CAFile = []string{"a"}, "files", "a", "b", "c"
		}, []string{"--endpoint-names has no effect with --certificates=files"}},
		"durations": {func(o *Options) {
			o.Members.AgentTokenLifetime, o.Members.Silence, o.Members.ForceDeleteWait = time.Minute, 0, -1
		},
			[]string{"--agent-token-lifetime 1m0s", "--cluster-unhealthy-threshold 0s", "--force-delete-wait-time -1ns"}},
		"intervals of snapshots": {func(o *Options) { o.Placement.SnapshotInterval, o.Placement.CollectionDuration = -1, -time.Second },
			[]string{"--resource-snapshot-creation-minimum-interval -1ns is negative", "--resource-changes-collection-duration -1s is negative"}},
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

func TestGatewaysWithOtherComponentsHaveAnotherLeader(t *testing.T) {
	got := map[string]string{}
	for name, components := range map[string][]string{
		"all":       {"webhook", "controllers", "proxy"},
		"one":       {"controllers"},
		"two":       {"webhook", "proxy"},
		"two again": {"proxy", "webhook"},
	} {
		got[name] = (&Parts{Components: components}).LeaseName()
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
		if diff := cmp.Diff(tt.want, (&Registration{Namespaces: tt.given}).Chosen()); diff != "" {
			t.Errorf("namespaces of %v (-want +got):\n%s", tt.given, diff)
		}
	}
}

func TestAPartOfOCMIsServedIfItsFamilyIs(t *testing.T) {
	parts := newParts()
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
