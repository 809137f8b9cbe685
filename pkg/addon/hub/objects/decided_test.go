// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/test/support/build"
)

// indexer collects the functions of indexes.
type indexer map[string]client.IndexerFunc

func (i indexer) IndexField(_ context.Context, _ client.Object, field string, extract client.IndexerFunc) error {
	i[field] = extract
	return nil
}

func hubWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	indexes := indexer{}
	if err := AddIndexes(t.Context(), indexes); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(build.Scheme(addonv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme)).WithObjects(objects...).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, byAddOn, indexes[byAddOn]).
		WithIndex(&addonv1alpha1.ClusterManagementAddOn{}, byPlacement, indexes[byPlacement]).Build()
}

func TestManagedByHub_FollowsTheAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"unset":            {nil, true},
		"the hub":          {map[string]string{addonv1alpha1.LifecycleAnnotation: "addon-manager"}, true},
		"its own manager":  {map[string]string{addonv1alpha1.LifecycleAnnotation: "self"}, false},
		"nobody":           {map[string]string{addonv1alpha1.LifecycleAnnotation: ""}, false},
		"somebody unknown": {map[string]string{addonv1alpha1.LifecycleAnnotation: "x"}, false},
	} {
		if got := ManagedByHub(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDecidedBy_ReportsIncompleteLists(t *testing.T) {
	placement := &ocmclusterv1beta1.Placement{ObjectMeta: build.In("team", "p")}
	placement.Status.NumberOfSelectedClusters = 2
	placement.Status.Conditions = []metav1.Condition{{Type: ocmclusterv1beta1.ConditionSatisfied}}
	decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In("team", "p-1")}
	decision.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: "p"}
	decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{{ClusterName: "a"}}
	hub := hubWith(t, placement, decision)

	d, err := DecidedBy(t.Context(), hub, addonv1alpha1.PlacementRef{Namespace: "team", Name: "p"})
	if err != nil || !d.Clusters.Equal(sets.New("a")) || !strings.HasPrefix(d.Incomplete, "Placement team/p: ") {
		t.Errorf("one of two: %+v, %v", d, err)
	}
	decision.Status.Decisions = append(decision.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: "b"})
	if err := hub.Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	d, err = DecidedBy(t.Context(), hub, addonv1alpha1.PlacementRef{Namespace: "team", Name: "p"})
	if err != nil || !d.Clusters.Equal(sets.New("a", "b")) || d.Incomplete != "" {
		t.Errorf("both: %+v, %v", d, err)
	}
	d, err = DecidedBy(t.Context(), hub, addonv1alpha1.PlacementRef{Namespace: "other", Name: "p"})
	if err != nil || d.Clusters.Len() != 0 || d.Incomplete != "Placement other/p does not exist" {
		t.Errorf("a missing Placement: %+v, %v", d, err)
	}
}

func TestHandlers_QueueOnlyWhatIsConcerned(t *testing.T) {
	long := strings.Repeat("long-", 20) + "name"
	of := func(name string, placements ...string) *addonv1alpha1.ClusterManagementAddOn {
		addOn := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named(name)}
		for _, placement := range placements {
			addOn.Spec.InstallStrategy.Placements = append(addOn.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "team", Name: placement}})
		}
		return addOn
	}
	hub := hubWith(t, of("dns", "p", long), of("logs", "p"), of("proxy", "q"), of("manual"),
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("a", "dns")}, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("b", "dns")},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("a", "logs")})
	decision := func(placement string) client.Object {
		d := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In("team", "d")}
		d.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: naming.LabelValue(placement)}
		return d
	}
	queued := func(handler interface {
		Create(context.Context, event.CreateEvent, workqueue.TypedRateLimitingInterface[reconcile.Request])
	}, object client.Object) []string {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		handler.Create(t.Context(), event.CreateEvent{Object: object}, queue)
		names := sets.New[string]()
		for queue.Len() > 0 {
			request, _ := queue.Get()
			names.Insert(request.String())
		}
		return sets.List(names)
	}
	for name, tc := range map[string]struct{ got, want []string }{
		"a Placement":                     {queued(OfPlacement(hub), &ocmclusterv1beta1.Placement{ObjectMeta: build.In("team", "p")}), []string{"/dns", "/logs"}},
		"one of another namespace":        {queued(OfPlacement(hub), &ocmclusterv1beta1.Placement{ObjectMeta: build.In("other", "p")}), []string{}},
		"a decision":                      {queued(OfDecision(hub), decision("q")), []string{"/proxy"}},
		"one of a Placement's long name":  {queued(OfDecision(hub), decision(long)), []string{"/dns"}},
		"one without a Placement":         {queued(OfDecision(hub), &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In("team", "d")}), []string{}},
		"the description of an add-on":    {queued(OfClusterManagementAddOn(hub), of("dns")), []string{"a/dns", "b/dns"}},
		"a description without an add-on": {queued(OfClusterManagementAddOn(hub), of("proxy")), []string{}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	addOns, err := AddOnsOf(t.Context(), hub, "dns")
	if err != nil || len(addOns) != 2 || addOns["b"] == nil {
		t.Errorf("got %v, %v", addOns, err)
	}
}

func TestHashes_AreKeyedLikeInManifestWorks(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	add := func(resource string, desired *addonv1alpha1.ConfigSpecHash) {
		addOn.Status.ConfigReferences = append(addOn.Status.ConfigReferences, addonv1alpha1.ConfigReference{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: resource}, DesiredConfig: desired,
		})
	}
	add("addontemplates", &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}, SpecHash: "1"})
	add("addondeploymentconfigs", &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "deploy"}, SpecHash: "2"})
	want := map[string]string{"addontemplates.addon.open-cluster-management.io//hello": "1", "addondeploymentconfigs.addon.open-cluster-management.io/default/deploy": "2"}
	got, complete := Hashes(addOn)
	if diff := cmp.Diff(want, got); diff != "" || !complete {
		t.Errorf("complete is %v (-want +got)\n%s", complete, diff)
	}
	for name, missing := range map[string]*addonv1alpha1.ConfigSpecHash{"no configuration": nil, "no hash": {ConfigReferent: addonv1alpha1.ConfigReferent{Name: "x"}}} {
		incomplete := addOn.DeepCopy()
		incomplete.Status.ConfigReferences[0].DesiredConfig = missing
		if _, complete := Hashes(incomplete); complete {
			t.Errorf("%s: complete", name)
		}
	}
}
