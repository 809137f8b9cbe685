// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/test/support/env"
)

// Mistakes in joining a cluster or starting a program. Each is reported in one sentence that names
// the object and the remedy.
var _ = Describe("bad input", Ordered, func() {
	var (
		l *launched
		// values are the chart values of the registration token.
		values map[string]any
	)

	BeforeAll(func(ctx context.Context) {
		l = newFolder()
		out, err := l.launcher(ctx, "up")
		Expect(err).NotTo(HaveOccurred(), out)
		data, err := os.ReadFile(filepath.Join(l.dir, "member-1-values.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(data, &values)).To(Succeed())
	})

	// start runs a program with flags and returns it with a function that reads its log.
	start := func(ctx context.Context, name, program string, flags ...string) (*env.Process, func() string) {
		GinkgoHelper()
		p, err := env.NewProcess(env.ProcessOptions{Name: name, Dir: l.dir, Path: filepath.Join(l.fleet.BinDir, program), Args: flags})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Start(ctx)).To(Succeed())
		DeferCleanup(p.Kill)
		return p, func() string {
			log, err := os.ReadFile(p.LogPath())
			Expect(err).NotTo(HaveOccurred())
			Expect(string(log)).NotTo(ContainSubstring("goroutine "), "the log has a stack trace")
			return string(log)
		}
	}

	// This is a second agent of member-1. Its own namespace contains no credential.
	agent := func(ctx context.Context, name string, change func(map[string]any)) (probe string, log func() string) {
		GinkgoHelper()
		changed := map[string]any{}
		for key, value := range values {
			changed[key] = value
		}
		change(changed)
		data, err := yaml.Marshal(changed)
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(l.dir, name+"-values.yaml")
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
		ports, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		probe = fmt.Sprintf("127.0.0.1:%d", ports[0])
		_, log = start(ctx, name, "agent", "--member-kubeconfig="+filepath.Join(l.dir, "member-1", "fleetgate-agent.kubeconfig"),
			"--namespace="+name, "--bootstrap-file="+file, "--client-id="+name, "--metrics-bind-address=0", "--health-probe-bind-address="+probe)
		return probe, log
	}

	readyz := func(probe string) string {
		response, err := http.Get("http://" + probe + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprintf("%d %s", response.StatusCode, body)
	}

	DescribeTable("an agent that cannot register reports the reason in its log and at /readyz",
		func(ctx context.Context, name string, change func(map[string]any), sentence string) {
			probe, log := agent(ctx, name, change)
			Eventually(log).Should(ContainSubstring(sentence))
			Eventually(func() string { return readyz(probe) }).Should(And(HavePrefix("503"), ContainSubstring(sentence)))
			Expect(strings.Count(log(), sentence)).To(BeNumerically("<=", 2), "it does not repeat itself")
			Expect(log()).NotTo(ContainSubstring(fmt.Sprint(values["token"])), "the token is a secret")
		},
		Entry("wrong token", "wrong-token", func(v map[string]any) { v["token"] = "not-a-token" },
			"refuses the registration token: it is wrong, has expired or was deleted; give the agent the values of a new ClusterRegistrationToken"),
		Entry("hub that does not answer", "no-hub", func(v map[string]any) { v["apiServerURL"] = "https://127.0.0.1:1" },
			"does not answer"),
		Entry("another hub's CA", "wrong-ca", func(v map[string]any) { v["apiServerCA"] = memberCA(l) },
			"is not signed by the given CA"),
		Entry("another namespace than the token's", "wrong-namespace", func(v map[string]any) { v["clusterNamespace"] = "default" },
			"clusterNamespace must be the namespace of the ClusterRegistrationToken"),
	)

	It("registers the agent whose token expired, once it gets a new one", func(ctx context.Context) {
		manifest := "{apiVersion: fleet.cattle.io/v1alpha1, kind: ClusterRegistrationToken, metadata: {name: short, namespace: clusters}, spec: {ttl: 1s}}"
		_, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), manifest, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string {
			return l.hub(ctx, "get", "clusterregistrationtoken", "short", "--namespace=clusters", "--ignore-not-found")
		}).Should(BeEmpty(), "the token is deleted when it expires")
		Expect(l.hub(ctx, "get", "secret,serviceaccount", "--namespace=clusters", "--output=name")).NotTo(ContainSubstring("short"), "objects of the token are deleted too")
	})

	It("exits and names the port when a port is in use", func(ctx context.Context) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		address := taken.Addr().String()
		p, log := start(ctx, "busy-agent", "agent", "--member-kubeconfig="+filepath.Join(l.dir, "member-1", "fleetgate-agent.kubeconfig"),
			"--namespace=busy", "--metrics-bind-address=0", "--health-probe-bind-address="+address)
		Eventually(p.Running).Should(BeFalse())
		Expect(log()).To(And(ContainSubstring(address), ContainSubstring("another program has this port; choose another")))

		_, port, err := net.SplitHostPort(address)
		Expect(err).NotTo(HaveOccurred())
		free, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		p, log = start(ctx, "busy-gateway", "gateway", "--kubeconfig="+filepath.Join(l.dir, "hub", "fleetgate-gateway.kubeconfig"),
			"--bind-address=127.0.0.1", "--secure-port="+port, fmt.Sprintf("--webhook-port=%d", free[0]), "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
			"--leader-elect=false", "--components=proxy")
		Eventually(p.Running).Should(BeFalse())
		Expect(log()).To(And(ContainSubstring(address), ContainSubstring("another program has this port; choose another")))
	})

	// During an upgrade a gateway once got traffic before its API listened.
	It("is not ready before its API answers, however long the hub takes", func(ctx context.Context) {
		kubeconfig, asked, release := slowHub(filepath.Join(l.dir, "hub", "fleetgate-gateway.kubeconfig"))
		ports, err := env.FreePorts(3)
		Expect(err).NotTo(HaveOccurred())
		probe := fmt.Sprintf("127.0.0.1:%d", ports[0])
		start(ctx, "slow-hub", "gateway", "--kubeconfig="+kubeconfig, "--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", ports[1]), fmt.Sprintf("--webhook-port=%d", ports[2]), "--peer-port=0",
			"--metrics-bind-address=0", "--health-probe-bind-address="+probe, "--leader-elect=false", "--components=proxy")
		Eventually(asked).Should(BeClosed(), "the gateway reads the hub's trust configuration")
		Expect(readyz(probe)).To(And(HavePrefix("500"), ContainSubstring("[-]api failed")))
		release()
		Eventually(func() string { return readyz(probe) }).Should(HavePrefix("200"))
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
		Expect(err).NotTo(HaveOccurred(), "it is ready, and takes requests")
		Expect(conn.Close()).To(Succeed())
	})

	It("reports all wrong flags at once", func(ctx context.Context) {
		p, log := start(ctx, "flags", "gateway", "--components=prxy", "--secure-port=0", "--hub-url=http://hub", "--adopt")
		Eventually(p.Running).Should(BeFalse())
		Expect(log()).To(And(
			ContainSubstring(`features.components[0] (--components): Unsupported value: "prxy": supported values: "proxy", "webhook", "controllers"`),
			ContainSubstring("serving.securePort (--secure-port): Invalid value: 0"),
			ContainSubstring(`hub.url (--hub-url): Invalid value: "http://hub": must begin with https://`),
			ContainSubstring("install.adopt (--adopt): Forbidden: has no effect without install.enabled (--install)"),
		))
	})

	It("writes its log as JSON on request", func(ctx context.Context) {
		for _, program := range []string{"gateway", "agent"} {
			// The first line is about the level. Later lines would need a hub.
			p, log := start(ctx, "json-"+program, program, "--logging-format=json", "--v=9")
			Eventually(p.Running).Should(BeFalse())
			first, rest, _ := strings.Cut(log(), "\n")
			var line struct{ Msg string }
			Expect(json.Unmarshal([]byte(first), &line)).To(Succeed(), log())
			Expect(line.Msg).To(ContainSubstring("Limited the log verbosity"))
			Expect(rest).To(ContainSubstring("Error: "))
		}
	})

	It("reports the reason when the hub does not answer", func(ctx context.Context) {
		p, log := start(ctx, "nowhere", "gateway")
		Eventually(p.Running).Should(BeFalse())
		Expect(log()).To(ContainSubstring("run the gateway in a Pod of the hub or set --kubeconfig"))
	})
})

// slowHub proxies to the hub of a kubeconfig and holds requests for the hub's trust configuration
// until release is called; asked is closed at the first. It returns its own kubeconfig.
func slowHub(kubeconfig string) (own string, asked chan struct{}, release func()) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	hub, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	asked, held := make(chan struct{}), make(chan struct{})
	tell, release := sync.OnceFunc(func() { close(asked) }), sync.OnceFunc(func() { close(held) })
	passing := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(hub) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/configmaps") && strings.Contains(r.URL.String(), "extension-apiserver-authentication") {
			tell()
			select {
			case <-held:
			case <-r.Context().Done():
				return
			}
		}
		passing.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		release()
		server.CloseClientConnections()
		server.Close()
	})
	own = filepath.Join(GinkgoT().TempDir(), "slow.kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"slow": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"slow": {Cluster: "slow"}},
		CurrentContext: "slow",
	}, own)).To(Succeed())
	return own, asked, release
}

// memberCA returns a CA that did not sign the hub's certificate.
func memberCA(l *launched) string {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(l.dir, "member-1", "break-glass.kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	var kubeconfig struct {
		Clusters []struct {
			Cluster struct {
				CA []byte `json:"certificate-authority-data"`
			}
		}
	}
	Expect(yaml.Unmarshal(data, &kubeconfig)).To(Succeed())
	return string(kubeconfig.Clusters[0].Cluster.CA)
}
