// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/faults"
)

// storm applies random actions to placements, members, gateway and agents, and knows the expected
// state of the members. The same seed repeats the same actions in the same order.
type storm struct {
	dice *rand.Rand
	// where is the region of each member, tainted the members with a taint.
	where   map[string]string
	tainted map[string]bool
	// wanted are the existing placements, by shop.
	wanted  map[string]*request
	colours map[string]string
	painted int
}

// request is PickN, or PickAll when n is 0, of a region, or of all members if that is "".
type request struct {
	n        int32
	region   string
	policies int
}

var shops = []string{"storm-a", "storm-b", "storm-c"}

func newStorm(ctx context.Context, seed uint64) *storm {
	GinkgoHelper()
	s := &storm{dice: rand.New(rand.NewPCG(seed, 1)), where: map[string]string{}, tainted: map[string]bool{},
		wanted: map[string]*request{}, colours: map[string]string{}}
	for _, name := range shops {
		shop(ctx, name)
		s.colours[name] = "red"
	}
	for _, m := range running.Members {
		s.where[m.Name] = "east"
		s.edit(ctx, m.Name)
	}
	DeferCleanup(func(ctx context.Context) {
		for name := range s.wanted {
			s.unplace(ctx, name)
		}
		for member := range members {
			edit(ctx, member, func(m *clusterv1beta1.MemberCluster) { delete(m.Labels, "region"); m.Spec.Taints = nil })
		}
		// The next storm uses the same shop names.
		for _, name := range shops {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Eventually(func(ctx context.Context) error { return client.IgnoreNotFound(hub.Delete(ctx, namespace)) }).WithContext(ctx).Should(Succeed())
			Eventually(func(ctx context.Context) bool {
				return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
			}).WithContext(ctx).Should(BeTrue())
		}
	})
	return s
}

func (s *storm) step(ctx context.Context) {
	GinkgoHelper()
	member, shop := running.Members[s.dice.IntN(len(running.Members))], shops[s.dice.IntN(len(shops))]
	w := s.wanted[shop]
	switch roll := s.dice.IntN(100); {
	case w == nil:
		w = &request{n: s.dice.Int32N(2)}
		s.wanted[shop] = w
		s.roll(w)
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: shop}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: shop}}
		w.write(&crp.Spec)
		Eventually(func(ctx context.Context) error { return client.IgnoreAlreadyExists(hub.Create(ctx, crp.DeepCopy())) }).WithContext(ctx).Should(Succeed())
	case roll < 10:
		s.unplace(ctx, shop)
	case roll < 35:
		s.roll(w)
		respec(ctx, shop, w.write)
	case roll < 50:
		s.tainted[member.Name] = !s.tainted[member.Name]
		s.edit(ctx, member.Name)
	case roll < 65:
		s.where[member.Name] = []string{"east", "west"}[s.dice.IntN(2)]
		s.edit(ctx, member.Name)
	case roll < 94:
		s.painted++
		s.colours[shop] = fmt.Sprintf("colour-%d", s.painted)
		paint(ctx, shop, s.colours[shop])
	case roll < 97:
		Expect(member.Agent.Kill()).To(Succeed())
		Expect(member.Agent.Start(ctx)).To(Succeed())
	default:
		Expect(running.Gateway.Kill()).To(Succeed())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
	}
}

func (s *storm) roll(w *request) {
	if w.n > 0 {
		w.n = 1 + s.dice.Int32N(3)
	}
	w.region = []string{"east", "west", ""}[s.dice.IntN(3)]
}

func (w *request) write(spec *placementv1beta1.PlacementSpec) {
	// Removal must work even while fewer members are available than wanted.
	all := intstr.FromString("100%")
	spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all}
	labels := map[string]string{}
	if w.region != "" {
		labels["region"] = w.region
	}
	spec.Policy = &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAll,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: []metav1.LabelSelectorRequirement{
					// This has no effect but changes the policy's hash.
					{Key: fmt.Sprintf("nobody-has-%d", w.policies), Operator: metav1.LabelSelectorOpDoesNotExist}}}},
			}},
		}},
	}
	if w.n > 0 {
		spec.Policy.PlacementType, spec.Policy.NumberOfClusters = placementv1beta1.PickN, &w.n
	}
}

func (s *storm) edit(ctx context.Context, member string) {
	GinkgoHelper()
	edit(ctx, member, func(m *clusterv1beta1.MemberCluster) {
		m.Labels["region"], m.Spec.Taints = s.where[member], nil
		if s.tainted[member] {
			m.Spec.Taints = []clusterv1beta1.Taint{{Key: "storm", Effect: corev1.TaintEffectNoSchedule}}
		}
	})
}

func (s *storm) unplace(ctx context.Context, name string) {
	GinkgoHelper()
	delete(s.wanted, name)
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Eventually(func(ctx context.Context) error { return client.IgnoreNotFound(hub.Delete(ctx, crp)) }).WithContext(ctx).Should(Succeed())
	Eventually(func(ctx context.Context) bool {
		return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp))
	}).WithContext(ctx).Should(BeTrue())
}

// check compares the members and the placement's status with the expected state.
func (s *storm) check(ctx context.Context) error {
	for _, shop := range shops {
		has, err := colours(ctx, shop)
		if err != nil {
			return err
		}
		if err := s.checkShop(ctx, shop, strings.Fields(has)); err != nil {
			return fmt.Errorf("%s has %s, its placement wants %+v, members are in %v, of them tainted %v: %w", shop, has, s.wanted[shop], s.where, s.tainted, err)
		}
	}
	return nil
}

func (s *storm) checkShop(ctx context.Context, shop string, has []string) error {
	w, on, fits := s.wanted[shop], 0, 0
	for i, m := range running.Members {
		may := w != nil && !s.tainted[m.Name] && (w.region == "" || w.region == s.where[m.Name])
		if may {
			fits++
		}
		if has[i] == "-" {
			continue
		}
		if on++; !may || has[i] != s.colours[shop] {
			return fmt.Errorf("%s must not have it, or must have %s", m.Name, s.colours[shop])
		}
	}
	want := fits
	if w != nil && w.n > 0 {
		want = min(fits, int(w.n))
	}
	if on != want {
		return fmt.Errorf("%d members have it, not %d", on, want)
	}
	if on == 0 {
		return nil
	}
	well, err := available(ctx, shop)
	if err == nil && !well {
		err = errors.New("its status does not report it as available")
	}
	return err
}

var _ = Describe("A storm", func() {
	rages := func(ctx SpecContext, lasts time.Duration, gust func(*storm)) {
		if asked, err := time.ParseDuration(os.Getenv("FLEETGATE_STORM")); err == nil {
			lasts = asked
		}
		const looks = 25
		s := newStorm(ctx, 20261121)
		for end := time.Now().Add(lasts); time.Now().Before(end); {
			gust(s)
			for range looks {
				s.step(ctx)
			}
			for _, shop := range slices.Sorted(maps.Keys(s.wanted)) {
				s.wanted[shop].policies++ // Members that no longer match must lose the shop now.
				respec(ctx, shop, s.wanted[shop].write)
			}
			Eventually(s.check).WithContext(ctx).WithTimeout(3 * time.Minute).Should(Succeed())
		}
	}

	It("ends with the expected resources on members, whatever is killed", func(ctx SpecContext) {
		rages(ctx, 2*time.Minute, func(*storm) {})
	})

	It("ends with the expected resources on a hub that alternately rejects requests and drops watches", func(ctx SpecContext) {
		kept := keepsOne(ctx, "kept-storm")
		DeferCleanup(func() { goesWrong(faults.Faults{}) })
		rages(ctx, 15*time.Minute, func(s *storm) {
			all := slices.DeleteFunc(slices.Sorted(maps.Keys(troubles)), func(what string) bool { return !isBearable(troubles[what]) })
			what := all[s.dice.IntN(len(all))]
			GinkgoWriter.Println("next phase:", what)
			goesWrong(troubles[what])
		})
		Expect(kept()).To(BeEmpty(), "deleted by mistake")
	})
})
