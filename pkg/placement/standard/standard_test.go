// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		said            string
		byDefault, want bool
	}{
		"asks":                              {"true", false, true},
		"refuses":                           {"false", true, false},
		"no request, all are published":     {"", true, true},
		"no request, none are published":    {"", false, false},
		"unknown value, none are published": {"perhaps", false, false},
		"unknown value, all are published":  {"perhaps", true, true},
		"wrong case":                        {"TRUE", false, false},
	} {
		placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"fleetgate.io/standard-decisions": tc.said}}}
		if got := isPublished(placement, tc.byDefault); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestKeyOf_UniqueValidLabels(t *testing.T) {
	long := strings.Repeat("a.", 100)
	seen := sets.New[string]()
	for _, kind := range []string{"Placement", "ResourcePlacement", "ClusterResourcePlacement"} {
		for _, name := range []string{"p", "a.b-c", long + "x", long + "y", strings.Repeat("b", 63-len("placement-")), strings.Repeat("b", 64-len("placement-"))} {
			key := keyOf(kind, name)
			if problems := validation.IsValidLabelValue(key); len(problems) > 0 {
				t.Errorf("key of %s %s is no label value: %v", kind, name, problems)
			}
			if problems := validation.IsDNS1123Subdomain(key + "-1000"); len(problems) > 0 {
				t.Errorf("key of %s %s is no object name: %v", kind, name, problems)
			}
			if seen.Has(key) {
				t.Errorf("two placements have key %s", key)
			}
			seen.Insert(key)
		}
	}
	if got := keyOf("ResourcePlacement", "shop"); got != "resourceplacement-shop" {
		t.Errorf("short key = %s", got)
	}
}

func names(from, to int) []string {
	var all []string
	for n := from; n < to; n++ {
		all = append(all, fmt.Sprintf("c%04d", n))
	}
	return all
}

func TestCut_SeparatesPartsAndSkipsUnpublishedClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		parts     [][]string
		published []string
		assigned  [][]string
		missing   []string
	}{
		"nobody":                    {nil, nil, [][]string{{}}, nil},
		"parts in their order":      {[][]string{{"b", "a"}, {"c"}}, []string{"a", "b", "c"}, [][]string{{"b", "a"}, {"c"}}, nil},
		"unpublished cluster":       {[][]string{{"a", "x", "b"}}, []string{"a", "b"}, [][]string{{"a", "b"}}, []string{"x"}},
		"unpublished part":          {[][]string{{"x", "y"}, {"a"}}, []string{"a"}, [][]string{{"a"}}, []string{"x", "y"}},
		"all unpublished":           {[][]string{{"x"}, {}}, nil, [][]string{{}}, []string{"x"}},
		"part with several objects": {[][]string{names(0, 101)}, names(0, 101), [][]string{names(0, 100), names(100, 101)}, nil},
	} {
		assigned, missing := cut(tc.parts, sets.New(tc.published...), nil)
		if diff := cmp.Diff(tc.assigned, assigned); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.missing, missing); diff != "" {
			t.Errorf("%s, missing (-want +got):\n%s", name, diff)
		}
	}
}

// A reader that collects all objects of a decision during a write finds each remaining cluster at every
// moment.
func TestWrite_MovedClusterIsAlwaysInAnObject(t *testing.T) {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{multiclusterv1alpha1.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	var stay sets.Set[string]
	check := func(ctx context.Context, c client.Client) {
		t.Helper()
		var list multiclusterv1alpha1.PlacementDecisionList
		if err := c.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		now := sets.New[string]()
		for _, object := range list.Items {
			for _, decision := range object.Decisions {
				now.Insert(decision.ClusterProfileRef.Name)
			}
		}
		if lost := stay.Difference(now); lost.Len() > 0 {
			t.Fatalf("%d clusters are in no object: %v", lost.Len(), sets.List(lost)[:1])
		}
	}
	watched := interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			err := c.Update(ctx, object, options...)
			check(ctx, c)
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			err := c.Delete(ctx, object, options...)
			check(ctx, c)
			return err
		},
	}
	all := names(0, 400)
	placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "1"}}
	for name, after := range map[string][]string{
		"second object loses most clusters":    slices.Concat(all[:100], all[190:400]),
		"first and third object lose clusters": slices.Concat(all[80:200], all[260:400]),
		"only the last object stays":           all[350:],
		"every second cluster is removed": func() (half []string) {
			for i := 0; i < len(all); i += 2 {
				half = append(half, all[i])
			}
			return half
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(kinds).WithInterceptorFuncs(watched).Build()
			r := NewFleet(Options{Client: hub, Namespace: "fleet-system"}, true)
			key := types.NamespacedName{Namespace: "n", Name: "p"}
			stay = sets.New[string]()
			write := func(clusters []string, existing []*multiclusterv1alpha1.PlacementDecision) []*multiclusterv1alpha1.PlacementDecision {
				assigned, _ := cut([][]string{clusters}, sets.New(all...), clustersOf(existing))
				objects, err := r.desired(key, placement, assigned)
				if err == nil {
					_, err = r.write(t.Context(), slices.Clone(objects), existing)
				}
				if err != nil {
					t.Fatal(err)
				}
				return objects
			}
			before := write(all, nil)
			stay = sets.New(after...)
			write(after, before)
			var list multiclusterv1alpha1.PlacementDecisionList
			if err := hub.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			total := 0
			for _, object := range list.Items {
				total += len(object.Decisions)
			}
			if total != len(after) {
				t.Errorf("%d clusters are in %d objects, want %d", total, len(list.Items), len(after))
			}
		})
	}
}

func TestOwner(t *testing.T) {
	owned := func(namespace, apiVersion, kind string) *multiclusterv1alpha1.PlacementDecision {
		yes := true
		return &multiclusterv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "p", Controller: &yes}}}}
	}
	r, o := NewFleet(Options{Namespace: "fleet-system"}, false), NewOCM(Options{Namespace: "fleet-system"})
	fleetVersion, ocmVersion := placementv1beta1.GroupVersion.String(), "cluster.open-cluster-management.io/v1beta1"
	for name, tc := range map[string]struct {
		of     *Reconciler
		object client.Object
		want   []types.NamespacedName
	}{
		"a ResourcePlacement's":                   {r, owned("n", fleetVersion, "ResourcePlacement"), []types.NamespacedName{{Namespace: "n", Name: "p"}}},
		"of another version":                      {r, owned("n", "placement.kubernetes-fleet.io/v1", "ResourcePlacement"), []types.NamespacedName{{Namespace: "n", Name: "p"}}},
		"a ClusterResourcePlacement's":            {r, owned("fleet-system", fleetVersion, "ClusterResourcePlacement"), []types.NamespacedName{{Name: "p"}}},
		"a ClusterResourcePlacement's, elsewhere": {r, owned("n", fleetVersion, "ClusterResourcePlacement"), nil},
		"a Placement's, of the other family":      {r, owned("n", ocmVersion, "Placement"), nil},
		"a Placement's":                           {o, owned("n", ocmVersion, "Placement"), []types.NamespacedName{{Namespace: "n", Name: "p"}}},
		"another group's":                         {o, owned("n", "apps/v1", "Placement"), nil},
		"nobody's":                                {o, &multiclusterv1alpha1.PlacementDecision{}, nil},
	} {
		if diff := cmp.Diff(tc.want, tc.of.owner(tc.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The key of a decision is stored, so that another value would be another object.
func TestKeyOf_StaysTheSame(t *testing.T) {
	if got, want := keyOf("ClusterResourcePlacement", strings.Repeat("p", 50)), "clusterresourceplacement-ppppppppppppppppppppppppppp-985b834d6c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
