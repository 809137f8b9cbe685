// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func id(name string) placementv1beta1.WorkResourceIdentifier {
	return placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: name}
}

func itemOf(name string) item { return item{id: id(name), object: &unstructured.Unstructured{}} }

func refusedItem(name string) item {
	it := itemOf(name)
	it.refused = &refusal{placementv1beta1.ReasonManifestApplyFailed, "no"}
	return it
}

func entryOf(name string, uid types.UID) entry {
	return entry{WorkResourceIdentifier: id(name), UID: uid}
}

func statusOf(names ...string) []placementv1beta1.ManifestCondition {
	var list []placementv1beta1.ManifestCondition
	for _, name := range names {
		list = append(list, placementv1beta1.ManifestCondition{Identifier: id(name)})
	}
	return list
}

func TestIntendedEntersWhatIsWrittenForTheFirstTime(t *testing.T) {
	cases := map[string]struct {
		ledger []entry
		status []placementv1beta1.ManifestCondition
		items  []item
		want   []entry
	}{
		"all is new": {
			items: []item{itemOf("a"), itemOf("b")},
			want:  []entry{entryOf("a", ""), entryOf("b", "")},
		},
		"nothing is new": {
			ledger: []entry{entryOf("a", "1")},
			items:  []item{itemOf("a")},
			want:   []entry{entryOf("a", "1")},
		},
		"what is removed later stays until then": {
			ledger: []entry{entryOf("old", "1")},
			items:  []item{itemOf("a")},
			want:   []entry{entryOf("old", "1"), entryOf("a", "")},
		},
		"what the status names is known, so that a refusal costs no write": {
			status: statusOf("a"),
			items:  []item{itemOf("a")},
		},
		"what is refused beforehand is not written": {
			items: []item{refusedItem("a"), {refused: &refusal{}}},
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

func TestRecordedHoldsWhatMayBeOurs(t *testing.T) {
	cases := map[string]struct {
		ledger  []entry
		status  []placementv1beta1.ManifestCondition
		items   []item
		outcome outcome // of the one item
		gone    []string
		want    []entry
	}{
		"an applied object with its UID": {
			ledger:  []entry{entryOf("a", "")},
			items:   []item{itemOf("a")},
			outcome: outcome{holds: true, uid: "1"},
			want:    []entry{entryOf("a", "1")},
		},
		"not an object that is not ours": {
			ledger:  []entry{entryOf("a", "")},
			items:   []item{itemOf("a")},
			outcome: outcome{refused: &refusal{}, uid: "1"},
		},
		"an object of which nothing could be found out": {
			ledger:  []entry{entryOf("a", "1")},
			items:   []item{itemOf("a")},
			outcome: outcome{holds: true, err: errors.New("no answer")},
			want:    []entry{entryOf("a", "1")},
		},
		"an object that was applied and whose manifest is now refused": {
			ledger: []entry{entryOf("a", "1")},
			items:  []item{refusedItem("a")},
			want:   []entry{entryOf("a", "1")},
		},
		"what is left over until it is gone": {
			ledger:  []entry{entryOf("going", "1"), entryOf("gone", "2")},
			items:   []item{itemOf("a")},
			outcome: outcome{holds: true, uid: "3"},
			gone:    []string{"gone"},
			want:    []entry{entryOf("a", "3"), entryOf("going", "1")},
		},
		"what only the status named and could not be removed": {
			status:  statusOf("maybe"),
			items:   []item{itemOf("a")},
			outcome: outcome{holds: true, uid: "3"},
			want:    []entry{entryOf("a", "3"), entryOf("maybe", "")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gone := map[manifest.Key]bool{}
			for _, name := range tc.gone {
				gone[manifest.KeyOf(id(name))] = true
			}
			got := recorded(tc.ledger, known(tc.ledger, tc.status), tc.items, []outcome{tc.outcome}, gone)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftovers(t *testing.T) {
	everything := []entry{entryOf("a", "1"), entryOf("b", "2")}
	otherVersion := itemOf("a")
	otherVersion.id.Version, otherVersion.id.Ordinal = "v2", 5
	cases := map[string]struct {
		items []item
		want  []entry
	}{
		"what no manifest is for":                         {[]item{itemOf("a")}, []entry{entryOf("b", "2")}},
		"nothing that another version is for":             {[]item{otherVersion, itemOf("b")}, nil},
		"nothing whose manifest is refused":               {[]item{refusedItem("a"), itemOf("b")}, nil},
		"nothing while a manifest cannot be read":         {[]item{itemOf("a"), {}}, nil},
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
