// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

func replicaSet(namespace, name string) *workv1alpha1.ManifestWorkReplicaSet {
	return &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": "a"}}}
}

func TestDesiredName_IsUnique(t *testing.T) {
	seen := map[string]string{}
	for _, set := range []*workv1alpha1.ManifestWorkReplicaSet{replicaSet("a", "web"), replicaSet("b", "web"), replicaSet("a", "db")} {
		for _, placement := range []string{"p", "q"} {
			for _, cluster := range []string{"c1", "c2"} {
				name, what := desiredName(set, placement, cluster), strings.Join([]string{set.Namespace, set.Name, placement, cluster}, " ")
				if other, errNotOwned := seen[name]; errNotOwned {
					t.Errorf("%s has the name of %s: %s", what, other, name)
				}
				seen[name] = what
				if again := desiredName(set, placement, cluster); again != name {
					t.Errorf("%s has the names %s and %s", what, name, again)
				}
			}
		}
	}
	if name := desiredName(replicaSet("a", "web"), "p", "c1"); !strings.HasPrefix(name, "web-") {
		t.Errorf("%s does not begin with the set's name", name)
	}
}

func TestDesired_HasTemplateAndLabels(t *testing.T) {
	set := replicaSet("team-a", "web.v1")
	set.Spec.ManifestWorkTemplate.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}
	work := desiredWork(set, "production", "cluster1", time.Date(2026, 11, 23, 13, 0, 0, 5, time.FixedZone("x", 3600)))
	want := map[string]string{
		"team": "a", "work.open-cluster-management.io/manifestworkreplicaset": "team-a.web.v1", "work.open-cluster-management.io/placementname": "production",
	}
	if diff := cmp.Diff(want, work.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(set.Spec.ManifestWorkTemplate, work.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if at := work.Annotations[workv1alpha1.GivenAtAnnotation]; at != "2026-11-23T12:00:00Z" {
		t.Errorf("it was given at %s", at)
	}
	if key, ok := setOf(work); !ok || key != (types.NamespacedName{Namespace: "team-a", Name: "web.v1"}) {
		t.Errorf("it is of %s", key)
	}
	if len(set.Labels) != 1 {
		t.Errorf("the set's own labels have become %v", set.Labels)
	}
}

func TestLabelFits_UpToSixtyThreeCharacters(t *testing.T) {
	for length, want := range map[int]bool{61: true, 62: false} {
		if got := labelFits(replicaSet("a", strings.Repeat("n", length))); got != want {
			t.Errorf("a name of %d in namespace a: fits is %v", length, got)
		}
	}
}

func TestForget_KeepsHashAndDeleteOption(t *testing.T) {
	whole := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec: workv1.ManifestWorkSpec{
			Workload:     workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}},
			DeleteOption: &workv1.DeleteOption{TTLSecondsAfterFinished: ptr.To[int64](5)},
		},
		Status: workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{}}}},
	}
	want, err := hash.JSON(&whole.Spec)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := forget(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forget(kept); err != nil {
		t.Fatal(err)
	}
	work := kept.(*workv1.ManifestWork)
	if got, _ := HashOf(work); got != want {
		t.Errorf("its hash is %s, want %s", got, want)
	}
	if len(work.Spec.Workload.Manifests)+len(work.Status.ResourceStatus.Manifests)+len(work.ManagedFields) > 0 || work.Spec.DeleteOption == nil {
		t.Errorf("the cache keeps %+v", work)
	}
	whole.Spec.Workload.Manifests[0].Raw = []byte(`{"a":2}`)
	if other, _ := hash.JSON(&whole.Spec); other == want {
		t.Error("another manifest has the same hash")
	}
}

func TestOnePerCluster_KeepsOneWork(t *testing.T) {
	set := replicaSet("a", "web")
	work := func(cluster, name, placement string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Labels: map[string]string{workv1alpha1.PlacementNameLabel: placement}}}
	}
	ours := work("c1", desiredName(set, "p", "c1"), "p")
	here, more := onePerCluster(set, "p", []*workv1.ManifestWork{
		work("c1", "another", "p"), ours, work("c1", "third", "p"), work("c2", "web-x", "p"), work("c2", "web-y", "p"), work("c3", "web", "q"),
	})
	var kept, beside []string
	for _, cluster := range []string{"c1", "c2", "c3"} {
		if w := here[cluster]; w != nil {
			kept = append(kept, cluster+"/"+w.Name)
		}
	}
	for _, w := range more {
		beside = append(beside, w.Namespace+"/"+w.Name)
	}
	if diff := cmp.Diff([]string{"c1/" + ours.Name, "c2/web-x"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c1/another", "c1/third", "c2/web-y"}, beside); diff != "" {
		t.Errorf("beside (-want +got):\n%s", diff)
	}
}

// The name of a ManifestWork is stored, so that another value would be another object.
func TestDesiredName_StaysTheSame(t *testing.T) {
	if got, want := desiredName(replicaSet("shop", "web"), "p", "member-1"), "web-55cd01c091"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
