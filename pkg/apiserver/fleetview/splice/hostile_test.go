// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// hostile are texts of JSON strings, of about size bytes, that a member can choose to slow the scan.
func hostile(size int) map[string]string {
	return map[string]string{
		"plain":          strings.Repeat("a", size),
		"line breaks":    strings.Repeat(`\n`, size/2),
		"escaped quotes": strings.Repeat(`\"`, size/2),
		"backslashes":    strings.Repeat(`\\`, size/2),
		"escapes, quote": strings.Repeat(`\n`, size/4) + strings.Repeat(`\"\n`, size/8),
		"code points":    strings.Repeat(`\u0022`, size/6),
		"brackets":       strings.Repeat(`}]`, size/2),
	}
}

// hostileObjects are objects of about size bytes.
func hostileObjects(size int) map[string]string {
	objects := map[string]string{}
	for name, text := range hostile(size) {
		objects[name] = `{"data":{"x":"` + text + `"},"metadata":{"name":"x"}}`
		objects["annotation of "+name] = `{"metadata":{"name":"x","annotations":{"x":"` + text + `"}}}`
	}
	objects["short strings"] = `{"metadata":{"name":"x"},"data":["` + strings.Repeat(`a","`, size/4) + `"]}`
	objects["labels"] = `{"metadata":{"name":"x","labels":{"` + strings.Repeat(`a":"b","`, size/24) + `":""}}}`
	return objects
}

// A scan that searches the end of a string at every escape needs minutes for such an item.
func TestMarker_MarksLargeItemWhateverItsEscapes(t *testing.T) {
	for name, object := range hostileObjects(MaxItem / 4) {
		t.Run(name, func(t *testing.T) {
			got, err := spliced(false, reply{"a", `{"kind":"L","apiVersion":"v1","items":[` + object + `]}`})
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Items []struct {
					Metadata struct {
						Name   string
						Labels map[string]string
					}
				}
			}
			if err := json.Unmarshal([]byte(got), &list); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Metadata.Name != "x" || list.Items[0].Metadata.Labels[label] != "a" {
				t.Errorf("got %.200s", got)
			}
		})
	}
}

// A few bytes of an item take many times as much memory while it is taken apart.
func TestMarker_RejectsItemOfMillionElements(t *testing.T) {
	const many = MaxItem/5 - 100
	for name, list := range map[string]string{
		"fields": `{"kind":"L","apiVersion":"v1","items":[{` + strings.Repeat(`"":0,`, many) + `"metadata":{"name":"x"}}]}`,
		"labels": `{"kind":"L","apiVersion":"v1","items":[{"metadata":{"name":"x","labels":{` + strings.Repeat(`"":0,`, many) + `"":0}}}]}`,
		"cells":  `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[{"cells":[` + strings.Repeat(`0,`, many) + `0]}]}`,
	} {
		if got, err := spliced(false, reply{"a", list}); !IsMalformed(err) {
			t.Errorf("%s: got %.200s, %v", name, got, err)
		}
	}
}

func TestColumns_RejectsThousandsOfColumns(t *testing.T) {
	table := func(column string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[` + strings.Repeat(column+",", maxColumns) + column + `],"rows":[]}`
	}
	if got, err := spliced(false, reply{"a", table(`{}`)}); err == nil {
		t.Errorf("got %.200s", got)
	}
}

// BenchmarkFleetview splices items of a hostile member. The time of a byte must not depend on the
// size of the item.
func BenchmarkFleetview(b *testing.B) {
	for _, size := range []int{64 << 10, 512 << 10} {
		for name, object := range hostileObjects(size) {
			b.Run(fmt.Sprintf("hostile/%s/%dKiB", strings.ReplaceAll(name, " ", "-"), size>>10), func(b *testing.B) {
				body := `{"kind":"L","apiVersion":"v1","items":[` + object + `]}`
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					w := NewWriter(io.Discard, label, false)
					if err := add(w, "a", strings.NewReader(body)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
