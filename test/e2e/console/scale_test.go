// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/onehub"
	"fleetgate.io/fleetgate/test/support/stored"
)

const (
	// Failing placements fail on all members.
	manyMembers, manyPlacements, manyFailing = 1000, 100, 5
	// mostHeap is what a page may have of JavaScript, in bytes.
	mostHeap = 50 << 20
)

var _ = Describe("A thousand members and a hundred placements", Ordered, func() {
	var kubeconfig string

	BeforeAll(func(ctx SpecContext) {
		prepareBrowser(ctx)
		many := onehub.Start(ctx)
		kinds, err := stored.Kinds()
		onehub.Serve(many, kinds, err)
		c, err := stored.Client(ctx, many.Config())
		Expect(err).NotTo(HaveOccurred())
		var all []client.Object
		for i := range manyMembers {
			all = append(all, stored.Member(i), stored.Gateway(i), stored.Binding(0, i, true))
		}
		for i := range manyPlacements {
			refusing := 0
			if i < manyFailing {
				refusing = manyMembers
			}
			all = append(all, stored.Placement(i, refusing))
		}
		Expect(stored.Write(ctx, c, all)).To(Succeed())
		kubeconfig, err = many.Kubeconfig("administrator", "system:masters")
		Expect(err).NotTo(HaveOccurred())
	})

	It("are shown by members, why and tree", func(ctx SpecContext) {
		home, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl-fleetgate"))
		Expect(err).NotTo(HaveOccurred())
		cache := GinkgoT().TempDir()
		for _, call := range []struct {
			args []string
			want string
		}{
			{[]string{"members"}, "member-999"}, {[]string{"why", "placement-0"}, " more): not applied: exceeded quota"}, {[]string{"tree", "placement-0", "--not-ready"}, "member member-999: not applied"},
		} {
			// The first asks the hub for its kinds, as kubectl's first does.
			for _, which := range []string{"first", "next"} {
				command := exec.CommandContext(ctx, home, append([]string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + cache}, call.args...)...)
				command.Env = append(os.Environ(), "HOME="+cache)
				started := time.Now()
				out, err := command.CombinedOutput()
				took := time.Since(started)
				if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 2 {
					err = nil // It has found a problem.
				}
				Expect(err).NotTo(HaveOccurred(), string(out))
				Expect(string(out)).To(ContainSubstring(call.want))
				AddReportEntry(fmt.Sprintf("%s, %s", call.args[0], which), took.Round(time.Millisecond).String())
			}
		}
	})

	It("fit into a page", func() {
		b := openConsole(kubeconfig)
		call(b, performance.Enable, performance.EnableParams{})
		for name, path := range map[string]string{"fleet": "/?by=region", "placements": "/placements", "placement": "/placement?name=placement-0", "problems": "/problems"} {
			b.show(path)
			b.picture("thousand-" + name)
			took := b.text("String(Math.round(performance.getEntriesByType('navigation')[0].domComplete))")
			answered := b.text("String(Math.round(performance.getEntriesByType('navigation')[0].responseStart))")
			call(b, heapprofiler.CollectGarbage, cdp.Empty{})
			heap := 0.0
			for _, metric := range call(b, performance.GetMetrics, cdp.Empty{}).Metrics {
				if metric.Name == "JSHeapUsedSize" {
					heap = metric.Value
				}
			}
			Expect(heap).To(And(BeNumerically(">", 0), BeNumerically("<", mostHeap)), path)
			AddReportEntry("page "+name, fmt.Sprintf("%s ms until it has loaded, %s ms of it until the server answers; %.1f MB of heap", took, answered, heap/1e6))
		}
		b.show("/?by=region")
		Expect(b.text("String(document.querySelectorAll('.tiles a').length)")).To(Equal("1000"))
		Expect(b.text("String(document.querySelector('.tiles').getBoundingClientRect().bottom <= 900)")).To(Equal("true"), "on one screen")
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.picture("thousand-" + scheme)
		}
		Expect(b.told()).To(BeEmpty())
	})
})
