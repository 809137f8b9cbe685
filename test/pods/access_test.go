// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// webPod is the Pod of Deployment web on the member.
func webPod(ctx context.Context) string {
	GinkgoHelper()
	var name string
	Eventually(func(g Gomega) {
		out, err := throughHub(ctx, "get", "pods", "--selector=app=web", "--field-selector=status.phase=Running", "--output=jsonpath={.items[*].metadata.name}").Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Fields(string(out))).To(HaveLen(1))
		name = string(out)
	}).Should(Succeed())
	return name
}

func runsCommands(ctx SpecContext) {
	pod := webPod(ctx)
	var stdout, stderr bytes.Buffer
	command := throughHub(ctx, "exec", "--stdin", pod, "--", "sh", "-c", "cat; echo problem >&2; exit 7")
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader("what goes in\n"), &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	Expect(errors.As(err, &exit)).To(BeTrue(), "%v: %s", err, &stderr)
	Expect(exit.ExitCode()).To(Equal(7))
	Expect(stdout.String()).To(Equal("what goes in\n"))
	Expect(stderr.String()).To(ContainSubstring("problem"))
}

func followsLog(ctx SpecContext) {
	command := throughHub(ctx, "logs", "--follow", webPod(ctx))
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	lines := bufio.NewScanner(out)
	// The Pod writes one in a second: those after the first few come while the log is followed.
	for i := range 10 {
		Expect(lines.Scan()).To(BeTrue(), "%v", lines.Err())
		Expect(lines.Text()).To(Equal(fmt.Sprintf("line %d", i)))
	}
	Expect(command.Process.Kill()).To(Succeed())
	_, _ = io.Copy(io.Discard, out)
	// It was killed, so it says so.
	_ = command.Wait()
}

func copiesFiles(ctx SpecContext) {
	pod := webPod(ctx)
	const size = 8 << 20
	content := make([]byte, size)
	_, err := rand.Read(content)
	Expect(err).NotTo(HaveOccurred())
	there, back := filepath.Join(work, "there"), filepath.Join(work, "back")
	Expect(os.WriteFile(there, content, 0o600)).To(Succeed())

	Expect(throughHub(ctx, "cp", there, pod+":/tmp/file").CombinedOutput()).Error().NotTo(HaveOccurred())
	Expect(throughHub(ctx, "cp", pod+":/tmp/file", back).CombinedOutput()).Error().NotTo(HaveOccurred())
	got, err := os.ReadFile(back)
	Expect(err).NotTo(HaveOccurred())
	Expect(bytes.Equal(got, content)).To(BeTrue(), "%d bytes sent, %d received", len(content), len(got))
}

// servesPages reads what the web server serves, by the member's API server, which is asked for
// the Pod itself and for the Service before it. A path that ends with the word proxy is redirected by
// the API server to the one with a slash, and /more by the web server to /more/, as servers of
// files do. A port of a Service that has a name is asked for by it.
func servesPages(ctx SpecContext) {
	for _, of := range []string{"pods/" + webPod(ctx) + ":8080", "services/web:pages", "services/http:web:pages"} {
		prefix := "/api/v1/namespaces/shop/" + of + "/proxy"
		read := func(path string) (string, error) {
			out, err := throughHub(ctx, "get", "--raw", prefix+path).CombinedOutput()
			return string(out), err
		}
		// A Service has its first endpoint a moment after its Pod is ready.
		Eventually(func() (string, error) { return read("/") }).Should(Equal("Welcome to the shop\n"), of)
		for path, want := range map[string]string{"": "Welcome to the shop\n", "/more/": "more of it\n"} {
			out, err := read(path)
			Expect(err).NotTo(HaveOccurred(), "%s%s: %s", of, path, out)
			Expect(out).To(Equal(want), of+path)
		}
		out, err := read("/more")
		Expect(err).To(HaveOccurred(), of)
		Expect(out).To(ContainSubstring("answered with a redirect, which is not followed"), of)
	}
}

func forwardsPort(ctx SpecContext) {
	command := throughHub(ctx, "port-forward", webPod(ctx), ":8080")
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	Expect(address).NotTo(BeEmpty(), line)
	for range 3 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
		Expect(err).NotTo(HaveOccurred())
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(string(body)).To(Equal("Welcome to the shop\n"))
	}
}
