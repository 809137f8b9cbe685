// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// memberWith returns a member with these namespaces only.
func memberWith(t *testing.T, namespaces ...*metav1.PartialObjectMetadata) *fake.FakeMetadataClient {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, namespace := range namespaces {
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		objects = append(objects, namespace)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

func named(name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
}

func TestNamespaces_CollectUpToTheLimit(t *testing.T) {
	going := named("going")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	work := metav1.OwnerReference{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "AppliedWork", Name: "web-work"}
	other := metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "AppliedWork", Name: "theirs"}
	some := []*metav1.PartialObjectMetadata{named("default"), named("web", other, work), named("bank", other), going}
	var many []*metav1.PartialObjectMetadata
	for i := range maxNamespaces {
		many = append(many, named(fmt.Sprintf("n-%03d", i)))
	}
	tests := map[string]struct {
		namespaces []*metav1.PartialObjectMetadata
		fails      error
		want       map[string]string
		count      int
		says       string
	}{
		"some, one of which is terminating": {some, nil, map[string]string{"default": "", "web": "web-work", "bank": ""}, 3, "True/Succeeded"},
		"as many as the limit":              {slices.Concat(many, []*metav1.PartialObjectMetadata{going}), nil, nil, maxNamespaces, "True/Succeeded"},
		"too many":                          {slices.Concat(many, []*metav1.PartialObjectMetadata{named("z")}), nil, nil, maxNamespaces, "False/Degraded"},
		"no right to list them":             {some, apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil), nil, 0, "Unknown/NamespacesForbidden"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			member := memberWith(t, tc.namespaces...)
			member.PrependReactor("list", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.fails != nil, nil, tc.fails
			})
			got, err := NewNamespaces(member, clock.RealClock{}).collect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(got.owners) != tc.count {
				t.Errorf("%d namespaces, want %d", len(got.owners), tc.count)
			}
			if tc.want != nil && !cmp.Equal(tc.want, got.owners) {
				t.Errorf("namespaces (-want +got):\n%s", cmp.Diff(tc.want, got.owners))
			}
			if says := string(got.condition.Status) + "/" + got.condition.Reason; says != tc.says {
				t.Errorf("the condition is %s, want %s", says, tc.says)
			}
		})
	}
}

func TestNamespaces_ReturnAnErrorWhenTheListFails(t *testing.T) {
	member := memberWith(t)
	member.PrependReactor("list", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("etcd is unavailable")
	})
	if got, err := NewNamespaces(member, clock.RealClock{}).collect(t.Context()); err == nil {
		t.Errorf("got %v", got)
	}
}

func TestIsDue_WhenNamespacesChange(t *testing.T) {
	imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	told := func(owners map[string]string) *collection {
		return &collection{owners, namespacesCondition(metav1.ConditionTrue, clusterv1beta1.ReasonNamespacesCollected, "all")}
	}
	steps := []struct {
		what  string
		facts facts
		due   bool
		want  map[string]string
		known bool
	}{
		{"an agent that does not collect them", facts{}, true, nil, false},
		{"one that does", facts{collects: true, namespaces: told(map[string]string{"web": ""})}, true, map[string]string{"web": ""}, true},
		{"the same again", facts{collects: true, namespaces: told(map[string]string{"web": ""})}, false, map[string]string{"web": ""}, true},
		{"they cannot be found out", facts{collects: true}, false, map[string]string{"web": ""}, true},
		{"another one", facts{collects: true, namespaces: told(map[string]string{"web": "", "bank": ""})}, true, map[string]string{"web": "", "bank": ""}, true},
		{"an agent that does not collect them any more", facts{}, true, nil, false},
	}
	for _, step := range steps {
		at = at.Add(time.Second)
		before := imc.Status
		imc.Status = joinedReport(imc, step.facts, at)
		if due := isDue(&before, &imc.Status); due != step.due {
			t.Errorf("%s: due is %t", step.what, due)
		}
		if diff := cmp.Diff(step.want, imc.Status.Namespaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		if known := meta.IsStatusConditionTrue(imc.Status.Conditions, "NamespaceCollectionSucceeded"); known != step.known {
			t.Errorf("%s: the condition is True: %t", step.what, known)
		}
	}
}

func TestNamespaces_CollectChangesIntoOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		member := memberWith(t)
		n := NewNamespaces(member, clock.RealClock{})
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		made := 0
		create := func() {
			made++
			object := named(fmt.Sprintf("n-%d", made))
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
			if err := member.Tracker().Add(object); err != nil {
				t.Error(err)
			}
		}
		check := func(when string, wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			got := 0
			for range len(n.changed) {
				<-n.changed
				got++
			}
			if got != want {
				t.Errorf("%s: %d reports, want %d", when, got, want)
			}
		}
		check("while nothing changes", time.Hour, 0)
		create()
		check("at once", namespacesSettle-time.Millisecond, 0)
		check("a moment later", time.Millisecond, 1)
		for range 60 {
			create()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		check("after a minute of changes, which nobody looked at", 0, 1)
		create()
		check("in the pause", namespacesPause/2, 0)
		check("after the pause", namespacesPause/2, 1)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
