// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/test/support/bomb"
)

func TestToJSON_StaysWithinMemoryLimit(t *testing.T) {
	for name, text := range bomb.Texts() {
		t.Run(name, func(t *testing.T) {
			if spent := bomb.Cost(func() { _, _ = ToJSON([]byte(text), Object) }); spent > bomb.MayCost {
				t.Errorf("reading %d bytes of YAML allocated %d MiB", len(text), spent>>20)
			}
			if spent := bomb.Cost(func() { _ = Unmarshal([]byte(text), Object, new(any)) }); spent > bomb.MayCost {
				t.Errorf("reading %d bytes of YAML into a value allocated %d MiB", len(text), spent>>20)
			}
			if spent := bomb.Cost(func() { _ = UnmarshalJSON([]byte(text), Object, new(any)) }); spent > bomb.MayCost {
				t.Errorf("reading %d bytes of JSON allocated %d MiB", len(text), spent>>20)
			}
		})
	}
}

// beginningOf is a seed. Larger ones would be too slow for the fuzzer; the test above uses complete
// ones.
func beginningOf(text string) []byte { return []byte(text[:min(len(text), 4<<10)]) }

// A text is decoded in limited memory, with the same meaning as Kubernetes' own decoder gives it,
// which is compared where there is no harmful alias and no tag.
func FuzzToJSON(f *testing.F) {
	for _, text := range bomb.Texts() {
		f.Add(beginningOf(text))
	}
	f.Add([]byte("a: yes\nb: 0777\nc: 1_0\n'd': [~, 2001-01-01]\n<<: {e: 1.0e+3}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<20 {
			return
		}
		var got []byte
		var err error
		if spent := bomb.Cost(func() { got, err = ToJSON(text, Object) }); spent > bomb.MayCost {
			t.Fatalf("reading %d bytes allocated %d MiB", len(text), spent>>20)
		}
		if err != nil {
			return
		}
		if len(got) > 8*Object.expanded(text) {
			t.Fatalf("%d bytes came of %d", len(got), len(text))
		}
		if bytes.ContainsAny(text, "*&!") || bytes.Contains(text, []byte("<<")) {
			return
		}
		want, err := yaml.YAMLToJSONStrict(text)
		if err == nil && !cmp.Equal(floats(t, want), floats(t, got)) {
			t.Fatalf("Kubernetes reads %s, we read %s", want, got)
		}
	})
}

func floats(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if v, ok := value.(float64); ok && v == 0 {
		return math.Abs(v)
	}
	return value
}

// Decoded JSON equals the result of encoding/json, except for duplicate keys.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, text := range bomb.Texts() {
		f.Add(beginningOf(text))
	}
	f.Add([]byte(`{"a":[1,{"a":2,"b":"c"}],"b":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<20 {
			return
		}
		var got any
		var err error
		if spent := bomb.Cost(func() { err = UnmarshalJSON(text, Object, &got) }); spent > bomb.MayCost {
			t.Fatalf("reading %d bytes allocated %d MiB", len(text), spent>>20)
		}
		var want any
		if jsonErr := json.Unmarshal(text, &want); err == nil && (jsonErr != nil || !cmp.Equal(want, got)) {
			t.Fatalf("encoding/json reads %v (%v), we read %v", want, jsonErr, got)
		}
	})
}
