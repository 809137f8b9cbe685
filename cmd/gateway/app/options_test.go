// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := NewOptions().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateReportsEveryErrorAtOnce(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   []string
	}{
		"unknown component":       {func(o *Options) { o.Components = []string{"proxy", "x"} }, []string{"--components does not know x"}},
		"no component":            {func(o *Options) { o.Components = nil }, []string{"--components is empty"}},
		"unknown API":             {func(o *Options) { o.APIs = append(o.APIs, "y") }, []string{"--apis does not know y"}},
		"proxy without its base":  {func(o *Options) { o.APIs = []string{"gateway"} }, []string{"--apis: gateway does not work without fleet and msa"}},
		"registration on its own": {func(o *Options) { o.APIs = []string{"rancher"} }, []string{"--apis: rancher does not work without fleet"}},
		"ports":                   {func(o *Options) { o.SecurePort, o.WebhookPort = 0, 70000 }, []string{"--secure-port 0 is not a port", "--webhook-port 70000 is not a port"}},
		"one port twice":          {func(o *Options) { o.WebhookPort = o.SecurePort }, []string{"--secure-port and --webhook-port are both 8443"}},
		"addresses": {func(o *Options) { o.BindAddress, o.Metrics, o.HealthProbes = "here", "x", "0" },
			[]string{`--metrics-bind-address "x"`, `--health-probe-bind-address "0"`, `--bind-address "here"`}},
		"registration": {func(o *Options) { o.RegistrationNamespaces, o.InfiniteTokenApproval = nil, "always" },
			[]string{"--registration-namespaces is empty", "--infinite-token-approval does not know always"}},
		"registration policies": {func(o *Options) { o.RegistrationPolicy, o.SelfAssignedLabels = "closed", "drop" },
			[]string{"--registration-policy does not know closed: choose from open, strict", "--self-assigned-labels does not know drop: choose from count, ignore"}},
		"a strict registration that approves by itself": {func(o *Options) { o.RegistrationPolicy, o.InfiniteTokenApproval = "strict", "auto" },
			[]string{"--infinite-token-approval=auto does not go with --registration-policy=strict"}},
		"profiles on their own": {func(o *Options) { o.APIs = []string{"clusterprofile"} }, []string{"--apis: clusterprofile does not work without fleet"}},
		"flags without install": {func(o *Options) { o.Adopt, o.ExternalName = true, "a" }, []string{"--adopt does nothing", "--external-name does nothing"}},
		"plain HTTP":            {func(o *Options) { o.HubURL = "http://hub" }, []string{`--hub-url "http://hub"`}},
		"Konnectivity": {func(o *Options) {
			o.KonnectivityAgents, o.KonnectivityFrontends, o.KonnectivityAllow = true, "8090", []string{"10.0.0.1"}
			o.KonnectivityLanes = 0
		}, []string{"--konnectivity-agents does nothing without --agents-address", `--konnectivity-frontends-address "8090"`,
			`--konnectivity-allow: reading "10.0.0.1"`, "--konnectivity-lanes 0 is not between 1 and 16"}},
		"one CA for agents and frontends": {func(o *Options) {
			o.AgentsAddress, o.AgentsClientCAFile, o.KonnectivityFrontendsCA = "gateway:8091", "ca.pem", "ca.pem"
		}, []string{"--agents-client-ca-file and --konnectivity-frontends-ca-file are one file"}},
		"guard rails and certificates": {func(o *Options) { o.GuardRails, o.Certificates = "all", "x" },
			[]string{"--guard-rails does not know all: choose from off, selected, reference", "--certificates does not know x: choose from own, cert-manager, files"}},
		"certificate files without their names": {func(o *Options) { o.Certificates, o.CertFile = "files", "tls.crt" }, []string{"--certificates=files goes with"}},
		"names without certificate files":       {func(o *Options) { o.CertFile, o.KeyFile, o.CAFile = "a", "b", "c" }, []string{"--certificates=files goes with"}},
		"an audit policy without a log":         {func(o *Options) { o.AuditPolicyFile = "policy.yaml" }, []string{"--audit-policy-file goes with --audit-log-path"}},
		"endpoint names": {func(o *Options) {
			o.EndpointNames = []string{"https://gateway", "gateway.example.com", "*.example.com", "192.0.2.1", "::1", "a b"}
		},
			[]string{`--endpoint-names "https://gateway" is neither`, `--endpoint-names "a b" is neither`}},
		"credentials of charts": {func(o *Options) { o.HelmChartCredentials = "/nowhere/config.json" },
			[]string{"--helm-chart-credentials does nothing without --helm-chart-registries", "--helm-chart-credentials: reading the credentials of registries: open /nowhere/config.json"}},
		"registries of charts": {func(o *Options) { o.HelmChartRegistries = []string{"ghcr.io/acme", "https://ghcr.io"} },
			[]string{`--helm-chart-registries: "https://ghcr.io" is no registry`, "--helm-chart-registries does nothing without --helm-charts"}},
		"endpoint names of a file": {func(o *Options) {
			o.EndpointNames, o.Certificates, o.CertFile, o.KeyFile, o.CAFile = []string{"a"}, "files", "a", "b", "c"
		}, []string{"--endpoint-names does nothing with --certificates=files"}},
		"durations": {func(o *Options) { o.AgentTokenLifetime, o.Silence, o.ForceDeleteWait = time.Minute, 0, -1 },
			[]string{"--agent-token-lifetime 1m0s", "--cluster-unhealthy-threshold 0s", "--force-delete-wait-time -1ns"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
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
		got[name] = (&Options{Components: components}).leaseName()
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

	options := NewOptions()
	options.Kubeconfig = kubeconfig
	config, err := options.Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.HubURL != "https://inside:6443" || string(config.HubCA) != "inside" {
		t.Errorf("hub is %s with CA %q, want the kubeconfig's", config.HubURL, config.HubCA)
	}
	options.HubURL, options.HubCAFile = "https://outside", ca
	if config, err = options.Config(); err != nil {
		t.Fatal(err)
	}
	if config.HubURL != "https://outside" || string(config.HubCA) != "outside" {
		t.Errorf("hub is %s with CA %q, want the given ones", config.HubURL, config.HubCA)
	}
	options.HubCAFile = filepath.Join(dir, "missing")
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
		if diff := cmp.Diff(tt.want, (&Options{RegistrationNamespaces: tt.given}).registrationNamespaces()); diff != "" {
			t.Errorf("namespaces of %v (-want +got):\n%s", tt.given, diff)
		}
	}
}
