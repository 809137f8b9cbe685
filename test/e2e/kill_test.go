// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
)

// Each process is killed at a moment that the seed of the run decides (-ginkgo.seed repeats it),
// once by make test and five times by make test-matrix.
var _ = Describe("kill -9 during make up", Ordered, func() {
	rounds := 1
	if os.Getenv("FLEETGATE_MATRIX") != "" {
		rounds = 5
	}
	var expected state

	BeforeAll(func(ctx context.Context) {
		l := newFolder()
		out, err := l.launcher(ctx, "up")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(func(g Gomega) {
			var err error
			expected, err = l.look(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(expected.Works).To(HaveLen(4))
			for _, member := range []string{"member-1", "member-2"} {
				g.Expect(expected.Members[member]).To(ContainElement("TunnelConnected=True " + tunnelReason()))
			}
		}).Should(Succeed())
		out, err = l.launcher(ctx, "down")
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("ends in the same state whichever process is killed", func(ctx context.Context) {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		for range rounds {
			l := newFolder()
			l.upWhileKilling(ctx, random)
			Eventually(func() (state, error) { return l.look(ctx) }).Should(Equal(expected))
		}
	})
})

// upWhileKilling runs the launcher while each process is killed once, and again if the launcher
// gave up because of a kill.
func (l *launched) upWhileKilling(ctx context.Context, random *rand.Rand) {
	GinkgoHelper()
	victims := []string{"gateway", "member-1-agent", "member-2-agent"}
	random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, victim := range victims {
		after := time.Duration(random.Int64N(int64(3 * time.Second)))
		Eventually(func() (bool, error) {
			ended, failure := make(chan struct{}), error(nil)
			go func() {
				defer close(ended)
				_, failure = l.launcher(ctx, "up")
			}()
			killed, err := l.killOnceItRuns(ctx, victim, after, ended)
			// The launcher may have failed and said so, or may no longer need the process.
			if <-ended; failure != nil {
				GinkgoWriter.Printf("up, with %s killed %s after its start: %v\n", victim, after, failure)
			}
			return killed, err
		}).Should(BeTrue(), "%s was never started", victim)
	}
	Eventually(func() error {
		_, err := l.launcher(ctx, "up")
		return err
	}).Should(Succeed())
}

// killOnceItRuns waits for the process and some more time, then kills it. It returns false if the
// launcher gave up before, because it had not recovered from the previous kill.
func (l *launched) killOnceItRuns(ctx context.Context, name string, after time.Duration, gaveUp <-chan struct{}) (bool, error) {
	for ctx.Err() == nil {
		all, err := env.Processes(l.dir)
		if err != nil {
			return false, err
		}
		for _, p := range all {
			if p.Name() != name || !p.Running() {
				continue
			}
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(after):
			}
			return true, p.Kill()
		}
		select {
		case <-ctx.Done():
		case <-gaveUp:
			return false, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false, ctx.Err()
}
