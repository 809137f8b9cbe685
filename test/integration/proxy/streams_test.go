// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/kubelet"
)

// Older clients use SPDY. Current kubectl uses it when an environment variable says so.
var protocols = map[string][]string{
	"WebSocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true", "KUBECTL_PORT_FORWARD_WEBSOCKETS=true"},
	"SPDY":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
}

// begin starts kubectl with a protocol and stops it when the spec ends.
func begin(ctx context.Context, protocol string, config *rest.Config, stdin io.Reader, arguments ...string) (command *exec.Cmd, stdout *bufio.Reader, stderr *output) {
	GinkgoHelper()
	program, err := env.Kubectl()
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(env.WriteKubeconfig(path, config)).To(Succeed())
	command = exec.CommandContext(ctx, program, append([]string{"--kubeconfig", path, "-n", namespace}, arguments...)...)
	command.Env = append(os.Environ(), protocols[protocol]...)
	stderr = &output{}
	command.Stdin, command.Stderr = stdin, stderr
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command, bufio.NewReader(out), stderr
}

// output is what a running command has written so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// finish waits until a command succeeds and returns its output.
func finish(command *exec.Cmd, stdout io.Reader, stderr *output) string {
	GinkgoHelper()
	all, err := io.ReadAll(stdout)
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Wait()).To(Succeed(), "%s: %s", strings.Join(command.Args[3:], " "), stderr)
	return string(all)
}

// throughBoth are the two endpoints for the member.
func throughBoth() map[string]*rest.Config {
	return map[string]*rest.Config{
		"the hub": configFor(memberName, editor, team), "the gateway's own endpoint": endpointConfig(hubConfig(editor, team)),
	}
}

// startNode registers a node with its own kubelet on the member, and a Pod on it.
func startNode(ctx context.Context, pod string) *kubelet.Server {
	GinkgoHelper()
	k := kubelet.Start()
	DeferCleanup(k.Close)
	node, err := k.Node(ctx, memberClient, "node-of-"+pod)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, node)).To(Succeed()) })
	// The member's controllers create the Pod's account.
	Eventually(func() error {
		_, err := kubelet.Pod(ctx, memberClient, node.Name, namespace, pod)
		return err
	}).Should(Succeed())
	return k
}

var _ = Describe("A stream", Ordered, func() {
	const pod = "streams"
	var node *kubelet.Server

	BeforeAll(func(ctx SpecContext) { node = startNode(ctx, pod) })

	for protocol := range protocols {
		It("runs commands with exec, by "+protocol, func(ctx SpecContext) {
			for way, config := range throughBoth() {
				By("through " + way)
				command, out, errs := begin(ctx, protocol, config, strings.NewReader("to standard input"), "exec", "-i", pod, "--", "sh", "-c", "cat; echo to standard error >&2")
				Expect(finish(command, out, errs)).To(Equal("to standard input"))
				Expect(errs.String()).To(ContainSubstring("to standard error"))

				command, _, _ = begin(ctx, protocol, config, nil, "exec", pod, "--", "sh", "-c", "exit 7")
				var exit *exec.ExitError
				Expect(command.Wait()).To(BeAssignableToTypeOf(exit))
				Expect(command.ProcessState.ExitCode()).To(Equal(7), "the command's exit code")
			}
		})

		It("attaches, by "+protocol, func(ctx SpecContext) {
			command, out, errs := begin(ctx, protocol, configFor(memberName, editor, team), strings.NewReader("anybody there?\n"), "attach", "-i", "-q", pod)
			Expect(finish(command, out, errs)).To(ContainSubstring("anybody there?"))
		})

		It("copies a file to the Pod and back, by "+protocol, func(ctx SpecContext) {
			here, there, back := GinkgoT().TempDir(), GinkgoT().TempDir(), GinkgoT().TempDir()
			content := make([]byte, 3<<20)
			_, err := rand.Read(content)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(filepath.Join(here, "file"), content, 0o600)).To(Succeed())
			config := configFor(memberName, editor, team)
			command, out, errs := begin(ctx, protocol, config, nil, "cp", filepath.Join(here, "file"), pod+":"+there+"/file")
			finish(command, out, errs)
			Expect(os.ReadFile(filepath.Join(there, "file"))).To(Equal(content))
			command, out, errs = begin(ctx, protocol, config, nil, "cp", pod+":"+there+"/file", filepath.Join(back, "file"))
			finish(command, out, errs)
			Expect(os.ReadFile(filepath.Join(back, "file"))).To(Equal(content))
		})

		It("forwards a port, by "+protocol, func(ctx SpecContext) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "from the pod: "+r.URL.Path) }))
			DeferCleanup(server.Close)
			_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
			_, out, errs := begin(ctx, protocol, configFor(memberName, editor, team), nil, "port-forward", "--address=127.0.0.1", "pod/"+pod, ":"+port)
			line, err := out.ReadString('\n')
			Expect(err).NotTo(HaveOccurred(), errs.String())
			local := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
			Expect(local).NotTo(BeEmpty(), line)
			for range 3 {
				response, err := http.Get("http://" + local + "/x")
				Expect(err).NotTo(HaveOccurred())
				body, err := io.ReadAll(response.Body)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(body)).To(Equal("from the pod: /x"))
				Expect(response.Body.Close()).To(Succeed())
			}
		})
	}

	It("follows a log while the gateway's token rotates", func(ctx SpecContext) {
		_, out, errs := begin(ctx, "WebSocket", configFor(memberName, editor, team), nil, "logs", "-f", pod)
		expectLine := func(want string) {
			GinkgoHelper()
			line, err := out.ReadString('\n')
			Expect(err).NotTo(HaveOccurred(), errs.String())
			Expect(line).To(Equal(want + "\n"))
		}
		expectLine(kubelet.FirstLine)
		for _, line := range []string{"one", "two", "three"} {
			rotate(ctx)
			node.Lines <- line
			expectLine(line)
		}
	})

	It("ends soon after its right is revoked", func(ctx SpecContext) {
		// On the hub: access to the member, kubectl's discovery, and Pods of one namespace.
		expect.Created(ctx, hubClient, allow("leaver", []rbacv1.PolicyRule{
			{APIGroups: []string{"cluster.core.oam.dev"}, Resources: []string{"clustergateways/proxy"}, Verbs: []string{"get"}, ResourceNames: []string{memberName}},
			{APIGroups: []string{clustergateway.InnerGroup}, Resources: []string{"nonresource"}, Verbs: []string{"get"}},
		}, user("leaver"))...)
		pods := &rbacv1.Role{ObjectMeta: build.In(namespace, "leaver"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clustergateway.InnerGroup}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get", "list", "watch"}},
		}}
		right := &rbacv1.RoleBinding{
			ObjectMeta: build.In(namespace, "leaver"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leaver"}, Subjects: []rbacv1.Subject{user("leaver")},
		}
		expect.Created(ctx, hubClient, pods, right)
		leaver := configFor(memberName, "leaver", team)
		Eventually(func() error {
			_, _, err := kubectl(ctx, leaver, "", "get", "pods", "-n", namespace)
			return err
		}).Should(Succeed())

		under := map[string]chan struct{}{}
		for name, arguments := range map[string][]string{"watch": {"get", "pods", "--watch"}, "log": {"logs", "-f", pod}} {
			_, out, errs := begin(ctx, "WebSocket", leaver, nil, arguments...)
			Expect(out.ReadString('\n')).NotTo(BeEmpty(), "%s: %s", name, errs)
			ended := make(chan struct{})
			under[name] = ended
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, out)
			}()
		}
		Expect(hubClient.Delete(ctx, right)).To(Succeed())
		for name, ended := range under {
			Eventually(ended).Should(BeClosed(), name)
		}
	})

	It("continues as an exec while the gateway's token rotates ten times", func(ctx SpecContext) {
		reader, writer := io.Pipe()
		command, out, errs := begin(ctx, "WebSocket", configFor(memberName, editor, team), reader, "exec", "-i", pod, "--", "cat")
		for range 10 {
			rotate(ctx)
			_, err := io.WriteString(writer, "still there\n")
			Expect(err).NotTo(HaveOccurred())
			line, err := out.ReadString('\n')
			Expect(err).NotTo(HaveOccurred(), errs.String())
			Expect(line).To(Equal("still there\n"))
		}
		Expect(writer.Close()).To(Succeed())
		finish(command, out, errs)
	})

	It("is rejected for a user with read-only rights", func(ctx SpecContext) {
		for protocol := range protocols {
			command, _, errs := begin(ctx, protocol, configFor(memberName, viewer, team), nil, "exec", pod, "--", "true")
			Expect(command.Wait()).NotTo(Succeed())
			Expect(errs.String()).To(ContainSubstring("orbidden"), protocol)
		}
		command, out, errs := begin(ctx, "WebSocket", configFor(memberName, viewer, team), nil, "logs", pod)
		Expect(finish(command, out, errs)).To(Equal(kubelet.FirstLine + "\n"))
	})
})
