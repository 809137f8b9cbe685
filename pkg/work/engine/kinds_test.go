// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/refusal"
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
	outcomes := RefuseAll(items, nil).Outcomes
	if diff := cmp.Diff(want, ownKinds(items, outcomes)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	outcomes[2].Refused = &refusal.Refusal{Reason: NotWritten, Message: "no"}
	if got := ownKinds(items, outcomes); got != nil {
		t.Errorf("a definition that was refused defines %v", got)
	}
	if got := ownKinds(items, nil); got != nil {
		t.Errorf("without outcomes there are kinds: %v", got)
	}
}
