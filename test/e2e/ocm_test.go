// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/forwardproxy"
)

// klusterlet stands in for a klusterlet: it does with kubectl and its own credentials what the
// registration protocol specifies.
type klusterlet struct {
	fleet   *launched
	cluster string
	// proxy is the HTTP proxy of its network.
	proxy *forwardproxy.Proxy
	// bootstrap is its kubeconfig for the join request, own that with its certificate.
	bootstrap, own string
	key            *ecdsa.PrivateKey
}

// kubeconfig writes a kubeconfig that reaches the hub through the proxy, with the proxy's CA
// appended.
func (k *klusterlet) kubeconfig(name string, user *clientcmdapi.AuthInfo) string {
	GinkgoHelper()
	admin, err := clientcmd.LoadFromFile(k.fleet.fleet.HubKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	config := clientcmdapi.NewConfig()
	for _, cluster := range admin.Clusters {
		config.Clusters["hub"] = &clientcmdapi.Cluster{
			Server: cluster.Server, ProxyURL: k.proxy.URL, CertificateAuthorityData: append(cluster.CertificateAuthorityData, k.proxy.CA()...),
		}
	}
	config.AuthInfos["agent"], config.Contexts["hub"], config.CurrentContext = user, &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}, "hub"
	path := filepath.Join(k.fleet.dir, k.cluster+"-"+name+".kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// as runs kubectl as the klusterlet.
func (k *klusterlet) as(ctx context.Context, kubeconfig, stdin string, args ...string) (string, error) {
	return k.fleet.fleet.Kubectl(ctx, kubeconfig, stdin, args...)
}

// ask creates its ManagedCluster and a certificate request, and returns the request's name.
func (k *klusterlet) ask(ctx context.Context) string {
	GinkgoHelper()
	token := k.fleet.hub(ctx, "create", "token", "agent-registration-bootstrap", "--namespace=open-cluster-management")
	k.bootstrap = k.kubeconfig("bootstrap", &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)})
	var err error
	k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	user := "system:open-cluster-management:" + k.cluster
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: user + ":e2e", Organization: []string{user, "system:open-cluster-management:managed-clusters"},
	}}, k.key)
	Expect(err).NotTo(HaveOccurred())
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	out, err := k.as(ctx, k.bootstrap, fmt.Sprintf(`
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: %[1]s}
spec: {leaseDurationSeconds: 60, managedClusterClientConfigs: [{url: "https://%[1]s.example.com:6443"}]}
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: %[1]s-x7k2p, labels: {open-cluster-management.io/cluster-name: %[1]s}}
spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [digital signature, key encipherment, client auth], request: %[2]s}
`, k.cluster, request), "create", "--filename=-")
	Expect(err).NotTo(HaveOccurred(), out)
	return k.cluster + "-x7k2p"
}

// come fetches its certificate, renews its Lease and reports.
func (k *klusterlet) come(ctx context.Context, request string) {
	GinkgoHelper()
	var certificate []byte
	Eventually(func(g Gomega) {
		encoded, err := k.as(ctx, k.bootstrap, "", "get", "certificatesigningrequest", request, "--output=jsonpath={.status.certificate}")
		g.Expect(err).NotTo(HaveOccurred())
		certificate, err = base64.StdEncoding.DecodeString(encoded)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(certificate).NotTo(BeEmpty())
	}).Should(Succeed())
	key, err := x509.MarshalECPrivateKey(k.key)
	Expect(err).NotTo(HaveOccurred())
	k.own = k.kubeconfig("own", &clientcmdapi.AuthInfo{
		ClientCertificateData: certificate, ClientKeyData: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
	})
	Eventually(k.renew).WithArguments(ctx).Should(Succeed())
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, reason string) string {
		return fmt.Sprintf(`{"op":"add","path":"/status/conditions/-","value":{"type":%q,"status":"True","reason":%q,"message":"","lastTransitionTime":%q}}`, kind, reason, now)
	}
	// kubectl would read the status before the patch, which a klusterlet cannot.
	config, err := clientcmd.BuildConfigFromFlags("", k.own)
	Expect(err).NotTo(HaveOccurred())
	hub, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	clusters := hub.Resource(clusterv1.GroupVersion.WithResource("managedclusters"))
	patch := "[" + condition("ManagedClusterJoined", "ManagedClusterJoined") + "," + condition("ManagedClusterConditionAvailable", "ManagedClusterAvailable") + "]"
	Eventually(func() error {
		_, err := clusters.Patch(ctx, k.cluster, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}).Should(Succeed())
}

// renew renews its Lease, which it can only get and update.
func (k *klusterlet) renew(ctx context.Context) error {
	lease, err := k.as(ctx, k.own, "", "get", "lease", "managed-cluster-lease", "--namespace="+k.cluster, "--output=json")
	if err != nil {
		return err
	}
	now := fmt.Sprintf(`"renewTime": %q`, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, err = k.as(ctx, k.own, renewTime.ReplaceAllString(lease, now), "replace", "--filename=-")
	return err
}

var renewTime = regexp.MustCompile(`"renewTime": "[^"]*"`)

var _ = Describe("A fleet with OCM=1", Ordered, Label("matrix"), func() {
	var (
		l   *launched
		k   *klusterlet
		out string
	)

	BeforeAll(func(ctx SpecContext) {
		l = newFolder()
		configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.AgentKind, "registration: {hubCertificate: true}\nmember: {resourceScores: true}")
		Expect(err).NotTo(HaveOccurred())
		out, err = l.launcher(ctx, "-ocm", "-agent-flags="+configuration, "up")
		Expect(err).NotTo(HaveOccurred(), out)
		k = &klusterlet{fleet: l, cluster: "edge", proxy: forwardproxy.Start(true)}
		DeferCleanup(k.proxy.Close)
	})

	accepted := func(ctx context.Context, cluster, value string) {
		GinkgoHelper()
		l.hub(ctx, "patch", "managedcluster", cluster, "--type=merge", `--patch={"spec":{"hubAcceptsClient":`+value+`}}`)
	}
	// row is a ManagedCluster as kubectl prints it, without its age.
	row := func(ctx context.Context, cluster string) func() []string {
		return func() []string {
			return strings.Fields(l.hub(ctx, "get", "managedcluster", cluster, "--no-headers", "--output=custom-columns="+
				`A:.spec.hubAcceptsClient,B:.status.conditions[?(@.type=="HubAcceptedManagedCluster")].reason,C:.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status,D:.spec.taints[*].key`))
		}
	}

	It("prints both views of its members", func() {
		Expect(out).To(MatchRegexp(`(?s)The members\n +NAME +JOINED.*member-1 .*member-2 `))
		Expect(out).To(MatchRegexp(`(?s)as clients of Open Cluster Management see them\n +NAME +HUB ACCEPTED +MANAGED CLUSTER URLS +JOINED +AVAILABLE +AGE\n +member-1 +true +https://\S+ +True +True .*\n +member-2 +true `))
	})

	It("accepts a cluster with a klusterlet that connects through a proxy", func(ctx SpecContext) {
		request := k.ask(ctx)
		Eventually(row(ctx, k.cluster)).Should(Equal([]string{"false", "<none>", "<none>", "cluster.open-cluster-management.io/unreachable"}))
		l.hub(ctx, "certificate", "approve", request)
		accepted(ctx, k.cluster, "true")
		k.come(ctx, request)
		Eventually(row(ctx, k.cluster)).Should(Equal([]string{"true", "HubClusterAdminAccepted", "True", "<none>"}))
		hub, err := url.Parse(k.fleet.hubURL())
		Expect(err).NotTo(HaveOccurred())
		Expect(k.proxy.Asked()).To(And(Not(BeEmpty()), HaveEach(http.MethodConnect+" "+hub.Host)))
		Expect(strings.Fields(l.hub(ctx, "get", "managedclusters", "--output=jsonpath={.items[*].metadata.name}"))).To(ConsistOf("edge", "member-1", "member-2"))
		Expect(strings.Fields(l.hub(ctx, "get", "memberclusters", "--output=jsonpath={.items[*].metadata.name}"))).To(ConsistOf("member-1", "member-2"))
	})

	It("gives its agents certificates by which add-on managers identify them", func(ctx SpecContext) {
		Eventually(func() string {
			encoded := l.on(ctx, "member-1", `.data.tls\.crt`, "secret", "agent-certificate", "--namespace=fleet-system")()
			text, err := base64.StdEncoding.DecodeString(encoded)
			block, _ := pem.Decode(text)
			if err != nil || block == nil {
				return encoded
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			Expect(err).NotTo(HaveOccurred())
			return certificate.Subject.CommonName
		}).Should(Equal("system:open-cluster-management:member-1:fleetgate"))
	})

	It("gives agents of add-ons on its members certificates that somebody approved", func(ctx SpecContext) {
		const addOns = "managedclusteraddons.v1alpha1.addon.open-cluster-management.io"
		const secret, namespace = "clock-hub-kubeconfig", "--namespace=open-cluster-management-agent-addon"
		out, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {namespace: member-1, name: clock}
spec: {}
`, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred(), out)
		l.hub(ctx, "patch", addOns, "clock", "--namespace=member-1", "--subresource=status", "--type=merge", `--patch={"status":{"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client"}]}}`)
		requests := func() []string {
			return strings.Fields(l.hub(ctx, "get", "certificatesigningrequests", "--selector=open-cluster-management.io/addon-name=clock", "--output=jsonpath={.items[*].metadata.name}"))
		}
		Eventually(requests).Should(HaveLen(1))
		l.hub(ctx, append([]string{"certificate", "approve"}, requests()...)...)
		for _, key := range []string{"kubeconfig", `tls\.crt`, `tls\.key`} {
			Eventually(l.on(ctx, "member-1", ".data."+key, "secret", secret, namespace)).Should(MatchRegexp("^[0-9A-Za-z+/=]+$"))
		}
		Eventually(func() string {
			return l.hub(ctx, "get", addOns, "clock", "--namespace=member-1", `--output=jsonpath={.status.kubeClientDriver} {.status.conditions[?(@.type=="ClusterCertificateRotated")].status}`)
		}).Should(Equal("csr True"))
		Eventually(func() string {
			return l.hub(ctx, "get", "managedclusteraddon", "clock", "--namespace=member-1", `--output=jsonpath={.apiVersion} {.status.registrations[0].kubeClient.driver}`)
		}).Should(Equal("addon.open-cluster-management.io/v1beta1 csr"))
		l.hub(ctx, "delete", "managedclusteraddon", "clock", "--namespace=member-1")
		Eventually(l.on(ctx, "member-1", ".metadata.name", "secret", secret, namespace)).Should(ContainSubstring("not found"))
	})

	It("ranks its members by the free resources that their agents report", func(ctx SpecContext) {
		out, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {namespace: default, name: default}
spec: {clusterSet: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {namespace: default, name: roomy}
spec:
  numberOfClusters: 1
  prioritizerPolicy:
    mode: Exact
    configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: resource-usage-score, scoreName: cpuAvailable}}}]
`, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred(), out)
		decided := func() string {
			return l.hub(ctx, "get", "placementdecisions", "--namespace=default", "--selector=cluster.open-cluster-management.io/placement=roomy", "--output=jsonpath={.items[*].status.decisions[*].clusterName}")
		}
		for full, free := range map[string]string{"member-1": "member-2", "member-2": "member-1"} {
			nodes := strings.Fields(l.member(ctx, full, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}"))
			l.member(ctx, full, append([]string{"cordon"}, nodes...)...)
			Eventually(decided).Should(Equal(free))
			l.member(ctx, full, append([]string{"uncordon"}, nodes...)...)
		}
	})

	It("creates the managed namespaces of their set on its members, and reports it", func(ctx SpecContext) {
		l.hub(ctx, "patch", "managedclusterset", "default", "--type=merge", `--patch={"spec":{"managedNamespaces":[{"name":"team-a"}]}}`)
		for _, member := range []string{"member-1", "member-2"} {
			Eventually(l.on(ctx, member, ".metadata.labels", "namespace", "team-a")).Should(MatchRegexp(`"clusterset\.open-cluster-management\.io/[0-9a-f]{63}":"true"`))
			Eventually(func() string {
				return l.hub(ctx, "get", "managedcluster", member, `--output=jsonpath={.status.managedNamespaces[?(@.name=="team-a")].conditions[*].reason}`)
			}).Should(Equal("NamespaceApplied"))
		}
	})

	It("denies both, and accepts both again", func(ctx SpecContext) {
		approval := func() string {
			return l.hub(ctx, "get", "membercluster", "member-2", "--output=jsonpath={.spec.taints[*].key}")
		}
		for _, cluster := range []string{k.cluster, "member-2"} {
			accepted(ctx, cluster, "false")
			Eventually(row(ctx, cluster)).Should(HaveExactElements("false", "HubClusterAdminDenied", Not(BeEmpty()), Not(BeEmpty())))
		}
		Eventually(approval).Should(Equal("fleetgate.io/unapproved"))
		Eventually(k.renew).WithArguments(ctx).Should(MatchError(ContainSubstring("forbidden")))
		for _, cluster := range []string{k.cluster, "member-2"} {
			accepted(ctx, cluster, "true")
			Eventually(row(ctx, cluster)).Should(HaveExactElements("true", "HubClusterAdminAccepted", Not(BeEmpty()), Not(BeEmpty())))
		}
		Eventually(approval).Should(BeEmpty())
		Eventually(k.renew).WithArguments(ctx).Should(Succeed())
	})

	It("lets both leave", func(ctx SpecContext) {
		l.hub(ctx, "delete", "managedcluster", k.cluster, "--timeout=60s")
		l.hub(ctx, "delete", "membercluster", "member-2", "--timeout=120s")
		Eventually(func() []string {
			return strings.Fields(l.hub(ctx, "get", "managedclusters", "--output=jsonpath={.items[*].metadata.name}"))
		}).Should(Equal([]string{"member-1"}))
		Eventually(k.renew).WithArguments(ctx).Should(MatchError(ContainSubstring("forbidden")))
		Eventually(l.on(ctx, "member-2", ".metadata.name", "secret", "agent-certificate", "--namespace=fleet-system")).Should(ContainSubstring("not found"))
		Eventually(l.on(ctx, "member-2", ".metadata.labels", "namespace", "team-a")).Should(MatchRegexp(`"clusterset\.open-cluster-management\.io/[0-9a-f]{63}":"false"`))
	})
})

// hubURL is where the hub's API server is.
func (l *launched) hubURL() string {
	GinkgoHelper()
	config, err := os.ReadFile(l.fleet.HubKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	rest, err := clientcmd.RESTConfigFromKubeConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return rest.Host
}
