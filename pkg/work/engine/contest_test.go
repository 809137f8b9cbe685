// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func managed(manager, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func liveConfigMap(value string, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"a/b": value}}}
	live.SetManagedFields(entries)
	return live
}

func TestContestOf(t *testing.T) {
	const data = `{"f:data":{"f:a/b":{}}}`
	const labels = `{"f:metadata":{"f:labels":{"f:x":{}}}}`
	written := liveConfigMap("ours")
	ofStatus := managed("status-writer", data, later)
	ofStatus.Subresource = "status"
	cases := map[string]struct {
		live *unstructured.Unstructured
		want *Contest
	}{
		"a field that another manager owns":           {liveConfigMap("theirs", managed("other", data, early)), &Contest{"other", []string{"/data/a~1b"}}},
		"the owner of the field, not the last writer": {liveConfigMap("theirs", managed("other", data, early), managed("labeller", labels, later)), &Contest{"other", []string{"/data/a~1b"}}},
		"the last of two holders":                     {liveConfigMap("theirs", managed("first", data, early), managed("second", data, later)), &Contest{"second", []string{"/data/a~1b"}}},
		"a field without an owner":                    {liveConfigMap("theirs", managed("remover", labels, early)), &Contest{"remover", []string{"/data/a~1b"}}},
		"neither we nor a writer of status":           {liveConfigMap("theirs", managed("us", data, later), ofStatus), &Contest{"", []string{"/data/a~1b"}}},
		"owners that were removed":                    {liveConfigMap("ours", managed("other", labels, early)), &Contest{"other", []string{"/metadata"}}},
		"an object that was deleted":                  {nil, &Contest{}},
		"an entry that names no fields at all":        {liveConfigMap("theirs", metav1.ManagedFieldsEntry{Manager: "odd"}), &Contest{"odd", []string{"/data/a~1b"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, contestOf(tc.live, written, "us")); diff != "" {
				t.Errorf("contest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHolds_StopsAtLists(t *testing.T) {
	entry := managed("other", `{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}},"f:replicas":{}}}`, early)
	for path, want := range map[string]bool{
		"/spec/containers/0/image": true,
		"/spec/replicas":           true,
		"/spec":                    true,
		"/spec/paused":             false,
		"/data":                    false,
	} {
		if got := hasField(&entry, path); got != want {
			t.Errorf("it holds %s: %t", path, got)
		}
	}
}

func TestContestMessage(t *testing.T) {
	cases := map[string]struct {
		contest Contest
		want    []string
	}{
		"a manager and a field": {Contest{"other", []string{"/data/a"}}, []string{`Field manager "other" changes /data/a after each correction`, "5 minutes", "10"}},
		"an unknown client":     {Contest{"", []string{"/data/a"}}, []string{"Another client changes /data/a"}},
		"a deletion":            {Contest{}, []string{"Another client deletes the object"}},
		"many fields":           {Contest{"other", strings.Split("/1 /2 /3 /4 /5 /6 /7", " ")}, []string{"/1, /2, /3, /4, /5 and 2 more"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.contest.Message("stop it there")
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not mention %q", got, want)
				}
			}
		})
	}
}
