// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The console", Ordered, ContinueOnFailure, func() {
	var browser *http.Client
	var base string

	// page fetches a page as a browser does; every name below localhost resolves to loopback.
	page := func(ctx context.Context, path string) string {
		GinkgoHelper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		response, err := browser.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(response.Body.Close()).To(Succeed()) }()
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
		return string(body)
	}

	BeforeAll(func(ctx SpecContext) {
		jar, err := cookiejar.New(nil)
		Expect(err).NotTo(HaveOccurred())
		browser = &http.Client{Jar: jar, Timeout: 20 * time.Second, Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
			},
		}}
		command := exec.Command(filepath.Join(running.BinDir, "kubectl-fleetgate"), "console", "--open=false", "--kubeconfig="+running.HubKubeconfig())
		command.Env = append(os.Environ(), "HOME="+running.Dir, "TMPDIR="+GinkgoT().TempDir())
		out, err := command.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		DeferCleanup(func() {
			Expect(command.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(command.Wait()).To(Succeed(), "it ends on the signal")
		})
		lines := bufio.NewReader(out)
		_, err = lines.ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		file, err := lines.ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		file = strings.TrimSpace(file)
		info, err := os.Stat(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		open := regexp.MustCompile(`href="([^"]+)"`).FindSubmatch(text)
		Expect(open).NotTo(BeNil())
		address, err := url.Parse(strings.ReplaceAll(string(open[1]), "&amp;", "&"))
		Expect(err).NotTo(HaveOccurred())
		base = "http://" + address.Host
		Expect(page(ctx, address.RequestURI())).To(ContainSubstring("Continue"))
	})

	It("shows what kubectl shows", func(ctx SpecContext) {
		Expect(page(ctx, "/?by=name")).To(And(ContainSubstring(first), ContainSubstring(second), ContainSubstring("<svg")))
		Expect(page(ctx, "/member?name="+first)).To(And(ContainSubstring("Placed resources"), ContainSubstring("v1.")))
		// Members of other specs may be about to be deleted.
		staying := `--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`
		for _, name := range strings.Fields(hub(ctx, "", "get", "clusterresourceplacements", staying)) {
			Expect(page(ctx, "/placements")).To(ContainSubstring("/placement?name=" + name))
			Expect(page(ctx, "/placement?name="+name)).To(ContainSubstring("placement " + name))
		}
		Expect(page(ctx, "/runs")).To(ContainSubstring("Update runs"))
		Expect(page(ctx, "/problems")).To(ContainSubstring("<h1>Problems</h1>"))
	})

	It("searches members", func(ctx SpecContext) {
		for _, member := range []string{first, second} {
			onMember(ctx, member, allowed, "apply", "--filename=-")
		}
		Eventually(func() string { return page(ctx, "/search?kind=nodes") }).Should(And(ContainSubstring("member-1-node-1"), ContainSubstring("member-2-node-1")))
		Expect(page(ctx, "/search?kind=nodes&members=name%3D"+second)).NotTo(ContainSubstring("member-1-node-1"))
	})

	It("searches for any kind that a member serves", func(ctx SpecContext) {
		onMember(ctx, second, definition("sprockets.example.com", "Sprocket", "{size: {type: string}}"), "apply", "--filename=-")
		onMember(ctx, second, "", "wait", "customresourcedefinition/sprockets.example.com", "--for=condition=Established", "--timeout=30s")
		onMember(ctx, second, strings.Replace(object("Sprocket"), "namespace: sprocket", "namespace: default", 1), "apply", "--filename=-")
		Eventually(func() string { return page(ctx, "/search?kind=sprockets.example.com") }).Should(And(
			ContainSubstring("<option selected>sprockets.example.com</option>"), MatchRegexp(`<td>default</td>.*<td>one</td>`)))
		Expect(page(ctx, "/search?kind=sprockets.example.com&namespace=kube-system")).To(ContainSubstring("No resources found."))
		Expect(page(ctx, "/search?kind=clusterroles.rbac.authorization.k8s.io&namespace=default")).To(ContainSubstring("cluster-admin"))
	})

	It("notifies pages of changes", func(ctx SpecContext) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/events", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		response, err := browser.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		events := bufio.NewReader(response.Body)
		Expect(events.ReadString('\n')).To(Equal(": hello\n"))
		plugin(ctx, "taint", second, "seen:NoSchedule")
		DeferCleanup(func(ctx SpecContext) { plugin(ctx, "taint", second, "seen-") })
		for line := ""; line != "data: changed\n"; {
			line, err = events.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(page(ctx, "/member?name="+second)).To(ContainSubstring("seen:NoSchedule"))
	})

	It("rejects requests without its credential", func(ctx SpecContext) {
		stranger := &http.Client{Transport: browser.Transport}
		response, err := stranger.Get(base + "/")
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusForbidden))
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		request.Host = "localhost"
		response, err = browser.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusMisdirectedRequest))
	})
})
