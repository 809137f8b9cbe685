// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// storm makes random changes of members and placements, and knows the expected result. The same seed
// makes the same changes in the same order.
type storm struct {
	dice    *rand.Rand
	name    string
	members map[string]*stormMember
	// wanted are the existing placements, with their specs.
	wanted map[string]*stormPlacement
	colour int
	ground *ground
}

type stormMember struct {
	region  string
	tainted bool
}

func (m *stormMember) fits(p *stormPlacement) bool {
	return !m.tainted && (p.region == "" || p.region == m.region)
}

// stormPlacement is PickN, or PickAll with n 0, for a region, or for all regions if that is "".
type stormPlacement struct {
	n      int32
	region string
	// careful uses the default of maxUnavailable; otherwise all members can be unavailable.
	careful bool
	// policies counts the changes of the policy that have no effect, but create a new one.
	policies int
}

const (
	stormMembers    = 6
	stormPlacements = 4
	stormSteps      = 80
	// stormBeat is the number of steps between reports of members: a member without heartbeat for five
	// minutes is no longer picked, and machines can be slow.
	stormBeat = 20
)

var regions = []string{"east", "west"}

func newStorm(ctx context.Context, name string, seed uint64) *storm {
	GinkgoHelper()
	s := &storm{dice: rand.New(rand.NewPCG(seed, 1)), name: name, members: map[string]*stormMember{}, wanted: map[string]*stormPlacement{}}
	shop(ctx, s.shop())
	s.ground = newGround(s.all())
	return s
}

func (s *storm) shop() string { return s.name + "-shop" }

// all are the possible members.
func (s *storm) all() []string {
	var names []string
	for i := range stormMembers {
		names = append(names, fmt.Sprintf("%s-%d", s.name, i))
	}
	return names
}

// step makes one change.
func (s *storm) step(ctx context.Context) {
	GinkgoHelper()
	member, placement := s.all()[s.dice.IntN(stormMembers)], fmt.Sprintf("%s-p%d", s.name, s.dice.IntN(stormPlacements))
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
		s.members[member].region = regions[s.dice.IntN(len(regions))]
		s.edit(ctx, member)
	case roll < 50:
		s.unplace(ctx, placement)
	case roll < 75:
		s.roll(s.wanted[placement])
		s.respec(ctx, placement)
	case roll < 97:
		s.colour++
		changeSettings(ctx, s.shop(), fmt.Sprintf("colour-%d-", s.colour))
	default:
		gateway.stop()
		gateway = startGateway()
	}
}

func (s *storm) join(ctx context.Context, name string) {
	GinkgoHelper()
	// A member that rejoins gets a new namespace; here it is an emptied one.
	Expect(client.IgnoreNotFound(hub.DeleteAllOf(ctx, &placementv1beta1.Work{}, client.InNamespace(clusterv1beta1.MemberNamespace(name))))).To(Succeed())
	s.members[name] = &stormMember{region: regions[s.dice.IntN(len(regions))]}
	makeMember(ctx, name, map[string]string{fleetLabel: s.name, "region": s.members[name].region})
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

// beat makes all members report.
func (s *storm) beat(ctx context.Context) {
	GinkgoHelper()
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		report(ctx, name, func(status *clusterv1beta1.MemberClusterStatus) {
			status.AgentStatus[0].LastReceivedHeartbeat = metav1.Now()
		})
	}
}

// roll chooses a new spec for a placement; PickAll stays PickAll.
func (s *storm) roll(p *stormPlacement) {
	if p.n > 0 {
		p.n = 1 + s.dice.Int32N(4)
	}
	p.region = append(regions, "")[s.dice.IntN(len(regions)+1)]
	p.careful = s.dice.IntN(2) == 0
}

func (s *storm) write(p *stormPlacement, spec *placementv1beta1.PlacementSpec) {
	if p.n > 0 {
		picking(p.n, nil)(spec)
	}
	all := intstr.FromString("100%")
	spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all}
	if p.careful {
		spec.Strategy.RollingUpdate = nil
	}
	labels := spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector.MatchLabels
	clear(labels)
	labels[fleetLabel] = s.name
	if p.region != "" {
		labels["region"] = p.region
	}
	spec.Policy.Tolerations = nil
	if p.policies > 0 {
		spec.Policy.Tolerations = []placementv1beta1.Toleration{{Key: fmt.Sprintf("nobody-has-%d", p.policies), Operator: corev1.TolerationOpExists}}
	}
}

func (s *storm) place(ctx context.Context, name string) {
	GinkgoHelper()
	p := &stormPlacement{n: s.dice.Int32N(2)}
	s.roll(p)
	s.wanted[name] = p
	crp := placementOf(name, s.shop())
	s.write(p, &crp.Spec)
	Expect(hub.Create(ctx, crp)).To(Succeed())
}

func (s *storm) respec(ctx context.Context, name string) {
	GinkgoHelper()
	respec(ctx, name, func(spec *placementv1beta1.PlacementSpec) { s.write(s.wanted[name], spec) })
}

// reconsider changes all policies without an effect, so that ineligible members have to be removed.
func (s *storm) reconsider(ctx context.Context) {
	GinkgoHelper()
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		s.wanted[name].policies++
		s.respec(ctx, name)
	}
}

// unplace deletes a placement and waits, because a new one of its name is another placement.
func (s *storm) unplace(ctx context.Context, name string) {
	GinkgoHelper()
	delete(s.wanted, name)
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreNotFound(hub.Delete(ctx, crp))).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp)) }).WithTimeout(soon).WithPolling(often).Should(BeTrue())
}

// end deletes all objects of the storm.
func (s *storm) end(ctx context.Context) {
	GinkgoHelper()
	for _, name := range slices.Collect(maps.Keys(s.wanted)) {
		s.unplace(ctx, name)
	}
	s.expect(ctx, s.check)
	for _, name := range slices.Collect(maps.Keys(s.members)) {
		s.leave(ctx, name)
	}
	for _, name := range s.all() {
		Expect(client.IgnoreNotFound(hub.DeleteAllOf(ctx, &placementv1beta1.Work{}, client.InNamespace(clusterv1beta1.MemberNamespace(name))))).To(Succeed())
	}
	Eventually(s.ground.all).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	s.ground.leave()
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{}} {
		Expect(hub.DeleteAllOf(ctx, kind, client.InNamespace(s.shop()))).To(Succeed())
	}
}

func (s *storm) expect(ctx context.Context, check func(context.Context) error) {
	GinkgoHelper()
	Eventually(check).WithContext(ctx).WithTimeout(2 * soon).WithPolling(10 * often).Should(Succeed())
}

// stormy is the duration of the storm that all seeds share.
func stormy() time.Duration {
	const usually = time.Minute
	d, err := time.ParseDuration(os.Getenv("FLEETGATE_STORM"))
	if err != nil {
		return usually
	}
	return d
}

var _ = Describe("A storm", func() {
	It("ends in the expected state each time", func(ctx SpecContext) {
		end := time.Now().Add(stormy())
		for seed := uint64(0); seed == 0 || time.Now().Before(end); seed++ {
			By(fmt.Sprintf("seed %d", seed))
			// Objects of a failed attempt have other names.
			s := newStorm(ctx, fmt.Sprintf("ya%d-%d", CurrentSpecReport().NumAttempts, seed), seed)
			for i := range stormSteps {
				if i%stormBeat == 0 {
					s.beat(ctx)
				}
				s.step(ctx)
			}
			s.beat(ctx)
			s.expect(ctx, s.check)
			s.reconsider(ctx)
			s.expect(ctx, s.checkStrictly)
			s.end(ctx)
		}
	})
})
