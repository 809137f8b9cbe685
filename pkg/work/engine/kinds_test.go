// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

func TestOwnKinds(t *testing.T) {
	kinds := kindsOfAMember().(*apimeta.DefaultRESTMapper)
	kinds.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, apimeta.RESTScopeRoot)
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","names":{"kind":"Widget"}}}`
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`
	const stranger = `{"apiVersion":"other.com/v1","kind":"Widget","metadata":{"name":"a"}}`
	want := []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Widget"}}

	items, err := plan(raw(widget, stranger, definition), kinds)
	if err != nil {
		t.Fatal(err)
	}
	results := RefuseAll(items, nil).Manifests
	if diff := cmp.Diff(want, ownKinds(items, results)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	results[2].Refused = &refusal.Refusal{Reason: NotWritten, Message: "no"}
	if got := ownKinds(items, results); got != nil {
		t.Errorf("a definition that was refused defines %v", got)
	}
	if got := ownKinds(items, nil); got != nil {
		t.Errorf("kinds without results: %v", got)
	}
}

func TestServedKinds_RenewOncePerIntervalForAllWorks(t *testing.T) {
	now, asked := testingclock.NewFakeClock(early.Time), 0
	kinds := &servedKinds{current: kindsOfAMember(), clock: now, fresh: func() (kindFinder, error) {
		asked++
		return apimeta.NewDefaultRESTMapper(nil), nil
	}}
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	if _, err := kinds.RESTMapping(deployment, "v1"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		kinds.renew()
	}
	if _, err := kinds.RESTMapping(deployment, "v1"); !apimeta.IsNoMatchError(err) || asked != 1 {
		t.Errorf("after %d renewals the removed kind is: %v", asked, err)
	}
	now.Step(kindRenewal + time.Second)
	if kinds.renew(); asked != 2 {
		t.Errorf("%d renewals, when the last was long ago", asked)
	}
}

func TestUnserved_ReportsAKindThatWasRemoved(t *testing.T) {
	kinds := kindsOfAMember().(*apimeta.DefaultRESTMapper)
	kinds.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, apimeta.RESTScopeNamespace)
	items, err := plan(raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`), kinds)
	if err != nil {
		t.Fatal(err)
	}
	items = WithMode(items, Mode{Method: Merge})
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "POST", schema.GroupResource{}, "", "404 page not found", 0, true)
	for name, tc := range map[string]struct {
		item     Item
		response error
		unserved bool
		says     string
	}{
		"a kind that is gone":               {items[0], unserved, true, "The member has no kind Widget in example.com/v1"},
		"one of Kubernetes' own":            {items[1], unserved, true, "the server could not find the requested resource"},
		"a missing namespace":               {items[0], apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), false, `namespaces "ns" not found`},
		"a kind without the right to write": {items[0], apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "a", nil), false, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
			e.member.(*fake.FakeDynamicClient).PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, tc.response
			})
			out := e.run(t.Context(), work, []Item{tc.item})[0]
			if out.unserved != tc.unserved || out.Owned || out.Refused == nil || !strings.Contains(out.Refused.Message, tc.says) {
				t.Errorf("it is %+v", out)
			}
		})
	}
}
