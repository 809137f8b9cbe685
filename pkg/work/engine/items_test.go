// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

func TestLacking_NamesTheNamespacesThatAreMissing(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	missing := apierrors.NewNotFound(corev1.Resource("namespaces"), "ns")
	e.member.(*fake.FakeDynamicClient).PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, missing
	})
	it := configMapItem(t, "1")
	results := e.run(t.Context(), work, []Item{it, it})
	if results[0].Refused == nil || results[0].Final {
		t.Errorf("the result is %+v", results[0])
	}
	l := &missingNamespaces{}
	if !l.note(results) || l.note(results) {
		t.Error("a change is not told from none")
	}
	got := l.namespaces()
	if len(got) != 1 || got[0].Name != "ns" || got[0].Resource.Resource != "namespaces" {
		t.Errorf("followed are %s", cmp.Diff(nil, got))
	}
	if !l.note(nil) || len(l.namespaces()) != 0 {
		t.Error("a namespace that came is still followed")
	}
	ending := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("the namespace is being terminated"))
	if isWithoutNamespace(ending) {
		t.Error("a right that is missing counts as a namespace that ends")
	}
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	if !isWithoutNamespace(ending) {
		t.Error("a namespace that ends is not followed until it is created again")
	}
	if isWithoutNamespace(apierrors.NewNotFound(corev1.Resource("configmaps"), "a")) {
		t.Error("another object that is missing counts as a namespace")
	}
}
