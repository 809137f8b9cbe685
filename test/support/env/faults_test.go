// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/support/env"
)

var _ = Describe("A degraded cluster", func() {
	It("does not answer while its API server is frozen", func(ctx SpecContext) {
		Expect(member.APIServer.Freeze()).To(Succeed())
		DeferCleanup(member.APIServer.Thaw)
		err := ask(ctx, member.Config(), 500*time.Millisecond)
		Expect(os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded)).To(BeTrue(), "got %v", err)
		Expect(member.APIServer.Thaw()).To(Succeed())
		Expect(ask(ctx, member.Config(), time.Minute)).To(Succeed())
	})

	It("answers again after all of it was frozen", func(ctx SpecContext) {
		Expect(member.Freeze()).To(Succeed())
		DeferCleanup(member.Thaw)
		Expect(ask(ctx, member.Config(), 500*time.Millisecond)).NotTo(Succeed())
		Expect(member.Thaw()).To(Succeed())
		Eventually(func() error { return ask(ctx, member.Config(), 10*time.Second) }).Should(Succeed())
	})

	It("keeps address and data when its API server is killed and restarted", func(ctx SpecContext) {
		kubectl(ctx, hub, "", "create", "configmap", "kept")
		Expect(hub.APIServer.Kill()).To(Succeed())
		Expect(ask(ctx, hub.Config(), time.Second)).NotTo(Succeed())
		Expect(hub.APIServer.Restart(ctx)).To(Succeed())
		_, err := client(hub).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.Running()).To(BeTrue())
	})

	It("is out of reach when its link is cut", func(ctx SpecContext) {
		address, err := url.Parse(hub.URL)
		Expect(err).NotTo(HaveOccurred())
		link, err := env.NewLink(address.Host)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		over := link.Config(hub.Config())
		Expect(ask(ctx, over, time.Minute)).To(Succeed())
		link.Cut()
		Expect(ask(ctx, over, time.Second)).NotTo(Succeed())
		link.Mend()
		Expect(ask(ctx, over, time.Minute)).To(Succeed())
	})
})

var _ = Describe("A detached cluster", func() {
	It("is found, stopped and resumed by another command", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "kept")
		started, err := env.Start(ctx, env.Options{Name: "kept", Dir: dir, Detached: true, Progress: progress})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { stopRecorded(ctx, dir) })
		kubectl(ctx, started, "", "create", "configmap", "kept")
		_, err = env.Start(ctx, env.Options{Name: "kept", Dir: dir, Detached: true})
		Expect(err).To(MatchError(ContainSubstring("holds a cluster already")))

		found, err := env.Load(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Running()).To(BeTrue())
		Expect(found.URL).To(Equal(started.URL))
		Expect(found.APIServer.PID()).To(Equal(started.APIServer.PID()))
		Expect(found.Stop(ctx)).To(Succeed())
		expectNothingLeft(started)

		By("refusing to resume while another program has its port")
		address, err := url.Parse(found.URL)
		Expect(err).NotTo(HaveOccurred())
		intruder, err := net.Listen("tcp", address.Host)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Resume(ctx)).To(MatchError(ContainSubstring("address already in use")))
		Expect(intruder.Close()).To(Succeed())

		Expect(found.Resume(ctx)).To(Succeed())
		Expect(kubectl(ctx, found, "", "get", "configmap", "kept", "-o", "name")).To(Equal("configmap/kept\n"))
		Expect(found.Stop(ctx)).To(Succeed())
		expectNothingLeft(found)
	})
})

var _ = Describe("Start", func() {
	It("names the failed program with the end of its log, and leaves nothing behind", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		_, err := env.Start(ctx, env.Options{Name: "broken", Dir: dir, APIServerFlags: []string{"--no-such-flag"}})
		var failed *env.StartError
		Expect(errors.As(err, &failed)).To(BeTrue(), "got %v", err)
		Expect(failed.Program).To(Equal("kube-apiserver"))
		Expect(failed.LogTail).To(ContainSubstring("unknown flag: --no-such-flag"))
		Expect(failed.LogPath).To(BeARegularFile())
		Expect(env.Processes(dir)).To(BeEmpty())
		_, err = env.Load(dir)
		Expect(err).To(MatchError(fs.ErrNotExist))
	})

	It("names the remedy when a program is missing", func(ctx SpecContext) {
		_, err := env.Start(ctx, env.Options{Name: "empty", BinDir: GinkgoT().TempDir()})
		Expect(err).To(MatchError(ContainSubstring(`run "make kube"`)))
	})

	It("leaves no process when the test panics", func() {
		for _, group := range panickingChild(GinkgoTB(), "TestChildWithClusterThatPanics") {
			expectGone(GinkgoTB(), group)
		}
	})
})

// TestChildWithClusterThatPanics is no test of its own: the spec above runs it.
func TestChildWithClusterThatPanics(t *testing.T) {
	childArgument(t)
	c, err := env.Start(t.Context(), env.Options{Name: "doomed", Dir: t.TempDir(), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Processes() {
		fmt.Printf("group %d\n", p.PID())
	}
	panicBeyondTheTest()
}

// ask sends one request.
func ask(ctx context.Context, cfg *rest.Config, patience time.Duration) error {
	GinkgoHelper()
	cfg.Timeout = patience
	c := clientOf(kubernetes.NewForConfig(cfg))
	_, err := c.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}

func stopRecorded(ctx context.Context, dir string) {
	GinkgoHelper()
	left, err := env.Processes(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range left {
		Expect(p.Stop(ctx)).To(Succeed())
	}
}
