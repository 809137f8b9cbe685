// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// makeChart writes a chart with one ConfigMap.
func makeChart(version, colour string) string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "paint")
	Expect(os.MkdirAll(filepath.Join(dir, "templates"), 0o755)).To(Succeed())
	for name, content := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: paint\nversion: " + version + "\n",
		"values.yaml": "colour: " + colour + "\n",
		"templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {colour: "{{ .Values.colour }}", version: "{{ .Chart.Version }}", kubernetes: "{{ .Capabilities.KubeVersion }}"}
`,
	} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	return dir
}

// helmFor returns a function that runs the real Helm with a kubeconfig and fails the spec on an
// error.
func helmFor(config *rest.Config) func(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	program, err := env.Program("helm")
	Expect(err).NotTo(HaveOccurred())
	home := GinkgoT().TempDir()
	path := filepath.Join(home, "kubeconfig")
	Expect(env.WriteKubeconfig(path, config)).To(Succeed())
	return func(ctx context.Context, arguments ...string) string {
		GinkgoHelper()
		command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", path, "--namespace", namespace}, arguments...)...)
		command.Env = append(os.Environ(), "HOME="+home)
		out, err := command.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			Fail("helm " + strings.Join(arguments, " ") + ": " + string(exit.Stderr))
		}
		Expect(err).NotTo(HaveOccurred())
		return string(out)
	}
}

var _ = Describe("Helm", func() {
	It("installs, upgrades, rolls back and uninstalls a chart on a member through both endpoints", func(ctx SpecContext) {
		first, second := makeChart("1.0.0", "red"), makeChart("2.0.0", "green")
		for way, config := range throughBoth() {
			By("through " + way)
			helm := helmFor(config)
			const release = "paint"
			onMember := func() map[string]string {
				GinkgoHelper()
				var got corev1.ConfigMap
				Expect(memberClient.Get(ctx, keyOf(release), &got)).To(Succeed())
				return got.Data
			}
			Expect(helm(ctx, "install", release, first, "--dry-run=server")).To(ContainSubstring("colour: \"red\""))
			Expect(memberClient.Get(ctx, keyOf(release), &corev1.ConfigMap{})).NotTo(Succeed(), "a dry run changes nothing")

			Expect(helm(ctx, "install", release, first, "--wait")).To(ContainSubstring("STATUS: deployed"))
			Expect(onMember()).To(And(HaveKeyWithValue("colour", "red"), HaveKeyWithValue("kubernetes", HavePrefix("v1."))))
			Expect(helm(ctx, "upgrade", release, second, "--wait", "--set", "colour=blue")).To(ContainSubstring("REVISION: 2"))
			Expect(onMember()).To(And(HaveKeyWithValue("colour", "blue"), HaveKeyWithValue("version", "2.0.0")))
			helm(ctx, "rollback", release, "1", "--wait")
			Expect(onMember()).To(And(HaveKeyWithValue("colour", "red"), HaveKeyWithValue("version", "1.0.0")))
			Expect(helm(ctx, "history", release)).To(ContainSubstring("Rollback to 1"))
			Expect(helm(ctx, "list", "--short")).To(ContainSubstring(release + "\n"))
			Expect(helm(ctx, "get", "manifest", release)).To(ContainSubstring("colour: \"red\""))
			helm(ctx, "uninstall", release, "--wait")
			Expect(helm(ctx, "list", "--short")).NotTo(ContainSubstring(release))
			Expect(memberClient.Get(ctx, keyOf(release), &corev1.ConfigMap{})).NotTo(Succeed())
		}
	})
})

// labelled creates ConfigMaps on the member with a label that is unique to the spec.
func labelled(ctx context.Context, label string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		expect.Created(ctx, memberClient, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"spec": label},
		}})
	}
	DeferCleanup(func(ctx SpecContext) {
		Expect(memberClient.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace), client.MatchingLabels{"spec": label})).To(Succeed())
	})
}

var _ = Describe("A client of the member", func() {
	It("can list in pages and delete a collection", func(ctx SpecContext) {
		labelled(ctx, "pages", "page-1", "page-2", "page-3", "page-4", "page-5")
		for way, config := range throughBoth() {
			By("through " + way)
			api := clientsetFor(config).CoreV1().ConfigMaps(namespace)
			page, err := api.List(ctx, metav1.ListOptions{LabelSelector: "spec=pages", Limit: 2})
			Expect(err).NotTo(HaveOccurred())
			Expect(page.Items).To(HaveLen(2))
			rest, err := api.List(ctx, metav1.ListOptions{LabelSelector: "spec=pages", Limit: 10, Continue: page.Continue})
			Expect(err).NotTo(HaveOccurred())
			Expect(rest.Items).To(HaveLen(3))
			Expect(must(ctx, config, "", "-n", namespace, "get", "configmaps", "-l", "spec=pages", "--chunk-size=2", "-o", "name")).
				To(Equal("configmap/page-1\nconfigmap/page-2\nconfigmap/page-3\nconfigmap/page-4\nconfigmap/page-5\n"))
		}
		api := clientsetFor(configFor(memberName, editor, team)).CoreV1().ConfigMaps(namespace)
		Expect(api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "spec=pages"})).To(Succeed())
		left, err := api.List(ctx, metav1.ListOptions{LabelSelector: "spec=pages"})
		Expect(err).NotTo(HaveOccurred())
		Expect(left.Items).To(BeEmpty())
	})

	It("can stream a list as a watch", func(ctx SpecContext) {
		labelled(ctx, "watch-list", "watch-list-1", "watch-list-2")
		for way, config := range throughBoth() {
			By("through " + way)
			w, err := clientsetFor(config).CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{
				LabelSelector: "spec=watch-list", SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(w.Stop)
			for range 2 {
				Eventually(w.ResultChan()).Should(Receive(HaveField("Type", watch.Added)))
			}
			var end watch.Event
			Eventually(w.ResultChan()).Should(Receive(&end))
			Expect(end.Type).To(Equal(watch.Bookmark))
			Expect(end.Object.(*corev1.ConfigMap).Annotations).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
		}
	})

	It("gets protobuf and gzip responses as the member wrote them", func(ctx SpecContext) {
		labelled(ctx, "large", "large")
		var large corev1.ConfigMap
		Expect(memberClient.Get(ctx, keyOf("large"), &large)).To(Succeed())
		large.Data = map[string]string{"text": strings.Repeat("compressible ", 20_000)}
		Expect(memberClient.Update(ctx, &large)).To(Succeed())
		for way, config := range throughBoth() {
			By("through " + way)
			config.ContentType = runtime.ContentTypeProtobuf
			var kind string
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					res, err := next.RoundTrip(r)
					if err == nil {
						kind = res.Header.Get("Content-Type")
					}
					return res, err
				})
			})
			list, err := clientsetFor(config).CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "spec=large"})
			Expect(err).NotTo(HaveOccurred())
			Expect(kind).To(Equal(runtime.ContentTypeProtobuf))
			Expect(list.Items).To(ConsistOf(HaveField("Data", large.Data)))

			plain := rest.CopyConfig(config)
			plain.DisableCompression = true
			httpClient, err := rest.HTTPClientFor(plain)
			Expect(err).NotTo(HaveOccurred())
			request, err := http.NewRequestWithContext(ctx, http.MethodGet,
				plain.Host+"/api/v1/namespaces/"+namespace+"/configmaps?labelSelector=spec%3Dlarge", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Accept-Encoding", "gzip")
			response, err := httpClient.Do(request)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(response.Body.Close)
			Expect(response.Header.Get("Content-Encoding")).To(Equal("gzip"))
			unpacked, err := gzip.NewReader(response.Body)
			Expect(err).NotTo(HaveOccurred())
			var same corev1.ConfigMapList
			Expect(json.NewDecoder(unpacked).Decode(&same)).To(Succeed())
			Expect(same.Items).To(ConsistOf(HaveField("Data", large.Data)))
		}
	})

	It("can use discovery and kubectl explain", func(ctx SpecContext) {
		for way, config := range throughBoth() {
			By("through " + way)
			Expect(must(ctx, config, "", "api-resources", "--api-group=apps", "-o", "name")).To(ContainSubstring("deployments.apps\n"))
			Expect(must(ctx, config, "", "explain", "deployment.spec.replicas")).To(ContainSubstring("FIELD: replicas <integer>"))
			Expect(must(ctx, config, "", "version")).To(ContainSubstring("Server Version: v1."))
			document, err := clientsetFor(config).Discovery().OpenAPISchema()
			Expect(err).NotTo(HaveOccurred())
			Expect(document.GetPaths().GetPath()).NotTo(BeEmpty())
		}
	})

	It("can run a controller-runtime cache", func(ctx SpecContext) {
		labelled(ctx, "cache", "cached-1")
		objects, err := cache.New(configFor(memberName, editor, team), cache.Options{
			Scheme: testScheme(), DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"spec": "cache"})}},
		})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- objects.Start(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(BeNil()))
		})
		names := func(g Gomega) (found []string) {
			var list corev1.ConfigMapList
			g.Expect(objects.List(ctx, &list)).To(Succeed(), "the cache may still be starting")
			for _, item := range list.Items {
				found = append(found, item.Name)
			}
			return found
		}
		Eventually(names).Should(ConsistOf("cached-1"))
		labelled(ctx, "cache", "cached-2")
		Eventually(names).Should(ConsistOf("cached-1", "cached-2"))
	})

	It("can use kubectl proxy", func(ctx SpecContext) {
		_, out, errs := begin(ctx, "WebSocket", configFor(memberName, editor, team), nil, "proxy", "--port=0", "--append-server-path")
		line, err := out.ReadString('\n')
		Expect(err).NotTo(HaveOccurred(), errs.String())
		address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
		Expect(address).NotTo(BeEmpty(), line)
		response, err := http.Post("http://"+address+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json",
			strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(response.Body.Close)
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(body)).To(ContainSubstring(`"username":"editor","groups":["team-a","system:authenticated"]`))
		response, err = http.Get("http://" + address + "/api/v1/namespaces/" + namespace + "/configmaps?limit=1")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(response.Body.Close)
		body, err = io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
		Expect(string(body)).To(ContainSubstring(`"kind":"ConfigMapList"`))
	})
})

// ownAddress returns an address of this machine that an API server proxies to, or an empty string.
// API servers refuse to proxy to loopback.
func ownAddress() string {
	GinkgoHelper()
	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())
	for _, address := range addresses {
		if of, ok := address.(*net.IPNet); ok && of.IP.IsGlobalUnicast() && of.IP.To4() != nil {
			return of.IP.String()
		}
	}
	return ""
}

var _ = Describe("A Service of the member", func() {
	It("is reached through services/proxy by both endpoints, also with a body", func(ctx SpecContext) {
		ip := ownAddress()
		if ip == "" {
			Skip("this machine has only loopback addresses, to which an API server does not proxy")
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s got %d bytes", r.Method, r.URL, len(body))
		}))
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		Expect(err).NotTo(HaveOccurred())
		_ = server.Listener.Close()
		server.Listener = listener
		server.Start()
		DeferCleanup(server.Close)

		startNode(ctx, "backend")
		var pod corev1.Pod
		Expect(memberClient.Get(ctx, keyOf("backend"), &pod)).To(Succeed())
		pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		Expect(memberClient.Status().Update(ctx, &pod)).To(Succeed())
		port := int32(listener.Addr().(*net.TCPAddr).Port)
		expect.Created(ctx, memberClient,
			&corev1.Service{ObjectMeta: build.In(namespace, "backend"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
			//lint:ignore SA1019 The API server proxies by Endpoints, whatever is said of them.
			&corev1.Endpoints{ObjectMeta: build.In(namespace, "backend"), Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: ip, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "backend"}}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: port}},
			}}})
		DeferCleanup(func(ctx SpecContext) {
			Expect(memberClient.Delete(ctx, &corev1.Service{ObjectMeta: build.In(namespace, "backend")})).To(Succeed())
		})
		for way, config := range throughBoth() {
			By("through " + way)
			got, err := clientsetFor(config).CoreV1().Services(namespace).ProxyGet("http", "backend", "http", "a/b", map[string]string{"c": "d e"}).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(got)).To(Equal("GET /a/b?c=d+e got 0 bytes"))
			const size = 8 << 20
			got, err = clientsetFor(config).CoreV1().RESTClient().Post().Namespace(namespace).Resource("services").Name("http:backend:80").
				SubResource("proxy").Suffix("upload").Body(bytes.NewReader(make([]byte, size))).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(got)).To(Equal(fmt.Sprintf("POST /upload got %d bytes", size)))
		}
		Expect(clientsetFor(configFor(memberName, viewer, team)).CoreV1().RESTClient().Post().Namespace(namespace).Resource("services").
			Name("http:backend:80").SubResource("proxy").Suffix("upload").Do(ctx).Error()).To(MatchError(ContainSubstring("orbidden")))
	})
})
