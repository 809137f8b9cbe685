// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func id(name string) manifest.Ref {
	return manifest.Ref{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: name}
}

func itemOf(name string) Item { return Item{Ref: id(name), object: &unstructured.Unstructured{}} }

func refusedItem(name string) Item {
	it := itemOf(name)
	it.Refused = &refusal.Refusal{Reason: NotWritten, Message: "no"}
	return it
}

func entryOf(name string, uid types.UID) Entry {
	return Entry{Ref: id(name), UID: uid}
}

func statusOf(names ...string) []manifest.Ref {
	var list []manifest.Ref
	for _, name := range names {
		list = append(list, id(name))
	}
	return list
}

func TestIntended_EntersNewObjects(t *testing.T) {
	cases := map[string]struct {
		ledger []Entry
		status []manifest.Ref
		items  []Item
		want   []Entry
	}{
		"all is new": {
			items: []Item{itemOf("a"), itemOf("b")},
			want:  []Entry{entryOf("a", ""), entryOf("b", "")},
		},
		"nothing is new": {
			ledger: []Entry{entryOf("a", "1")},
			items:  []Item{itemOf("a")},
			want:   []Entry{entryOf("a", "1")},
		},
		"objects to remove later stay": {
			ledger: []Entry{entryOf("old", "1")},
			items:  []Item{itemOf("a")},
			want:   []Entry{entryOf("old", "1"), entryOf("a", "")},
		},
		"objects in the status are known, so that a refusal costs no write": {
			status: statusOf("a"),
			items:  []Item{itemOf("a")},
		},
		"compared objects are not entered": {
			items: WithMode([]Item{itemOf("a")}, Mode{Method: Compare}),
		},
		"refused objects are not entered": {
			items: []Item{refusedItem("a"), {Refused: &refusal.Refusal{}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := intended(tc.ledger, known(tc.ledger, tc.status), tc.items)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecorded_ContainsObjectsThatMayBeOurs(t *testing.T) {
	cases := map[string]struct {
		ledger []Entry
		status []manifest.Ref
		items  []Item
		result ManifestResult // of the one item
		gone   []string
		want   []Entry
	}{
		"an applied object with its UID": {
			ledger: []Entry{entryOf("a", "")},
			items:  []Item{itemOf("a")},
			result: ManifestResult{Owned: true, UID: "1"},
			want:   []Entry{entryOf("a", "1")},
		},
		"not an object that is not ours": {
			ledger: []Entry{entryOf("a", "")},
			items:  []Item{itemOf("a")},
			result: ManifestResult{Refused: &refusal.Refusal{}, UID: "1"},
		},
		"an object of which nothing could be found out": {
			ledger: []Entry{entryOf("a", "1")},
			items:  []Item{itemOf("a")},
			result: ManifestResult{Owned: true, Err: errors.New("no answer")},
			want:   []Entry{entryOf("a", "1")},
		},
		"an object that was applied and whose manifest is now refused": {
			ledger: []Entry{entryOf("a", "1")},
			items:  []Item{refusedItem("a")},
			want:   []Entry{entryOf("a", "1")},
		},
		"leftovers until they are gone": {
			ledger: []Entry{entryOf("going", "1"), entryOf("gone", "2")},
			items:  []Item{itemOf("a")},
			result: ManifestResult{Owned: true, UID: "3"},
			gone:   []string{"gone"},
			want:   []Entry{entryOf("a", "3"), entryOf("going", "1")},
		},
		"objects of the status that could not be removed": {
			status: statusOf("maybe"),
			items:  []Item{itemOf("a")},
			result: ManifestResult{Owned: true, UID: "3"},
			want:   []Entry{entryOf("a", "3"), entryOf("maybe", "")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gone := map[manifest.Key]bool{}
			for _, name := range tc.gone {
				gone[manifest.KeyOf(id(name))] = true
			}
			got := recorded(tc.ledger, known(tc.ledger, tc.status), tc.items, []ManifestResult{tc.result}, gone)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftovers(t *testing.T) {
	everything := []Entry{entryOf("a", "1"), entryOf("b", "2")}
	otherVersion := itemOf("a")
	otherVersion.Ref.Version, otherVersion.Ref.Ordinal = "v2", 5
	cases := map[string]struct {
		items []Item
		want  []Entry
	}{
		"objects without a manifest":                      {[]Item{itemOf("a")}, []Entry{entryOf("b", "2")}},
		"nothing that another version is for":             {[]Item{otherVersion, itemOf("b")}, nil},
		"nothing whose manifest is refused":               {[]Item{refusedItem("a"), itemOf("b")}, nil},
		"nothing while a manifest cannot be read":         {[]Item{itemOf("a"), {}}, nil},
		"everything when there are no manifests any more": {nil, everything},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, leftovers(everything, tc.items)); diff != "" {
				t.Errorf("leftovers (-want +got):\n%s", diff)
			}
		})
	}
}
