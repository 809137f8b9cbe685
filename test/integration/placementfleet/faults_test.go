// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/faults"
	"fleetgate.io/fleetgate/test/support/program"
)

// ways are the connections of gateway and agents to the hub, in which specs inject faults.
var ways program.FaultyWays

// goesWrong injects a fault between hub and gateway and between hub and agents.
func goesWrong(f faults.Faults) {
	for _, way := range ways {
		way.Set(f)
	}
}

// troubles are the injected faults of a hub.
var troubles = map[string]faults.Faults{
	"its API server answers after two seconds": {Delay: 2 * time.Second},
	"it refuses every tenth request":           {RefuseEvery: 10},
	"it loses watches":                         {WatchesLast: 3 * time.Second},
	"all of it":                                {Delay: 500 * time.Millisecond, RefuseEvery: 10, WatchesLast: 5 * time.Second},
	"nothing is":                               {},
}

// isBearable reports whether a gateway becomes ready on a hub with this fault within one step of
// the storm, which then kills it.
func isBearable(f faults.Faults) bool { return f.Delay < time.Second }

// keepsOne places a shop with an unused name on all members and returns the deletions that it has
// seen since.
func keepsOne(ctx context.Context, name string) func() []string {
	GinkgoHelper()
	shop(ctx, name)
	DeferCleanup(func(ctx context.Context) {
		Expect(hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	})
	place(ctx, name, func(spec *placementv1beta1.PlacementSpec) {})
	Eventually(colours).WithContext(ctx).WithArguments(name).Should(Equal("red red red"))
	var mu sync.Mutex
	var deleted []string
	for _, m := range running.Members {
		watching, err := client.NewWithWatch(m.Cluster.Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		w, err := watching.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(name), client.MatchingFields{"metadata.name": "settings"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				if event.Type == watch.Deleted {
					mu.Lock()
					deleted = append(deleted, m.Name)
					mu.Unlock()
				}
			}
		}()
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(deleted)
	}
}

var _ = Describe("A degraded hub", func() {
	AfterEach(func(ctx SpecContext) {
		goesWrong(faults.Faults{})
		if !running.Gateway.Running() {
			Expect(running.Gateway.Start(ctx)).To(Succeed())
		}
	})

	for what, wrong := range troubles {
		if wrong == (faults.Faults{}) {
			continue
		}
		It("continues to deliver placements and removes nothing from members while "+what, func(ctx SpecContext) {
			name := "kept-" + strconv.Itoa(len(what)) // The lengths of the texts differ, so the names do.
			kept := keepsOne(ctx, name)
			goesWrong(wrong)
			for _, colour := range []string{"green", "blue"} {
				paint(ctx, name, colour)
				Eventually(colours).WithContext(ctx).WithArguments(name).WithTimeout(2 * time.Minute).Should(Equal(colour + " " + colour + " " + colour))
			}
			Expect(running.Gateway.Kill()).To(Succeed())
			began := time.Now()
			Expect(running.Gateway.Start(ctx)).To(Succeed()) // It has to look at everything.
			AddReportEntry("a gateway was ready after", time.Since(began).Round(time.Second).String())
			paint(ctx, name, "white")
			Eventually(colours).WithContext(ctx).WithArguments(name).WithTimeout(2 * time.Minute).Should(Equal("white white white"))
			Expect(kept()).To(BeEmpty(), "deleted on members")
			if wrong.RefuseEvery > 0 {
				for _, way := range ways {
					refused, of := way.Refused()
					Expect(refused).NotTo(BeZero(), "of %d requests", of)
				}
			}
		})
	}

	It("keeps members running, reachable and reported while its etcd is full", func(ctx SpecContext) {
		kept := keepsOne(ctx, "kept-full")
		Expect(running.Hub.Fill(ctx)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(running.Hub.Drain(ctx)).To(Succeed()) })
		Eventually(func(ctx context.Context) error {
			return hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kept-full", GenerateName: "full-"}})
		}).WithContext(ctx).Should(MatchError(ContainSubstring("database space exceeded")))
		for _, m := range running.Members {
			Expect(m.Agent.Restart(ctx)).To(Succeed(), "an agent starts")
		}
		Eventually(running.AwaitTunnels).WithContext(ctx).Should(Succeed())
		Expect(running.Hub.Drain(ctx)).To(Succeed())
		paint(ctx, "kept-full", "green")
		Eventually(colours).WithContext(ctx).WithArguments("kept-full").WithTimeout(2 * time.Minute).Should(Equal("green green green"))
		Expect(kept()).To(BeEmpty(), "deleted on members")
	})
})
