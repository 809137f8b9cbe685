// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const memberNamespace = "fleet-member-m"

// workNaming returns a Work of a binding with a manifest for ConfigMap ns/a, and changes.
func workNaming(name, binding, snapshot string, change func(*placementv1beta1.Work)) *placementv1beta1.Work {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: name, Labels: map[string]string{
		placementv1beta1.ParentBindingLabel: binding, placementv1beta1.ParentResourceSnapshotIndexLabel: snapshot}}}
	work.Spec.Workload.Manifests = raw(`{"metadata":7}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`)
	if change != nil {
		change(work)
	}
	return work
}

// reconcilerWith returns a Reconciler with Works on the hub and their AppliedWorks on the member.
func reconcilerWith(t *testing.T, works ...*placementv1beta1.Work) *Reconciler {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	member := fake.NewClientBuilder().WithScheme(known)
	hub := fake.NewClientBuilder().WithScheme(known).WithIndex(&placementv1beta1.Work{}, worksByObject, objectsOf)
	for _, work := range works {
		hub.WithObjects(work)
		member.WithObjects(&placementv1beta1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: work.Name, UID: types.UID("of-" + work.Name)},
			Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work.Name, WorkNamespace: work.Namespace}})
	}
	r, err := New(Options{Member: "m", HubNamespace: memberNamespace, MemberAPI: reached(t, &rest.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	connected := hub.Build()
	r.connect(connected, connected, nil)
	r.records.member = member.Build()
	return r
}

func TestNextOwner(t *testing.T) {
	leaving := workNaming("leaving", "b", "1", nil)
	strategy := func(s placementv1beta1.ApplyStrategy) func(*placementv1beta1.Work) {
		return func(work *placementv1beta1.Work) { work.Spec.ApplyStrategy = &s }
	}
	deleted := func(work *placementv1beta1.Work) {
		work.DeletionTimestamp, work.Finalizers = &early, []string{placementv1beta1.WorkCleanupFinalizer}
	}
	others := func(work *placementv1beta1.Work) {
		work.Spec.Workload.Manifests = raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"other","name":"a"}}`,
			`{"apiVersion":"example.com/v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`)
	}
	never := placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
	report := placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	const nobody = "nobody"
	cases := map[string]struct {
		other *placementv1beta1.Work
		want  string
	}{
		"no heir if the other Work has other objects":          {workNaming("other", "b", "1", others), nobody},
		"a Work of the same placement":                         {workNaming("other", "b", "1", nil), "other"},
		"a Work of the same placement that takes nothing over": {workNaming("other", "b", "1", strategy(never)), "other"},
		"no heir if the other Work is being deleted":           {workNaming("other", "b", "1", deleted), nobody},
		"no heir if the other Work only compares":              {workNaming("other", "b", "1", strategy(report)), nobody},
		"a Work of another placement that takes objects over":  {workNaming("other", "c", "1", nil), "other"},
		"no heir if the other placement takes nothing over":    {workNaming("other", "c", "1", strategy(never)), nobody},
		"a Work without a placement":                           {workNaming("other", "", "", nil), "other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconcilerWith(t, leaving, tc.other)
			found, err := owner{records: r.records, work: leaving}.NextOwner(t.Context(), engine.Entry{Ref: id("a")})
			if err != nil {
				t.Fatal(err)
			}
			got := nobody
			if found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestMayInherit_OnlyWithinTheNamespaceOfThePlacement(t *testing.T) {
	of := func(name, namespace string) *placementv1beta1.Work {
		return workNaming(name, name, "1", func(work *placementv1beta1.Work) {
			if namespace != "" {
				work.Labels[placementv1beta1.ParentPlacementNamespaceLabel] = namespace
			}
		})
	}
	cases := map[string]struct {
		applier    string
		from, next string // namespaces of their placements
		inherits   bool
	}{
		"from a placement of the whole cluster": {"deployer", "", "shop", false},
		"from one of another namespace":         {"deployer", "bank", "shop", false},
		"from one of its namespace":             {"deployer", "shop", "shop", true},
		"the other way round":                   {"deployer", "shop", "", true},
		"where all have the agent's rights":     {"", "bank", "shop", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from := of("from", tc.from)
			r := reconcilerWith(t, from, of("heir", tc.next))
			r.records.options.NamespacedApplier = tc.applier
			found, err := owner{records: r.records, work: from}.NextOwner(t.Context(), engine.Entry{Ref: id("a")})
			if inherits := found != nil; inherits != tc.inherits || err != nil {
				t.Errorf("it inherits: %t, %v", inherits, err)
			}
		})
	}
}

func TestIsAhead_WhileASiblingHasAnotherSnapshot(t *testing.T) {
	work := workNaming("work", "b", "2", nil)
	cases := map[string]struct {
		other *placementv1beta1.Work
		want  bool
	}{
		"of an older one":      {workNaming("other", "b", "1", nil), true},
		"of the same one":      {workNaming("other", "b", "2", nil), false},
		"of another placement": {workNaming("other", "c", "1", nil), false},
		"which is being deleted, and may be made again": {workNaming("other", "b", "2", func(w *placementv1beta1.Work) {
			w.DeletionTimestamp, w.Finalizers = &early, []string{"a.example.com/b"}
		}), true},
		"of a placement of that name in a namespace": {workNaming("other", "b", "1", func(w *placementv1beta1.Work) {
			w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] = "shop"
		}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconcilerWith(t, work, tc.other)
			if got, err := (owner{records: r.records, work: work}).IsMoving(t.Context()); got != tc.want || err != nil {
				t.Errorf("it is ahead: %t, %v", got, err)
			}
		})
	}
}

func TestShares_OnlyWithAWorkThatAgrees(t *testing.T) {
	sharing := (&placementv1beta1.ApplyStrategy{AllowCoOwnership: true}).WithDefaults()
	agrees := workNaming("agrees", "b", "1", func(work *placementv1beta1.Work) { work.Spec.ApplyStrategy = &sharing })
	r := reconcilerWith(t, agrees, workNaming("refuses", "b", "1", nil))
	if err := r.records.member.Create(t.Context(), &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "of-another-hub"},
		Spec: placementv1beta1.AppliedWorkSpec{WorkName: "of-another-hub", WorkNamespace: "fleet-member-elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, work := range []string{"agrees", "refuses", "gone", "of-another-hub"} {
		got[work] = owner{records: r.records, strategy: sharing}.shares(t.Context(), work)
	}
	if diff := cmp.Diff(map[string]bool{"agrees": true, "refuses": false, "gone": true, "of-another-hub": false}, got); diff != "" {
		t.Errorf("who shares (-want +got):\n%s", diff)
	}
}

func TestMayWrite_SaysThatAnObjectMovesBetweenWorksOfOnePlacement(t *testing.T) {
	here := workNaming("here", "b", "2", nil)
	r := reconcilerWith(t, here, workNaming("sibling", "b", "1", nil), workNaming("stranger", "c", "1", nil))
	us := recordRef("here", "of-here")
	for name, want := range map[string]string{
		"sibling":  `The object is moving here from "sibling", a Work of the same placement, which still owns it: wait`,
		"stranger": `The object is already owned by another AppliedWork, "stranger": ` + shareRemedy,
	} {
		for _, strategy := range []placementv1beta1.ApplyStrategy{{}, {WhenToTakeOver: placementv1beta1.TakeOverNever}} {
			owned := engine.OwnershipOf([]metav1.OwnerReference{recordRef(name, types.UID("of-"+name))}, us)
			refused := owner{records: r.records, work: here, strategy: strategy}.MayWrite(t.Context(), owned, &unstructured.Unstructured{})
			switch {
			case refused == nil:
				t.Errorf("%s: not refused", name)
			case name == "stranger" && strategy.WhenToTakeOver != "":
				if refused.Reason != engine.NotTakenOver {
					t.Errorf("%s: %+v", name, refused)
				}
			case refused.Message != want:
				t.Errorf("%s: %q, want %q", name, refused.Message, want)
			}
		}
	}
}

// reached is the member whose API server answers there.
func reached(t testing.TB, config *rest.Config) *engine.Member {
	t.Helper()
	member, err := engine.NewMember(config)
	if err != nil {
		t.Fatal(err)
	}
	return member
}

func TestOwner_Claim(t *testing.T) {
	key := manifest.Key{Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	nothing := func(work *placementv1beta1.Work) { work.Spec.Workload.Manifests = nil }
	deleted := func(work *placementv1beta1.Work) {
		work.DeletionTimestamp, work.Finalizers = &early, []string{placementv1beta1.WorkCleanupFinalizer}
	}
	cases := map[string]struct {
		works []*placementv1beta1.Work
		want  engine.Claim
	}{
		"the Work contains it":                                   {[]*placementv1beta1.Work{workNaming("other", "b", "1", nil)}, engine.Wanted},
		"it is being deleted":                                    {[]*placementv1beta1.Work{workNaming("other", "b", "1", deleted)}, engine.Going},
		"the Work no longer contains it":                         {[]*placementv1beta1.Work{workNaming("other", "b", "1", nothing)}, engine.Unwanted},
		"a third Work contains it":                               {[]*placementv1beta1.Work{workNaming("other", "b", "1", nothing), workNaming("third", "c", "1", nil)}, engine.Wanted},
		"the Work does not exist, and may have retained objects": {nil, engine.Wanted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconcilerWith(t, tc.works...)
			if got, err := (owner{records: r.records}).Claim(t.Context(), "other", key); got != tc.want || err != nil {
				t.Errorf("the claim is %d, %v", got, err)
			}
		})
	}
}
