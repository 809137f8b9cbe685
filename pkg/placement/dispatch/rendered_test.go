// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// charted is a Work of a chart with ConfigMaps, rendered for a member with this hash.
func charted(name, chart, renderedFor string, configMaps ...string) *placementv1beta1.Work {
	w := work(name)
	w.Labels = map[string]string{placementv1beta1.EnvelopeNameLabel: chart}
	w.Annotations = map[string]string{placementv1beta1.RenderedForAnnotation: renderedFor}
	for _, c := range configMaps {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifests(fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":%q}}`, c))...)
		w.Status.ManifestConditions = append(w.Status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Name: c}})
	}
	return w
}

func TestLostByRendering(t *testing.T) {
	want := func(works ...*placementv1beta1.Work) (desired []desiredWork) {
		for _, w := range works {
			desired = append(desired, desiredWork{Work: w})
		}
		return desired
	}
	unread := charted("p-work", "", "")
	unread.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{}}
	going := charted("c", "cni", "old", "a", "b")
	going.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		has     []*placementv1beta1.Work
		desired []desiredWork
		lost    []string
		all     int
	}{
		"the member changed": {[]*placementv1beta1.Work{charted("c", "cni", "old", "a", "b", "c"), unread}, want(charted("c", "cni", "new", "b")),
			[]string{"ConfigMap a", "ConfigMap c"}, 4},
		"the chart changed":           {[]*placementv1beta1.Work{charted("c", "cni", "same", "a", "b")}, want(charted("c", "cni", "same", "b")), nil, 2},
		"a previous gateway rendered": {[]*placementv1beta1.Work{charted("c", "cni", "", "a", "b")}, want(charted("c", "cni", "new", "b")), nil, 2},
		"the chart was removed":       {[]*placementv1beta1.Work{charted("c", "cni", "old", "a")}, want(charted("p-work", "", "", "b")), nil, 1},
		"an override deletes it":      {[]*placementv1beta1.Work{charted("c", "cni", "old", "a")}, want(charted("c", "cni", "")), nil, 1},
		"the Work is being deleted":   {[]*placementv1beta1.Work{going}, want(charted("c", "cni", "new")), nil, 2},
		"the chart needs fewer Works": {[]*placementv1beta1.Work{charted("c", "cni", "old", "a"), charted("c-1", "cni", "old", "b")},
			want(charted("c", "cni", "new", "a")), []string{"ConfigMap b"}, 2},
		"an object moves to another Work": {[]*placementv1beta1.Work{charted("c", "cni", "old", "a")},
			want(charted("c", "cni", "new"), charted("p-work", "", "", "a")), nil, 1},
		"an object moves to a Work that is kept": {[]*placementv1beta1.Work{charted("c", "cni", "old", "a"), charted("d", "dns", "old", "a")},
			append(want(charted("c", "cni", "new")), desiredWork{Work: charted("d", "dns", "new"), keepManifests: true}), nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lostByRendering(tc.has, tc.desired)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.lost, got.objects, cmpopts.EquateEmpty()); got.all != tc.all || diff != "" {
				t.Errorf("lost of %d, want of %d (-want +got):\n%s", got.all, tc.all, diff)
			}
		})
	}
}

// collecting is a placement with members a to f, and what each would lose.
type collecting struct {
	*testing.T
	r         rendered
	placement *placementv1beta1.ClusterResourcePlacement
	now       time.Time
}

func newCollecting(t *testing.T) *collecting {
	return &collecting{T: t, placement: &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, now: time.Now()}
}

// loses decides about a member that would lose so many of ten objects.
func (c *collecting) loses(member string, n int) verdict {
	b := binding()
	b.Spec.TargetCluster = member
	lost := loss{all: 10}
	for i := range n {
		lost.objects = append(lost.objects, fmt.Sprintf("ConfigMap c-%d", i))
	}
	if err := c.r.list(types.NamespacedName{Name: "p"}, c.now, func() (sets.Set[string], error) { return sets.New("a", "b", "c", "d", "e", "f"), nil }); err != nil {
		c.Fatal(err)
	}
	return c.r.decide(input{binding: b, placement: c.placement}, lost, c.now)
}

func (c *collecting) settle() { c.now = c.now.Add(deletionSettle) }

func TestRendered_KeepsMuchOfOneMember(t *testing.T) {
	c := newCollecting(t)
	if v := c.loses("a", 5); !errors.Is(v.err, errSettling) {
		t.Fatalf("decided at once: %+v", v)
	}
	c.settle()
	v := c.loses("a", 5)
	if !errors.Is(v.err, errSuspended) || !strings.Contains(v.condition.Message, "1 of 6 members: a loses 5 of 10 objects (ConfigMap c-0 and 4 more).") {
		t.Fatalf("not suspended: %+v", v)
	}
	if v := c.loses("b", 0); v.err != nil || v.condition == nil {
		t.Errorf("member without a loss: %+v", v)
	}
	_, token, _ := strings.Cut(v.condition.Message, placementv1beta1.ConfirmRemovalAnnotation+"=")
	c.placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: token}
	if v := c.loses("a", 5); v.err != nil || v.condition != nil {
		t.Errorf("suspended after the confirmation: %+v", v)
	}
	if v := c.loses("a", 6); !errors.Is(v.err, errSuspended) {
		t.Errorf("carried out, which nobody confirmed: %+v", v)
	}
	if v := c.loses("a", 0); v.err != nil || v.condition != nil {
		t.Errorf("suspended without a loss: %+v", v)
	}
}

func TestRendered_CountsMembersTogether(t *testing.T) {
	c := newCollecting(t)
	lose := func(members ...string) (v verdict) {
		for _, member := range members {
			c.loses(member, 1)
		}
		c.settle()
		for _, member := range members {
			v = c.loses(member, 1)
		}
		return v
	}
	if v := lose("a", "b", "c"); v.err != nil || v.condition != nil {
		t.Fatalf("three of six members: %+v", v)
	}
	for _, member := range []string{"a", "b", "c"} {
		c.loses(member, 0)
	}
	v := lose("d", "e")
	if !errors.Is(v.err, errSuspended) || !strings.Contains(v.condition.Message, "2 of 6 members after 3 others within 10m: d loses") {
		t.Fatalf("two members after three others: %+v", v)
	}
	c.placement.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionRemovalSuspended,
		Reason: placementv1beta1.ReasonChartConfirmationRequired, LastTransitionTime: metav1.NewTime(c.now)}}
	c.now = c.now.Add(time.Hour)
	if v := c.loses("d", 1); !errors.Is(v.err, errSuspended) {
		t.Errorf("carried out after an hour: %+v", v)
	}
	c.placement.Status.Conditions = nil
	if v := c.loses("d", 1); v.err != nil {
		t.Errorf("removals of an hour ago count: %+v", v)
	}
}

func TestRendered_KeepsTheConditionAfterAStartUntilMembersAreRendered(t *testing.T) {
	c := newCollecting(t)
	if v := c.loses("a", 0); !v.settling || v.err != nil {
		t.Errorf("decided at once: %+v", v)
	}
	c.settle()
	if v := c.loses("a", 0); v.settling || v.condition != nil || len(c.r.known) > 0 {
		t.Errorf("suspended without a loss: %+v", v)
	}
}
