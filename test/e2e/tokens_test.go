// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/leak"
)

// bodies is the verbosity at which client-go would log whole bodies.
const bodies = 10

// argoSettings are the minimal objects of an Argo CD installation.
const argoSettings = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: c29tZXRoaW5nIHRoYXQgaXMgbm8gc2VjcmV0}
`

const toDeploy = `
apiVersion: v1
kind: Namespace
metadata: {name: by-argo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: by-argo}
data: {greeting: Hello}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: by-argo}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web:v1}]}
`

// consumerOfProfiles is a program on the hub that uses one member.
const consumerOfProfiles = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: consumer, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: consumer}
rules:
- {apiGroups: [cluster.core.oam.dev], resources: [clustergateways/proxy], resourceNames: [member-1], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: consumer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: consumer}
subjects: [{kind: ServiceAccount, name: consumer, namespace: default}]
`

var _ = Describe("Tokens of a fleet with the highest log level", Ordered, Label("matrix"), func() {
	var f *fleet.Fleet

	BeforeAll(func(ctx context.Context) {
		home, err := env.Home()
		Expect(err).NotTo(HaveOccurred())
		dir, err := os.MkdirTemp("", "fleetgate-tokens-")
		Expect(err).NotTo(HaveOccurred())
		f, err = fleet.Start(ctx, fleet.Options{
			Dir: dir, Members: []string{"member-1", "member-2"}, BinDir: filepath.Join(home, "bin"), Verbosity: bodies,
		})
		DeferCleanup(func(ctx context.Context) {
			if CurrentSpecReport().Failed() {
				(&launched{dir: dir, fleet: f}).keepArtifacts(ctx)
			}
			Expect(f.Stop(ctx)).To(Succeed())
			Expect(os.RemoveAll(dir)).To(Succeed())
		})
		Expect(err).NotTo(HaveOccurred())
	})
	run := func(ctx context.Context, kubeconfig, input string, args ...string) string {
		GinkgoHelper()
		out, err := f.Kubectl(ctx, kubeconfig, input, args...)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	onHub := func(ctx context.Context, input string, args ...string) string {
		GinkgoHelper()
		return run(ctx, breakGlassOf(f.Hub), input, args...)
	}
	// as runs kubectl on the member's own API server with only a Secret of the hub.
	as := func(ctx context.Context, m *fleet.Member, secret string, args ...string) (string, error) {
		GinkgoHelper()
		field := func(name string) string {
			encoded := onHub(ctx, "", "get", "secret", secret, "--namespace=fleet-member-"+m.Name, "--ignore-not-found", "--output=jsonpath={.data."+name+"}")
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			Expect(err).NotTo(HaveOccurred())
			return string(decoded)
		}
		ca := filepath.Join(f.Dir, m.Name+"-ca-from-secret.pem")
		Expect(os.WriteFile(ca, []byte(field(`ca\.crt`)), 0o600)).To(Succeed())
		empty := filepath.Join(f.Dir, "empty.kubeconfig")
		Expect(os.WriteFile(empty, nil, 0o600)).To(Succeed())
		return f.Kubectl(ctx, empty, "", append(args, "--server="+m.Cluster.URL, "--certificate-authority="+ca, "--token="+field("token"))...)
	}

	It("have the rights on every member that an ordinary placement grants", func(ctx context.Context) {
		run(ctx, f.HubKubeconfig(), "", "apply", "--filename="+f.Example("tokens/reports.yaml"))
		for _, m := range f.Members {
			Eventually(func() (string, error) {
				return as(ctx, m, "reports", "get", "pods", "--all-namespaces", "--output=name")
			}).Should(BeEmpty())
			_, err := as(ctx, m, "reports", "create", "configmap", "by-reports")
			Expect(err).To(MatchError(ContainSubstring("system:serviceaccount:open-cluster-management-managed-serviceaccount:reports")))
			Expect(err).To(MatchError(ContainSubstring("cannot create resource")))
		}
	})

	It("show the gateway's own account, which can only impersonate on a member", func(ctx context.Context) {
		for _, m := range f.Members {
			Expect(onHub(ctx, "", "get", "managedserviceaccount", "cluster-gateway", "--namespace=fleet-member-"+m.Name,
				"--output=jsonpath={.status.tokenSecretRef.name}")).To(Equal("cluster-gateway"))
			for _, what := range [][]string{{"get", "pods"}, {"get", "secrets"}, {"create", "configmaps"}, {"create", "serviceaccounts", "--subresource=token"}, {"impersonate", "groups/system:masters"}} {
				answer, _ := as(ctx, m, "cluster-gateway", append([]string{"auth", "can-i"}, what...)...)
				Expect(strings.TrimSpace(answer)).To(Equal("no"), "%v", what)
			}
			// It can impersonate a caller.
			Eventually(func() (string, error) {
				return f.Kubectl(ctx, f.MemberKubeconfig(m.Name), "", "get", "namespace", "default", "--output=name")
			}).Should(Equal("namespace/default\n"))
		}
	})

	It("let Argo CD's code deploy through the hub with the Secret of a labelled member", func(ctx context.Context) {
		Expect(filepath.Join(f.BinDir, "argocd")).To(BeAnExistingFile(), "run: make .fleetgate/bin/argocd")
		onHub(ctx, argoSettings, "apply", "--filename=-")
		run(ctx, f.HubKubeconfig(), "", "label", "membercluster", "member-1", "fleetgate.io/argocd=true")
		run(ctx, f.HubKubeconfig(), "", "apply", "--filename="+f.Example("tokens/argocd.yaml"))
		deploy := func(member string) (string, error) {
			return f.Run(ctx, "argocd", toDeploy, "-kubeconfig="+breakGlassOf(f.Hub), "-cluster="+member)
		}
		var told string
		Eventually(func() error {
			var err error
			told, err = deploy("member-1")
			return err
		}).Should(Succeed(), "Secret and rights arrive by themselves")
		Expect(told).To(ContainSubstring("is at " + f.Hub.URL + "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/member-1/proxy\n"))
		for _, object := range []string{"/Namespace/default/by-argo", "/ConfigMap/by-argo/web", "apps/Deployment/by-argo/web"} {
			Expect(told).To(ContainSubstring(object + " Synced"))
		}
		Expect(run(ctx, breakGlassOf(f.Members[0].Cluster), "", "get", "configmap", "web", "--namespace=by-argo", "--output=jsonpath={.data.greeting}")).To(Equal("Hello"))

		_, err := deploy("member-2")
		Expect(err).To(MatchError(ContainSubstring(`"member-2"`)), "this member is not labelled")
	})

	// A consumer of ClusterProfiles uses the profile's address and its own exec plugin, as the
	// inventory API's library does.
	It("are not needed by consumers of ClusterProfiles", func(ctx context.Context) {
		onHub(ctx, consumerOfProfiles, "apply", "--filename=-")
		run(ctx, breakGlassOf(f.Members[0].Cluster), "", "create", "clusterrolebinding", "consumer", "--clusterrole=view", "--user=hub:system:serviceaccount:default:consumer")
		profile := &multiclusterv1alpha1.ClusterProfile{}
		Expect(json.Unmarshal([]byte(onHub(ctx, "", "get", "clusterprofile", "member-1", "--namespace="+clusterv1beta1.SystemNamespace, "--output=json")), profile)).To(Succeed())
		Expect(profile.Status.AccessProviders).To(HaveLen(1))
		access := profile.Status.AccessProviders[0].Cluster
		Expect(access.Extensions).To(HaveLen(1))
		plugin := filepath.Join(f.Dir, "profile-plugin.sh")
		Expect(os.WriteFile(plugin, []byte(`#!/bin/sh
case "$KUBERNETES_EXEC_INFO" in *'"config":{"clusterName":"member-1"}'*) ;; *) echo "not told which member" >&2; exit 1;; esac
token=$(kubectl create token consumer --kubeconfig="$HUB") || exit 1
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$token"
`), 0o700)).To(Succeed())
		config := &rest.Config{Host: access.Server, TLSClientConfig: rest.TLSClientConfig{CAData: access.CertificateAuthorityData}}
		config.ExecProvider = &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, ProvideClusterInfo: true,
			Env:    []clientcmdapi.ExecEnvVar{{Name: "HUB", Value: breakGlassOf(f.Hub)}, {Name: "PATH", Value: f.BinDir + ":" + os.Getenv("PATH")}},
			Config: &runtime.Unknown{Raw: access.Extensions[0].Extension.Raw, ContentType: runtime.ContentTypeJSON},
		}
		member, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := member.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		}).Should(Succeed())
		_, err = member.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))

		may, _ := f.Kubectl(ctx, breakGlassOf(f.Hub), "", "auth", "can-i", "get", "secrets", "--namespace=fleet-member-member-1", "--as=system:serviceaccount:default:consumer")
		Expect(strings.TrimSpace(may)).To(Equal("no"))
	})

	It("are in no log, object or metric", func(ctx context.Context) {
		tokens := tokensOf(ctx, f)
		Expect(len(tokens)).To(BeNumerically(">=", 7), "of the registration, the agents, the gateway, the accounts, Argo CD")
		const planted = "planted0123456789abcdef-not-a-token"
		_, err := f.Kubectl(ctx, f.MemberKubeconfig("member-1"), "", "get", "namespace", planted)
		Expect(err).To(HaveOccurred())
		onHub(ctx, "", "create", "configmap", "planted", "--from-literal=token="+planted)

		texts := written(ctx, f)
		for place, text := range texts {
			GinkgoWriter.Printf("Looking for %d tokens in %d bytes of %s\n", len(tokens), len(text), place)
			Expect(leak.Search(text, tokens...)).To(BeEmpty(), place)
		}
		// This proves that the search finds tokens.
		for _, place := range []string{"gateway's log", "hub's objects"} {
			Expect(leak.Search(texts[place], planted)).To(Equal([]int{0}), place)
		}
		for _, process := range []string{"gateway", "member-1-agent", "member-2-agent"} {
			Expect(texts[process+"'s log"]).To(And(ContainSubstring("Limited the log verbosity"), ContainSubstring("headers=")), "at the highest log level")
			Expect(texts[process+"'s metrics"]).To(ContainSubstring("go_goroutines"))
		}
	})
})

func breakGlassOf(c *env.Cluster) string { return filepath.Join(c.Dir, env.BreakGlass+".kubeconfig") }

func clustersOf(f *fleet.Fleet) map[string]*env.Cluster {
	clusters := map[string]*env.Cluster{"hub": f.Hub}
	for _, m := range f.Members {
		clusters[m.Name] = m.Cluster
	}
	return clusters
}

var token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{40,}`)

// tokensOf returns all tokens in Secrets of the fleet, in every encoding.
func tokensOf(ctx context.Context, f *fleet.Fleet) []string {
	GinkgoHelper()
	unique := map[string]bool{}
	for _, cluster := range clustersOf(f) {
		values, err := f.Kubectl(ctx, breakGlassOf(cluster), "", "get", "secrets", "--all-namespaces", `--output=go-template={{range .items}}{{range .data}}{{.}}{{"\n"}}{{end}}{{end}}`)
		Expect(err).NotTo(HaveOccurred())
		for value := range strings.Lines(values) {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
			Expect(err).NotTo(HaveOccurred())
			for _, found := range token.FindAllString(string(decoded), -1) {
				unique[found] = true
			}
		}
	}
	return slices.Collect(maps.Keys(unique))
}

// written returns everything that the fleet writes where others can read it: logs, metrics, and all
// objects of the clusters, with status and events, except Secrets.
func written(ctx context.Context, f *fleet.Fleet) map[string]string {
	GinkgoHelper()
	texts := map[string]string{}
	metrics := map[*env.Process]string{f.Gateway: f.GatewayMetrics()}
	for _, m := range f.Members {
		metrics[m.Agent] = m.AgentMetrics()
	}
	for process, url := range metrics {
		log, err := os.ReadFile(process.LogPath())
		Expect(err).NotTo(HaveOccurred())
		texts[process.Name()+"'s log"] = string(log)
		texts[process.Name()+"'s metrics"] = get(ctx, url)
	}
	for name, cluster := range clustersOf(f) {
		kinds, err := f.Kubectl(ctx, breakGlassOf(cluster), "", "api-resources", "--verbs=list", "--output=name")
		Expect(err).NotTo(HaveOccurred())
		readable := slices.DeleteFunc(strings.Fields(kinds), func(kind string) bool { return kind == "secrets" })
		objects, err := f.Kubectl(ctx, breakGlassOf(cluster), "", "get", strings.Join(readable, ","), "--all-namespaces", "--output=json")
		Expect(err).NotTo(HaveOccurred())
		texts[name+"'s objects"] = objects
	}
	return texts
}

func get(ctx context.Context, url string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}
