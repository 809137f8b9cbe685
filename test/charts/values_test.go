// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
)

// hubAccess are the minimal values of the gateway's chart.
const hubAccess = "--set=hubURL=https://hub.example.org:6443"

// certificate is a real certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "hub"}, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := certutil.EncodeCertificates(ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem)
}

// registrationValues writes the values of a ClusterRegistrationToken's Secret to a file.
func registrationValues(t *testing.T) (registrationv1alpha1.AgentValues, string) {
	t.Helper()
	values := registrationv1alpha1.AgentValues{
		ClusterNamespace: "clusters", APIServerURL: "https://hub.example.org:6443", APIServerCA: certificate(t),
		Token: "opaque", SystemRegistrationNamespace: "fleet-system", TokenName: "new-token",
		Internal: &registrationv1alpha1.InternalValues{SystemNamespace: "fleet-system"},
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return values, file
}

// bootstrapIn returns what the agent reads from the Secret of a rendered chart.
func bootstrapIn(t *testing.T, rendered string) *enroll.Bootstrap {
	t.Helper()
	for _, document := range strings.Split(rendered, "\n---\n") {
		var secret corev1.Secret
		if !strings.Contains(document, "kind: Secret\n") || !strings.Contains(document, "pre-install") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &secret); err != nil {
			t.Fatal(err)
		}
		if secret.Name != enroll.BootstrapSecret {
			t.Errorf("the Secret is %s, the agent reads %s", secret.Name, enroll.BootstrapSecret)
		}
		bootstrap, err := enroll.ParseBootstrap([]byte(secret.StringData[registrationv1alpha1.RegistrationValuesKey]))
		if err != nil {
			t.Fatalf("the agent cannot read the values: %v", err)
		}
		return bootstrap
	}
	t.Fatal("the chart makes no Secret to register with")
	return nil
}

func TestTheAgentTakesValuesAsTheHubGivesThem(t *testing.T) {
	given, file := registrationValues(t)
	rendered, err := render(t, "agent", "--values="+file, "--set=clientID=really-random", "--set-string=labels.example=true", "--set-string=labels.env=dev")
	if err != nil {
		t.Fatal(err)
	}
	given.SystemRegistrationNamespace, given.Internal = "", nil // the agent uses neither
	given.APIServerCA = strings.TrimSpace(given.APIServerCA)
	want := &enroll.Bootstrap{AgentValues: given, ClientID: "really-random", Labels: map[string]string{"example": "true", "env": "dev"}}
	if diff := cmp.Diff(want, bootstrapIn(t, rendered)); diff != "" {
		t.Errorf("the agent reads other values than were given (-want +got):\n%s", diff)
	}
}

func TestTheAgentTakesATokenAndACAFromAKubeconfig(t *testing.T) {
	ca := certificate(t)
	rendered, err := render(t, "agent", "--set=token="+token(t), "--set=apiServerURL=https://hub.example.org:6443",
		"--set=apiServerCA="+base64.StdEncoding.EncodeToString([]byte(ca)))
	if err != nil {
		t.Fatal(err)
	}
	got := bootstrapIn(t, rendered)
	if got.APIServerCA != strings.TrimSpace(ca) || got.ClusterNamespace != "clusters" {
		t.Errorf("the agent reads namespace %q and CA %q", got.ClusterNamespace, got.APIServerCA)
	}
}

// token names its namespace in its claims, like a token of an API server.
func token(t *testing.T) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"sub": "system:serviceaccount:clusters:new-token", "kubernetes.io": map[string]any{"namespace": "clusters"}})
	if err != nil {
		t.Fatal(err)
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(claims) + ".c2lnbmF0dXJl"
}

func TestGoodValuesAreTaken(t *testing.T) {
	registers := []string{"--set=token=a", "--set=apiServerURL=https://hub.example.org"}
	identity := []string{"--set=config.hubURL=https://hub.example.org", "--set=config.memberClusterName=member-1"}
	tests := map[string]struct {
		chart string
		args  []string
		want  []string // parts of the output
	}{
		"the hub's URL alone":          {"gateway", []string{hubAccess}, []string{"url: https://hub.example.org:6443", "- clusters\n", "peerPort: 8092", "agentImage: ghcr.io/fleetgate/agent:v"}},
		"an image by digest":           {"gateway", []string{hubAccess, "--set=image.digest=sha256:" + strings.Repeat("a", 64)}, []string{"image: ghcr.io/fleetgate/gateway@sha256:aaa"}},
		"a load balancer":              {"gateway", []string{hubAccess, "--set=agents.address=hub.example.org:443,agents.service.type=LoadBalancer,agents.service.port=443"}, []string{"agentsAddress: hub.example.org:443", "type: LoadBalancer", "port: 443"}},
		"cert-manager":                 {"gateway", []string{hubAccess, "--set=certificates.source=cert-manager"}, []string{"certificates: cert-manager"}},
		"certificates in files":        {"gateway", []string{hubAccess, "--set=certificates.source=files,certificates.secretName=tls"}, []string{"certFile: /etc/fleetgate/tls/tls.crt", "secretName: tls"}},
		"everything that watches":      {"gateway", []string{hubAccess, "--set=metrics.serviceMonitor.enabled=true,metrics.alerts.enabled=true,metrics.dashboard.enabled=true"}, []string{"kind: ServiceMonitor", "kind: PrometheusRule", "fleetgate.json", "kind: NetworkPolicy"}},
		"the check of member requests": {"gateway", []string{hubAccess, "--set=authorizeMemberRequests=true"}, []string{"authorizeMemberRequests: true\n"}},
		"the check of member requests, by the previous value": {"gateway", []string{hubAccess, "--set=authorizeInner=true"}, []string{"authorizeMemberRequests: true\n"}},
		"charts from a registry, and taints": {"gateway", []string{hubAccess, "--set=helmCharts.enabled=true,helmCharts.registries[0]=a.example.org/x,helmCharts.registries[1]=b.example.org,helmCharts.credentialsSecret=logins,taintUnreachable=true"},
			[]string{"helmCharts: true\n", "- a.example.org/x\n", "- b.example.org\n", "helmChartCredentialsFile: /etc/fleetgate/charts/config.json\n",
				"{name: charts, mountPath: /etc/fleetgate/charts, readOnly: true}", "secret: {secretName: logins}", "taintUnreachable: true\n"}},
		"what is not foreseen": {"gateway", []string{hubAccess, "--set=extraArgs[0]=--leader-elect,configuration.proxy.maxRequestsPerMember=5,extraEnv[0].name=A,extraEnv[0].value=b,extraVolumes[0].name=x,extraVolumeMounts[0].name=x,extraVolumeMounts[0].mountPath=/x,imagePullSecrets[0].name=pull,proxy.httpsProxy=http://proxy:3128"},
			[]string{"- \"--leader-elect\"\n", "maxRequestsPerMember: 5\n", "name: A", "mountPath: /x", "name: pull", `{name: HTTPS_PROXY, value: "http://proxy:3128"}`, "$(KUBERNETES_SERVICE_HOST)"}},
		"a collector of the gateway's traces": {"gateway", []string{hubAccess, "--set=tracing.endpoint=$(HOST_IP):4317,tracing.samplingRatePerMillion=1000000"},
			[]string{"- --tracing-endpoint=$(HOST_IP):4317\n", "samplingRatePerMillion: 1000000\n", "fieldPath: status.hostIP"}},
		"a collector of the agent's traces":         {"agent", append(registers, "--set=tracing.endpoint=localhost:4317"), []string{"- --tracing-endpoint=localhost:4317\n", "samplingRatePerMillion: 0\n"}},
		"an identity that others keep, in a Secret": {"agent", identity, []string{"memberName: member-1", "url: https://hub.example.org", "tokenFile: /config/token", "secretName: hub-kubeconfig-secret"}},
		"an identity of a cloud": {"agent", append(identity, "--set=config.provider=azure,azure.clientid=1234-abcd,refreshtoken.repository=example.org/refresh-token,refreshtoken.tag=v1"),
			[]string{"image: example.org/refresh-token:v1", "- --clientid=1234-abcd", "medium: Memory", "name: provider-token"}},
		"an identity in a file":      {"agent", append(identity, "--set=config.provider=file,config.tokenFile=/var/run/token"), []string{"tokenFile: /var/run/token"}},
		"an identity from a command": {"agent", []string{"--set=config.memberClusterName=member-1,config.provider=kubeconfig,config.kubeconfigSecret=hub"}, []string{"kubeconfig: /etc/fleetgate/hub/kubeconfig", "secretName: hub"}},
		"names as they are expected": {"agent", append(registers, "--set=strictNames=true,internal.systemNamespace=fleet-system"), []string{"name: fleet-agent"}},
		"rights for some kinds":      {"agent", append(registers, "--set=rbac.placement.clusterAdmin=false,rbac.placement.rules[0].verbs[0]=get,rbac.placement.rules[0].nonResourceURLs[0]=/x"), []string{"- /x"}},
		"rights for some kinds, which others add": {"agent", append(registers, "--set=rbac.placement.clusterAdmin=false,rbac.placement.aggregate=true"), []string{
			":aggregated", `aggregationRule:
  clusterRoleSelectors:
  - matchLabels: {open-cluster-management.io/aggregate-to-work: "true"}`}},
		"a second hub's agent, by its name": {"agent", append(registers, "--set=hubName=two"), []string{
			"name: two\n", "namespace: open-cluster-management-managed-serviceaccount-two\n",
			"name: fleetgate-impersonate-open-cluster-management-managed-serviceaccount-two"}},
		"a second hub's agent":           {"agent", append(registers, "--set=accounts.namespace=accounts-2"), []string{"name: fleetgate-impersonate-accounts-2", "namespace: accounts-2"}},
		"accounts of OCM's agent":        {"agent", append(registers, "--set=accounts.adopt=true"), []string{"adopt: true\n"}},
		"reported namespaces":            {"agent", append(registers, "--set=enableNamespaceCollectionInPropertyProvider=true"), []string{"collectNamespaces: true\n", "resources: [namespaces]\n  verbs: [list, watch]\n"}},
		"namespaces of sets":             {"agent", append(registers, "--set=rbac.managedNamespaces=true"), []string{"resources: [namespaces]\n  verbs: [list, create, patch]\n"}},
		"an identity that does not stay": {"agent", append(registers, "--set=uninstall.keepIdentity=false"), []string{"name: agent-key", "name: agent-credential", "name: agent-certificate"}},
		"a certificate of the hub":       {"agent", append(registers, "--set=hubCertificate=true"), []string{"hubCertificate: true\n", "resourceNames: [agent-key, agent-credential, agent-add-ons, fleet-agent-bootstrap, agent-certificate]\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, tt.chart, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(rendered, want) {
					t.Errorf("what is rendered does not hold %q", want)
				}
			}
			expectKnownFields(t, tt.chart, rendered)
			if strings.Contains(rendered, "cluster-admin") == strings.Contains(name, "rights for some") && tt.chart == "agent" {
				t.Error("cluster-admin is bound exactly if all may be placed")
			}
		})
	}
}

func TestBadValuesAreRefusedWithTheReason(t *testing.T) {
	registers := []string{"--set=token=a", "--set=apiServerURL=https://hub.example.org"}
	tests := map[string]struct {
		chart string
		args  []string
		want  string
	}{
		"no URL of the hub":                     {"gateway", nil, "hubURL is empty: give the URL"},
		"a URL without encryption":              {"gateway", []string{"--set=hubURL=http://hub"}, "'/hubURL'"},
		"a misspelled value":                    {"gateway", []string{hubAccess, "--set=replica=3"}, "additional properties 'replica' not allowed"},
		"no gateway":                            {"gateway", []string{hubAccess, "--set=replicas=0"}, "'/replicas'"},
		"a digest that is none":                 {"gateway", []string{hubAccess, "--set=image.digest=latest"}, "'/image/digest'"},
		"an unknown kind of Service":            {"gateway", []string{hubAccess, "--set=agents.service.type=Ingress"}, "'/agents/service/type'"},
		"a Service without an address":          {"gateway", []string{hubAccess, "--set=agents.service.type=LoadBalancer"}, "agents.address"},
		"a port that there is not":              {"gateway", []string{hubAccess, "--set=agents.address=foo:99999"}, "'/agents/address'"},
		"files without a Secret":                {"gateway", []string{hubAccess, "--set=certificates.source=files"}, "certificates.secretName"},
		"guard rails against itself":            {"gateway", []string{hubAccess, "--set=guardRails=reference", "--namespace=gateways"}, "install into fleet-system instead of gateways"},
		"several without a leader, by the file": {"gateway", []string{hubAccess, "--set=configuration.process.leaderElect=false"}, "need leader election"},
		"several without a leader":              {"gateway", []string{hubAccess, "--set=extraArgs[0]=--leader-elect=false"}, "need leader election"},
		"traces to a URL":                       {"gateway", []string{hubAccess, "--set=tracing.endpoint=http://collector:4317"}, "'/tracing/endpoint'"},
		"traces to nowhere":                     {"agent", append(registers, "--set=tracing.samplingRatePerMillion=10"), "tracing.endpoint"},
		"neither token nor identity":            {"agent", nil, "token is empty"},
		"a token without a hub":                 {"agent", []string{"--set=token=a"}, "apiServerURL is empty"},
		"a CA that is none":                     {"agent", append(registers, "--set=apiServerCA=YWJj"), "apiServerCA is neither"},
		"labels that are not text":              {"agent", append(registers, "--set=labels.env=true"), "'/labels/env': got boolean, want string"},
		"another namespace than expected":       {"agent", append(registers, "--set=strictNames=true"), "the release must be fleet-agent in namespace cattle-fleet-system"},
		"a token and an identity":               {"agent", append(registers, "--set=config.hubURL=https://h,config.memberClusterName=m"), "both set"},
		"a hub without a member's name":         {"agent", []string{"--set=config.hubURL=https://h"}, "config.memberClusterName"},
		"a Secret in another namespace":         {"agent", []string{"--set=config.hubURL=https://h,config.memberClusterName=m,secret.namespace=default"}, "copy the Secret to fleet-system"},
		"a cloud without who keeps tokens":      {"agent", []string{"--set=config.hubURL=https://h,config.memberClusterName=m,config.provider=azure"}, "refreshtoken.repository"},
		"a hub's name that is too long":         {"agent", append(registers, "--set=hubName=abcdefghijklmnopq"), "'/hubName'"},
		"accounts beside the agent's key":       {"agent", append(registers, "--set=accounts.namespace=fleet-system"), "accounts.namespace must not be"},
		"a member's name that is too long":      {"agent", []string{"--set=config.hubURL=https://h,config.memberClusterName=" + strings.Repeat("m", 51)}, "'/config/memberClusterName'"},
		"a flag that is not one":                {"agent", append(registers, "--set=extraArgs[0]=verbose"), "'/extraArgs/0'"},
		"a proxy that is not one":               {"agent", append(registers, "--set=proxyURL=socks5://p"), "'/proxyURL'"},
		"a port that is none":                   {"agent", append(registers, "--set=ports.metrics=0"), "'/ports/metrics'"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tt.chart, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestChartsPassHelmsOwnLook(t *testing.T) {
	for name, args := range map[string][]string{"gateway": {hubAccess}, "agent": {"--set=token=a", "--set=apiServerURL=https://h"}} {
		if out, err := helm(t, append([]string{"lint", "--strict", chart(name)}, args...)...); err != nil {
			t.Errorf("helm lint %s: %v\n%s", name, err, out)
		}
	}
}

// TestWhatIsRenderedIsAsBefore compares golden files, which show a reviewer the effect of a
// template change.
func TestWhatIsRenderedIsAsBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		chart string
		args  []string
	}{
		"gateway":           {"gateway", []string{hubAccess, "--show-only=templates/deployment.yaml", "--show-only=templates/service.yaml"}},
		"agent":             {"agent", []string{"--set=token=a,apiServerURL=https://hub.example.org,clientID=b", "--show-only=templates/deployment.yaml", "--show-only=templates/bootstrap.yaml"}},
		"agent-as-identity": {"agent", []string{"--set=config.hubURL=https://hub.example.org,config.memberClusterName=member-1", "--show-only=templates/deployment.yaml"}},
	} {
		rendered, err := render(t, tt.chart, tt.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compare(t, filepath.Join("testdata", fmt.Sprintf("%s.yaml", name)), rendered)
	}
}
