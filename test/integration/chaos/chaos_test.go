// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// stepsPerRound is how many changes and faults there are between two checks.
const stepsPerRound = 12

// chaos is a random sequence of changes and faults. The same seed gives the same sequence.
type chaos struct {
	*model
	*ledger
	dice *rand.Rand
	// wrong are the faults that last, and where.
	wrong map[string]*env.Cluster
	// judged is the number of deletions that have been judged, counts their number by cause.
	judged int
	counts map[string]int
}

// round makes random changes, with a fault in one of three steps, and checks the members after it.
func (c *chaos) round(ctx context.Context) {
	GinkgoHelper()
	for range stepsPerRound {
		c.step++
		c.pause(ctx)
		if c.dice.IntN(3) == 0 {
			c.hurt(ctx)
		} else {
			c.act(ctx)
		}
		c.revive(ctx)
	}
	c.step++
	c.endAll(ctx)
	for _, p := range c.placements {
		if p.exists { // Members that no longer match lose the placement now.
			c.repolicy(p, "changed the policy before a check", func() { p.policies++ })
			p.write(ctx)
		}
	}
	c.check(ctx)
	if c.dice.IntN(4) == 0 {
		c.workLocally(ctx, c.placements[c.dice.IntN(len(shops))], c.members[c.dice.IntN(len(c.members))])
	}
}

// pause lets the fleet get on with some of the steps before the next one.
func (c *chaos) pause(ctx context.Context) {
	lasts := time.Duration(c.dice.IntN(3000)) * time.Millisecond
	if c.dice.IntN(3) > 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(lasts):
	}
}

var _ = Describe("Random changes and faults", func() {
	It("delete nothing from members without a cause", func(ctx SpecContext) {
		seed := expect.Seed(20261129)
		lasts := expect.Setting("FLEETGATE_CHAOS", 2*time.Minute, time.ParseDuration)
		By(fmt.Sprintf("seed %d", seed))
		startFleet(ctx)
		c := &chaos{model: newModel(ctx), ledger: openLedger(ctx), dice: rand.New(rand.NewPCG(seed, 1)), wrong: map[string]*env.Cluster{}, counts: map[string]int{}}
		DeferCleanup(func(ctx SpecContext) { c.endAll(ctx) })
		for _, p := range c.placements {
			c.place(ctx, p, "", 1)
		}
		for _, set := range c.sets {
			c.createSet(ctx, set)
		}
		c.check(ctx)
		rounds := 0
		for end := time.Now().Add(lasts); time.Now().Before(end); rounds++ {
			c.round(ctx)
		}
		c.removeAll(ctx)
		c.check(ctx)
		AddReportEntry("deletions", fmt.Sprintf("%d in %d rounds, by cause: %v", c.judged, rounds, c.counts))
		Expect(c.judged).NotTo(BeZero(), "the ledger saw no deletion, so it proves nothing")
	})
})

var _ = Describe("The ledger", func() {
	newModel := func() (*model, *placement) {
		p := &placement{name: "shop", namespace: "chaos-a", exists: true, holds: map[string]bool{"member-1": true}}
		return &model{members: []string{"member-1"}, regions: map[string]string{"member-1": "east"}, placements: []*placement{p},
			sources: map[object]source{{"ConfigMap", "chaos-a", "settings"}: {value: 1}}, local: map[spot]bool{}, claims: map[spot]claim{}, causes: map[spot][]cause{}}, p
	}
	settings := spot{"member-1", object{"ConfigMap", "chaos-a", "settings"}}

	It("rejects the deletion of an object that is needed, with its name and time", func() {
		m, _ := newModel()
		deleted := deletion{spot: settings, uid: "u-1", at: time.Now()}
		_, without := m.judge([]deletion{deleted})
		Expect(without).To(HaveExactElements(deleted.at.Format(clockFormat) + " ConfigMap chaos-a/settings on member-1 (u-1) was deleted without a cause"))
	})

	It("rejects a deletion before its cause, and accepts one after it", func() {
		m, _ := newModel()
		early := deletion{spot: settings, at: time.Now()}
		m.remove(settings.object)
		counts, without := m.judge([]deletion{early, {spot: settings, at: time.Now()}})
		Expect(without).To(HaveLen(1))
		Expect(counts).To(HaveKeyWithValue("deleted ConfigMap chaos-a/settings on the hub", 1))
	})

	It("accepts no new label of a member as a cause, but a new policy", func() {
		m, p := newModel()
		p.region = "east"
		m.relabel("member-1", "west")
		_, without := m.judge([]deletion{{spot: settings, at: time.Now()}})
		Expect(without).To(HaveLen(1))
		m.repolicy(p, "a new policy", func() { p.policies++ })
		_, without = m.judge([]deletion{{spot: settings, at: time.Now()}})
		Expect(without).To(BeEmpty())
	})

	It("accepts the end of a claim only if its placement is deleted while it selects the member", func() {
		data := spot{"member-1", object{"PersistentVolumeClaim", "chaos-a", "data"}}
		m, p := newModel()
		m.sources[data.object] = source{value: 1}
		m.settled(map[spot]instance{data: {}})
		p.region = "west"
		m.repolicy(p, "a new policy", func() { p.policies++ })
		m.settled(map[spot]instance{data: {retained: true}})
		m.unplace(p)
		_, without := m.judge([]deletion{{spot: data, at: time.Now()}})
		Expect(without).To(HaveLen(1))

		m, p = newModel()
		m.sources[data.object] = source{value: 1}
		m.settled(map[spot]instance{data: {}})
		m.unplace(p)
		_, without = m.judge([]deletion{{spot: data, at: time.Now()}})
		Expect(without).To(BeEmpty())
	})
})
