// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	// attemptsPerRound are 40 of each entrance.
	attemptsPerRound = 280
	// atOnce limits concurrent attempts, writesAtOnce those of which the gateway asks the hub hundreds of
	// questions within the five seconds that an API server waits.
	atOnce, writesAtOnce = 12, 4
)

// Whatever rights the authors have, and whatever they write: each object on the member is one that they
// could have written on the hub, in the scope in which the member has it.
var _ = Describe("Authors with random rights", func() {
	// FLEETGATE_SEED repeats a failure of the longer spec.
	It("write nothing on a member that they could not write on the hub", func(ctx SpecContext) {
		runAttempts(ctx, expect.Seed(1), attemptsPerRound)
	})

	It("write nothing on a member that they could not write on the hub, with other seeds and for longer", Label("matrix"), func(ctx SpecContext) {
		for ended := time.Now().Add(10 * time.Minute); time.Now().Before(ended); {
			runAttempts(ctx, rand.Uint64(), attemptsPerRound)
		}
	}, SpecTimeout(30*time.Minute))
})

// round numbers the rounds, so that their names differ.
var round int

func runAttempts(ctx context.Context, seed uint64, n int) {
	GinkgoHelper()
	By(fmt.Sprintf("seed %d", seed))
	round++
	var attempts []*attempt
	for nth := range n {
		attempts = append(attempts, newAttempt(seed, round, nth))
	}
	each := func(limit int, do func(*attempt, context.Context) error) {
		GinkgoHelper()
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(limit)
		for _, a := range attempts {
			group.Go(func() error {
				if err := do(a, ctx); err != nil {
					return fmt.Errorf("seed %d, %s: %w", seed, a, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			Fail(err.Error())
		}
	}
	By("preparing")
	each(atOnce, (*attempt).prepare)
	Expect(awaitGrants(ctx, fmt.Sprintf("last-%d", round))).To(Succeed())
	By("writing as the authors")
	each(writesAtOnce, (*attempt).act)
	By("waiting for the member")
	each(atOnce, (*attempt).settle)
	By("comparing")
	compare(ctx, seed, attempts)
	// A hub has at most 100 of these.
	Expect(hub.DeleteAllOf(ctx, &placementv1beta1.ClusterResourceOverride{})).To(Succeed())
}

// String describes the attempt with all that its authors did.
func (a *attempt) String() string {
	return fmt.Sprintf("%s via %s: placer %s, author %s, overrider %s, rights %+v\nentries %v, on the hub %v\n%s",
		a.prefix, a.entrance, a.placer, a.author, a.overrider, a.rights, a.entries, a.onHub, strings.Join(a.log, "\n"))
}

// settle returns when the member has reported about an accepted attempt. Nobody reports about a run that
// the hub rejected.
func (a *attempt) settle(ctx context.Context) error {
	awaited := a.accepted
	if a.entrance == viaUpdateRun {
		awaited = a.started
	}
	if !awaited {
		return nil
	}
	var conditions []metav1.Condition
	err := poll(ctx, func() (settled bool, err error) {
		conditions, err = a.conditions(ctx)
		return a.isSettled(conditions), err
	})
	for _, c := range conditions {
		a.log = append(a.log, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	if err != nil {
		GinkgoWriter.Printf("%s: %v\n", a, err)
	}
	return ctx.Err()
}

func (a *attempt) conditions(ctx context.Context) ([]metav1.Condition, error) {
	if a.entrance == viaUpdateRun {
		run := a.run("run", "")
		if err := hub.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
			return nil, err
		}
		// A run waits for a member that nothing is sent to, of which the placement says the reason.
		placement := a.clusterPlacement()
		err := hub.Get(ctx, client.ObjectKeyFromObject(placement), placement)
		conditions := run.Status.Conditions
		for _, status := range placement.Status.PlacementStatuses {
			conditions = append(conditions, status.Conditions...)
		}
		return conditions, err
	}
	if a.entrance == viaSet {
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: a.name("x"), Name: a.name("set")}, set)
		return set.Status.Conditions, err
	}
	placement := a.placement()
	err := hub.Get(ctx, client.ObjectKeyFromObject(placement), placement)
	return placement.GetStatus().Conditions, err
}

// isSettled is true if something has failed, or everything is applied.
func (a *attempt) isSettled(conditions []metav1.Condition) bool {
	if a.entrance == viaSet {
		applied := meta.FindStatusCondition(conditions, workv1alpha1.ConditionManifestworkApplied)
		return meta.IsStatusConditionFalse(conditions, workv1alpha1.ConditionPlacementVerified) ||
			applied != nil && applied.Reason != workv1alpha1.ReasonProcessing
	}
	for _, c := range conditions {
		if c.Status == metav1.ConditionFalse || c.Status == metav1.ConditionTrue &&
			(strings.HasSuffix(c.Type, placementv1beta1.ConditionApplied) || c.Type == placementv1beta1.ConditionUpdateRunSucceeded) {
			return true
		}
	}
	return false
}

// counts are the numbers of attempts of an entrance.
type counts struct{ attempts, accepted, arrived, objects int }

// compare compares what was written with the rights of its authors.
func compare(ctx context.Context, seed uint64, attempts []*attempt) {
	GinkgoHelper()
	rights, violations, all, overrides := &oracle{known: map[string]bool{}}, []string{}, map[string]*counts{}, 0
	for _, a := range attempts {
		t := all[a.entrance]
		if t == nil {
			t = &counts{}
			all[a.entrance] = t
		}
		t.attempts++
		if a.accepted {
			t.accepted++
		}
		live := written.of(a.prefix)
		if len(live) > 0 {
			t.arrived++
		}
		seen := map[string]bool{}
		for _, object := range live {
			violation, err := rights.violation(ctx, a, object)
			Expect(err).NotTo(HaveOccurred())
			if violation != "" && !seen[violation] {
				seen[violation] = true
				violations = append(violations, fmt.Sprintf("seed %d: the member got %s (%v): %s\n%s", seed, observed(object), object.GetLabels(), violation, a))
			}
			t.objects++
			if object.GetLabels()[overridden] != "" {
				overrides++
			}
		}
	}
	for entrance, t := range all {
		GinkgoWriter.Printf("%s: %+v\n", entrance, *t)
	}
	GinkgoWriter.Printf("overridden objects: %d\n", overrides)
	Expect(strings.Join(violations, "\n\n")).To(BeEmpty())
	Expect(overrides).To(BeNumerically(">=", len(attempts)/40), "overridden objects that arrived: this proves too little")
	for entrance, t := range all {
		Expect(t.arrived).To(BeNumerically(">=", t.attempts/5), "attempts via %s that arrived: this proves too little", entrance)
		Expect(t.attempts-t.accepted).To(BeNumerically(">=", t.attempts/10), "attempts via %s that were rejected: this proves too little", entrance)
	}
}
