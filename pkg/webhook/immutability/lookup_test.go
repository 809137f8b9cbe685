// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// An archive is a hub on which the first and the second object can only be read concurrently.
type archive struct {
	client.Reader
	both    sync.WaitGroup
	objects map[string]map[string]any
}

func (l *archive) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if key.Name == "first" || key.Name == "second" {
		l.both.Done()
		l.both.Wait()
	}
	data, ok := l.objects[key.Name]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	object.(*unstructured.Unstructured).Object["data"] = data
	return nil
}

func getting(name, from string) admissionv1alpha1.Lookup {
	return admissionv1alpha1.Lookup{Name: name, OnMissing: admissionv1alpha1.MissingDeny, Get: &admissionv1alpha1.ObjectGet{APIVersion: "v1", Kind: "ConfigMap", NameFrom: from}}
}

func configMaps() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

func TestLookups_WaitOnlyForLookupsThatTheyRead(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{Lookups: []admissionv1alpha1.Lookup{
		getting("a", "'first'"), getting("b", "'second'"), getting("none", "''"), getting("c", "params.lookups.a.data.next"), getting("d", "'absent'"),
	}}))
	hub := &archive{objects: map[string]map[string]any{"first": {"next": "third"}, "second": {}, "third": {"last": "yes"}}}
	hub.both.Add(2)
	request, err := NewRequest(reviewOf(t, "", "{a: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := compiled.lookUp(t.Context(), finder{hub, configMaps(), newAbsences(clock.RealClock{}), newAbsences(clock.RealClock{})}, request, surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, slices.Sorted(maps.Keys(seen.found))); diff != "" {
		t.Errorf("what is found differs (-want +got):\n%s", diff)
	}
	if last, _, _ := unstructured.NestedString(seen.found, "c", "data", "last"); last != "yes" {
		t.Errorf("lookup c found %v, want what lookup a has named", seen.found["c"])
	}
	if diff := cmp.Diff([]Violation{{Path: "spec", Message: "ConfigMap ns/absent is not found"}}, seen.violations); diff != "" {
		t.Errorf("violations differ (-want +got):\n%s", diff)
	}
}

// discovery counts its reads.
type discovery struct {
	meta.RESTMapper
	asked int
}

func (d *discovery) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	d.asked++
	return d.RESTMapper.RESTMapping(kind, versions...)
}

func TestLookups_CacheAbsenceOfKind(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	empty := meta.NewDefaultRESTMapper(nil)
	hub := &discovery{RESTMapper: empty}
	find := finder{mapper: hub, absent: newAbsences(now)}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	for range 3 {
		if as, err := find.served(kind); as != nil || err != nil {
			t.Fatalf("it is served as %v, %v", as, err)
		}
	}
	if hub.asked != 1 {
		t.Errorf("the hub was asked %d times", hub.asked)
	}
	empty.Add(kind, meta.RESTScopeNamespace)
	now.SetTime(now.Now().Add(absentFor))
	if as, err := find.served(kind); as == nil || err != nil {
		t.Errorf("a kind that came is still absent after %s: %v", absentFor, err)
	}
}
