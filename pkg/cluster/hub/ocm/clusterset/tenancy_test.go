// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

func hubWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1beta2.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
}

func all(context.Context, *clusterv1.ManagedCluster) (bool, error) { return true, nil }

func labelled(name, set string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterSetLabel: set}}}
}

func setNamed(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func binding(namespace, name, set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
}

func TestWithin_ReturnsClustersOfBoundSets(t *testing.T) {
	going := setNamed("going")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"example.com/wait"}
	unbound := binding("a", "unbound", "unbound")
	unbound.DeletionTimestamp, unbound.Finalizers = going.DeletionTimestamp, going.Finalizers
	broken := setNamed("broken")
	broken.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: "Unheard"}
	everything := setNamed("everything")
	everything.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector}
	fleet := []client.Object{
		labelled("one", "red"), labelled("two", "blue"), labelled("three", "going"), labelled("four", "unbound"), labelled("five", "broken"),
		setNamed("red"), setNamed("blue"), setNamed("unbound"), going, broken, everything,
	}
	for name, tc := range map[string]struct {
		bindings []client.Object
		counts   func(context.Context, *clusterv1.ManagedCluster) (bool, error)
		want     sets.Set[string]
	}{
		"nothing is bound":              {nil, all, sets.New[string]()},
		"one set":                       {[]client.Object{binding("a", "red", "red")}, all, sets.New("one")},
		"two sets":                      {[]client.Object{binding("a", "red", "red"), binding("a", "blue", "blue")}, all, sets.New("one", "two")},
		"a set of another namespace":    {[]client.Object{binding("b", "red", "red")}, all, sets.New[string]()},
		"a binding of another name":     {[]client.Object{binding("a", "red", "blue")}, all, sets.New[string]()},
		"a set that is not there":       {[]client.Object{binding("a", "green", "green")}, all, sets.New[string]()},
		"a set that is going":           {[]client.Object{binding("a", "going", "going")}, all, sets.New[string]()},
		"a binding that is going":       {[]client.Object{unbound}, all, sets.New[string]()},
		"a selector that nobody knows":  {[]client.Object{binding("a", "broken", "broken")}, all, sets.New[string]()},
		"a set of everything":           {[]client.Object{binding("a", "everything", "everything")}, all, sets.New("one", "two", "three", "four", "five")},
		"one that is not of the member": {[]client.Object{binding("a", "red", "red")}, func(context.Context, *clusterv1.ManagedCluster) (bool, error) { return false, nil }, sets.New[string]()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (Tenancy{Reader: hubWith(t, append(tc.bindings, fleet...)...), Counts: tc.counts}).Within(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if got == nil || !got.Equal(tc.want) {
				t.Errorf("it may choose from %v, want %v", sets.List(got), sets.List(tc.want))
			}
		})
	}
}

// An error must count neither as a limit nor as none.
func TestWithin_FailsIfUnknown(t *testing.T) {
	refused := errors.New("refused")
	tenancy := Tenancy{Reader: hubWith(t, labelled("one", "red"), setNamed("red"), binding("a", "red", "red")),
		Counts: func(context.Context, *clusterv1.ManagedCluster) (bool, error) { return true, refused }}
	if got, err := tenancy.Within(t.Context(), "a"); !errors.Is(err, refused) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// For random sets, bindings and clusters, no namespace gets a cluster that is not bound to it.
func TestProperty_TenancyHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func(what string, n int) string { return fmt.Sprintf("%s-%d", what, n) }
	for range 200 {
		var objects []client.Object
		setOf, bound := map[string]string{}, map[string]sets.Set[string]{}
		for n := range 4 {
			objects = append(objects, setNamed(name("set", n)))
		}
		for n := range 12 {
			setOf[name("c", n)] = name("set", random.IntN(6)) // some sets do not exist
			objects = append(objects, labelled(name("c", n), setOf[name("c", n)]))
		}
		for n := range 3 {
			bound[name("ns", n)] = sets.New[string]()
			for s := range 4 {
				if random.IntN(2) == 0 {
					bound[name("ns", n)].Insert(name("set", s))
					objects = append(objects, binding(name("ns", n), name("set", s), name("set", s)))
				}
			}
		}
		tenancy := Tenancy{Reader: hubWith(t, objects...), Counts: all}
		for namespace, sets := range bound {
			within, err := tenancy.Within(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			for cluster, set := range setOf {
				if within.Has(cluster) != sets.Has(set) {
					t.Errorf("namespace %s may choose %s: %v, though its set %s is bound there: %v", namespace, cluster, within.Has(cluster), set, sets.Has(set))
				}
			}
		}
	}
}
