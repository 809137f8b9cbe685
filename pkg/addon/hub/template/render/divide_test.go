// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// filled is a ConfigMap with this many bytes of data.
func filled(name string, bytes int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"agents"},"data":{"x":%q}}`, name, strings.Repeat("x", bytes))
}

// specOf has ConfigMaps with the names a, b and so on and with this many KiB each. One with 0 is omitted.
func specOf(sizes ...int) workv1.ManifestWorkSpec {
	spec := workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps"}}}}
	for i, size := range sizes {
		if size > 0 {
			manifest := workv1.Manifest{}
			manifest.Raw = []byte(filled(string(rune('a'+i)), size<<10))
			spec.Workload.Manifests = append(spec.Workload.Manifests, manifest)
		}
	}
	return spec
}

// names are the names of the ConfigMaps of each ManifestWork.
func names(t *testing.T, works map[int]workv1.ManifestWorkSpec) map[int]string {
	t.Helper()
	all := map[int]string{}
	for number, work := range works {
		for _, manifest := range work.Workload.Manifests {
			of, err := objectOf(manifest)
			if err != nil {
				t.Fatal(err)
			}
			all[number] += of.name
		}
		if len(work.ManifestConfigs) != 1 {
			t.Errorf("ManifestWork %d: %v", number, work.ManifestConfigs)
		}
	}
	return all
}

func TestDivide_KeepsManifestsInTheirManifestWork(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is []int
		first   map[int]string
		want    map[int]string
	}{
		"a small template is one ManifestWork":           {nil, []int{1, 2, 3}, nil, map[int]string{0: "abc"}},
		"a large one is several, in its order":           {nil, []int{300, 200, 50, 390}, nil, map[int]string{0: "ac", 1: "b", 2: "d"}},
		"a manifest that grows stays":                    {[]int{200, 190, 100}, []int{200, 290, 100}, map[int]string{0: "ab", 1: "c"}, map[int]string{0: "ab", 1: "c"}},
		"the others stay when one leaves":                {[]int{300, 300, 300}, []int{0, 300, 300}, map[int]string{0: "a", 1: "b", 2: "c"}, map[int]string{1: "b", 2: "c"}},
		"a new one gets a place that is free":            {[]int{300, 300, 0, 300}, []int{0, 300, 50, 300}, map[int]string{0: "a", 1: "b", 2: "d"}, map[int]string{0: "c", 1: "b", 2: "d"}},
		"new ones before the others move none of them":   {[]int{0, 0, 300}, []int{190, 190, 300}, map[int]string{0: "c"}, map[int]string{1: "ab", 0: "c"}},
		"one that fits no ManifestWork that is not full": {nil, []int{10, 450}, nil, map[int]string{0: "a", 1: "b"}},
	} {
		before, err := Divide(specOf(tc.was...), nil)
		if diff := cmp.Diff(tc.first, names(t, before)); err != nil || diff != "" && len(tc.first) > 0 {
			t.Errorf("%s, before: %v %s", name, err, diff)
		}
		got, err := Divide(specOf(tc.is...), before)
		if diff := cmp.Diff(tc.want, names(t, got)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		again, err := Divide(specOf(tc.is...), got)
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s, again: %v %v", name, err, names(t, again))
		}
	}
}

func TestDivide_RefusesWhatWouldHaveToMove(t *testing.T) {
	before, err := Divide(specOf(200, 190), nil)
	if err != nil || len(before) != 1 {
		t.Fatalf("%d ManifestWorks, %v", len(before), err)
	}
	_, err = Divide(specOf(290, 290), before)
	if err == nil || !strings.Contains(err.Error(), "-deploy-0 have more than 512000 bytes now") {
		t.Error(err)
	}
	invalid := before[0]
	invalid.Workload.Manifests = slices.Clone(invalid.Workload.Manifests)
	invalid.Workload.Manifests[0].Raw = []byte("[")
	if _, err := Divide(invalid, nil); err == nil {
		t.Error("a manifest that is no object was delivered")
	}
	if _, err := Divide(specOf(1), map[int]workv1.ManifestWorkSpec{0: invalid}); err == nil {
		t.Error("an existing manifest that is no object was ignored")
	}
}
