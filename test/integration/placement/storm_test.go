// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// storm does random things to members and placements, and knows what has to come of
// them. The same seed does the same things in the same order.
type storm struct {
	dice    *rand.Rand
	name    string
	members map[string]*stormMember
	// wanted are the placements that there are, and wants what each asks for.
	wanted map[string]*stormPlacement
	colour int
}

type stormMember struct {
	region  string
	tainted bool
}

// stormPlacement is PickN, or PickAll with n 0, of a region, or of all if that is "".
type stormPlacement struct {
	n      int32
	region string
}

var regions = []string{"east", "west"}

func newStorm(ctx context.Context, name string, seed uint64) *storm {
	GinkgoHelper()
	s := &storm{dice: rand.New(rand.NewPCG(seed, 1)), name: name, members: map[string]*stormMember{}, wanted: map[string]*stormPlacement{}}
	shop(ctx, name+"-shop")
	for i := range 6 {
		agent(fmt.Sprintf("%s-%d", name, i)) // It serves a namespace, whoever is there.
	}
	DeferCleanup(func(ctx context.Context) {
		for name := range s.wanted {
			s.unplace(ctx, name)
		}
		Eventually(s.remains).WithContext(ctx).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
		for name := range s.members {
			s.leave(ctx, name)
		}
	})
	return s
}

// step does one thing.
func (s *storm) step(ctx context.Context) {
	GinkgoHelper()
	member, placement := fmt.Sprintf("%s-%d", s.name, s.dice.IntN(6)), fmt.Sprintf("%s-p%d", s.name, s.dice.IntN(4))
	_, joined := s.members[member]
	_, placed := s.wanted[placement]
	switch roll := s.dice.IntN(100); {
	case !joined:
		s.join(ctx, member)
	case !placed:
		s.place(ctx, placement)
	case roll < 10:
		s.leave(ctx, member)
	case roll < 25:
		s.members[member].tainted = !s.members[member].tainted
		s.edit(ctx, member)
	case roll < 40:
		s.members[member].region = regions[s.dice.IntN(2)]
		s.edit(ctx, member)
	case roll < 50:
		s.unplace(ctx, placement)
	case roll < 75:
		s.respec(ctx, placement)
	case roll < 97:
		s.colour++
		changeSettings(ctx, s.name+"-shop", fmt.Sprintf("colour-%d-", s.colour))
	default:
		gateway.stop()
		gateway = startGateway()
	}
}

func (s *storm) join(ctx context.Context, name string) {
	GinkgoHelper()
	// A member that comes back gets a new namespace; here it is an emptied one.
	Expect(client.IgnoreNotFound(hub.DeleteAllOf(ctx, &placementv1beta1.Work{}, client.InNamespace(clusterv1beta1.MemberNamespace(name))))).To(Succeed())
	s.members[name] = &stormMember{region: regions[s.dice.IntN(2)]}
	join(ctx, name, map[string]string{fleetLabel: s.name, "region": s.members[name].region})
}

func (s *storm) leave(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(hub.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
	delete(s.members, name)
}

func (s *storm) edit(ctx context.Context, name string) {
	GinkgoHelper()
	edit(ctx, name, func(m *clusterv1beta1.MemberCluster) {
		m.Labels["region"], m.Spec.Taints = s.members[name].region, nil
		if s.members[name].tainted {
			taint("storm")(m)
		}
	})
}

// roll chooses anew what a placement asks for; PickAll stays PickAll.
func (s *storm) roll(p *stormPlacement) {
	if p.n > 0 {
		p.n = 1 + s.dice.Int32N(4)
	}
	p.region = append(regions, "")[s.dice.IntN(3)]
}

func (s *storm) write(p *stormPlacement, spec *placementv1beta1.PlacementSpec) {
	if p.n > 0 {
		picking(p.n, nil)(spec)
	}
	// A PickN placement that cannot have all its members keeps those that it should lose
	// as long as fewer are available than this lets it.
	all := intstr.FromString("100%")
	spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all}
	labels := spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector.MatchLabels
	clear(labels)
	labels[fleetLabel] = s.name
	if p.region != "" {
		labels["region"] = p.region
	}
}

func (s *storm) place(ctx context.Context, name string) {
	GinkgoHelper()
	p := &stormPlacement{n: s.dice.Int32N(2)}
	s.roll(p)
	s.wanted[name] = p
	place(ctx, name, s.name+"-shop", func(spec *placementv1beta1.PlacementSpec) { s.write(p, spec) })
}

func (s *storm) respec(ctx context.Context, name string) {
	GinkgoHelper()
	s.roll(s.wanted[name])
	respec(ctx, name, func(spec *placementv1beta1.PlacementSpec) { s.write(s.wanted[name], spec) })
}

// unplace deletes a placement and waits: another of its name is another one.
func (s *storm) unplace(ctx context.Context, name string) {
	GinkgoHelper()
	delete(s.wanted, name)
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreNotFound(hub.Delete(ctx, crp))).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp)) }).WithTimeout(soon).WithPolling(often).Should(BeTrue())
}

// remains names Works on members that there are, of placements that there are not.
func (s *storm) remains(ctx context.Context) ([]string, error) {
	var all []string
	for member := range s.members {
		var works placementv1beta1.WorkList
		if err := hub.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member))); err != nil {
			return nil, err
		}
		for _, w := range works.Items {
			if _, stays := s.wanted[w.Labels[placementv1beta1.ParentPlacementLabel]]; !stays {
				all = append(all, member+" has "+w.Name)
			}
		}
	}
	return all, nil
}

// check compares everything with what was asked for.
func (s *storm) check(ctx context.Context) error {
	settings := &corev1.ConfigMap{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: s.name + "-shop", Name: "settings"}, settings); err != nil {
		return err
	}
	if left, err := s.remains(ctx); err != nil || len(left) > 0 {
		return fmt.Errorf("Works of placements that are gone: %v, %w", left, err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		if err := s.checkPlacement(ctx, name, settings.Data["colour"]); err != nil {
			return fmt.Errorf("placement %s, which wants %+v: %w", name, *s.wanted[name], err)
		}
	}
	return nil
}

func (s *storm) checkPlacement(ctx context.Context, name, colour string) error {
	p := s.wanted[name]
	bindings, err := bindingsOf(ctx, name)
	if err != nil {
		return err
	}
	on := slices.Sorted(maps.Keys(bindings))
	if p.n > 0 && len(on) > int(p.n) {
		return fmt.Errorf("it is on %v, which are too many", on)
	}
	for member, m := range s.members {
		fits := !m.tainted && (p.region == "" || p.region == m.region)
		if _, has := bindings[member]; fits && !has && (p.n == 0 || len(on) < int(p.n)) {
			return fmt.Errorf("it is on %v, and %s would fit too", on, member)
		}
	}
	for member, b := range bindings {
		if s.members[member] == nil || b.DeletionTimestamp != nil || b.Spec.State != placementv1beta1.BindingBound {
			return fmt.Errorf("binding to %s: member %v, state %s, deleted %v", member, s.members[member], b.Spec.State, b.DeletionTimestamp)
		}
		if says, err := workSays(ctx, member, name, `"`+colour+`"`)(); err != nil || !says {
			return fmt.Errorf("the Work on %s does not say %q: %w", member, colour, err)
		}
	}
	return s.checkStatus(ctx, name, on)
}

func (s *storm) checkStatus(ctx context.Context, name string, on []string) error {
	crp, err := statusOf(ctx, name)
	if err != nil {
		return err
	}
	var told []string
	for _, m := range crp.Status.PlacementStatuses {
		if m.ClusterName != "" {
			told = append(told, m.ClusterName)
		}
	}
	slices.Sort(told)
	if !slices.Equal(told, on) {
		return fmt.Errorf("it is on %v, and its status says %v", on, told)
	}
	conditions := strings.Join(brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation), " ")
	if len(on) > 0 && !strings.HasSuffix(conditions, strings.Join(allTrue[1:], " ")) {
		return fmt.Errorf("its status says %s", conditions)
	}
	return nil
}

func (s *storm) expectOrder(ctx context.Context) {
	GinkgoHelper()
	Eventually(s.check).WithContext(ctx).WithTimeout(2 * soon).WithPolling(10 * often).Should(Succeed())
}

var _ = Describe("A storm", func() {
	It("ends in order", func(ctx SpecContext) {
		const seed, steps = 20261121, 80
		s := newStorm(ctx, "ya", seed)
		for range steps {
			s.step(ctx)
		}
		s.expectOrder(ctx)
	})

	It("of two minutes ends in order, and is in order whenever one looks", Label("matrix"), func(ctx SpecContext) {
		const looks, steps = 20, 80
		for seed := range uint64(looks) {
			By(fmt.Sprintf("seed %d", seed))
			s := newStorm(ctx, fmt.Sprintf("yb%d", seed), seed)
			for range steps {
				s.step(ctx)
			}
			s.expectOrder(ctx)
		}
	})
})
