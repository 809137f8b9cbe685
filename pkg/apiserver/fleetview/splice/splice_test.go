// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/test/support/bomb"
)

const label = "view.fleetgate.io/member"

// reply is the reply of one member.
type reply struct{ member, body string }

// spliced merges several replies.
func spliced(qualified bool, replies ...reply) (string, error) {
	var out bytes.Buffer
	w := NewWriter(&out, label, qualified)
	for _, r := range replies {
		if err := add(w, r.member, strings.NewReader(r.body)); err != nil {
			return out.String(), err
		}
	}
	err := w.Close(Metadata{ResourceVersion: "v"})
	return out.String(), err
}

func add(w *Writer, member string, body io.Reader) error {
	in := NewReader(body)
	if err := in.Open(); err != nil {
		return err
	}
	m, err := w.Marker(member, in)
	if err != nil {
		return err
	}
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			return w.End(in)
		}
		if err != nil {
			return err
		}
		if err := w.Item(m, item); err != nil {
			return err
		}
	}
}

func TestWriter_MergesLists(t *testing.T) {
	const pods = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":`
	for name, c := range map[string]struct {
		qualified bool
		replies   []reply
		want      string
	}{
		"two lists": {
			replies: []reply{
				{"a", pods + `[{"metadata":{"name":"x","labels":{"app":"web"}},"spec":{"n":1}},{"metadata":{"name":"y"}}]}`},
				{"b", pods + ` [ { "metadata" : { "labels":null, "name":"x" } } ] }`},
			},
			want: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"v"},"items":[
				{"metadata":{"name":"x","labels":{"app":"web","view.fleetgate.io/member":"a"}},"spec":{"n":1}},
				{"metadata":{"name":"y","labels":{"view.fleetgate.io/member":"a"}}},
				{"metadata":{"name":"x","labels":{"view.fleetgate.io/member":"b"}}}]}`,
		},
		"no items": {
			replies: []reply{{"a", pods + `null}`}, {"b", pods + `[]}`}},
			want:    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"v"},"items":[]}`,
		},
		"a label that says otherwise, written in another way": {
			replies: []reply{{"a", pods + `[{"metadata":{"labels":{"view.fleetgate.io/m\u0065mber":"b"}}}]}`}},
			want:    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"v"},"items":[{"metadata":{"labels":{"view.fleetgate.io/member":"a"}}}]}`,
		},
		"qualified names": {
			qualified: true,
			replies:   []reply{{"a.b", pods + `[{"metadata":{"name":"x"}}]}`}},
			want:      `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"v"},"items":[{"metadata":{"name":"a.b.x","labels":{"view.fleetgate.io/member":"a.b"}}}]}`,
		},
		"custom resources, whose kind an API server writes behind them": {
			replies: []reply{
				{"a", `{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"}}],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"7"}}`},
				{"b", `{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"resourceVersion":"8"}}`},
			},
			want: `{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","labels":{"view.fleetgate.io/member":"a"}}}],
				"kind":"WidgetList","metadata":{"resourceVersion":"v"}}`,
		},
		"a member whose kind comes last behind one whose kind comes first": {
			replies: []reply{
				{"a", `{"kind":"WidgetList","apiVersion":"example.com/v1","items":[]}`},
				{"b", `{"apiVersion":"example.com/v1","items":[{"metadata":{"name":"x"}}],"kind":"WidgetList"}`},
			},
			want: `{"apiVersion":"example.com/v1","items":[{"metadata":{"name":"x","labels":{"view.fleetgate.io/member":"b"}}}],"kind":"WidgetList","metadata":{"resourceVersion":"v"}}`,
		},
		"an object without metadata": {
			replies: []reply{{"a", pods + `[{"status":1}]}`}},
			want:    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"v"},"items":[{"metadata":{"labels":{"view.fleetgate.io/member":"a"}},"status":1}]}`,
		},
		"tables of two versions": {
			qualified: true,
			replies: []reply{
				{"a", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"what it is called"},{"name":"Age","type":"string","priority":1},{"name":"N","type":"integer"}],
					"rows":[{"cells":["x","3d",1],"object":{"metadata":{"name":"x"}}}]}`},
				{"b", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[{"name":"New","type":"string"},{"name":"N","type":"string"},{"name":"Name","type":"string","format":"name"},{"name":"Age","type":"string"}],
					"rows":[{"cells":["?","one","y","4d"],"object":null}]}`},
			},
			want: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"v"},"columnDefinitions":[
				{"name":"Cluster","type":"string","format":"","description":"the member that has the object","priority":0},
				{"name":"Name","type":"string","format":"name","description":"","priority":0},{"name":"Age","type":"string","format":"","description":"","priority":1},{"name":"N","type":"integer","format":"","description":"","priority":0}],
				"rows":[{"cells":["a","a.x","3d",1],"object":{"metadata":{"name":"a.x","labels":{"view.fleetgate.io/member":"a"}}}},
					{"cells":["b","b.y","4d",null],"object":null}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := spliced(c.qualified, c.replies...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, c.want), parsed(t, got)); diff != "" {
				t.Errorf("unexpected list (-want +got):\n%s\n%s", diff, got)
			}
		})
	}
}

func parsed(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// A hostile member cannot end the merged list, smuggle rows of another member, or fill memory.
func TestReader_RejectsRepliesThatAreNotLists(t *testing.T) {
	const begin = `{"kind":"PodList","apiVersion":"v1","items":[`
	for name, body := range map[string]string{
		"nothing":                     ``,
		"a Status":                    `{"kind":"Status","apiVersion":"v1","code":200}`,
		"text behind":                 begin + `]} {}`,
		"broken off between items":    begin + `{"metadata":{}}`,
		"broken off in an item":       begin + `{"metadata":{"name":"x`,
		"broken off behind items":     begin + `{}]`,
		"brackets that do not match":  begin + `{"metadata":{]}`,
		"an item that ends the array": begin + `{}],"metadata":{}},{"kind":"PodList","items":[{}]}`,
		"metadata twice":              begin + `{"metadata":{},"metadata":{}}]}`,
		"metadata twice, one hidden":  begin + `{"metadata":{},"m\u0065tadata":{}}]}`,
		"labels twice":                begin + `{"metadata":{"labels":{},"labels":{}}}]}`,
		"resourceVersion twice":       begin + `{"metadata":{"resourceVersion":"1","resourceVersion":"2"}}]}`,
		"an item that is no object":   begin + `1]}`,
		"items twice":                 `{"kind":"PodList","items":[],"items":[]}`,
		"no kind":                     `{"apiVersion":"v1","items":[]}`,
		"kind twice":                  begin + `],"kind":"PodList"}`,
		"a table that says so late":   `{"apiVersion":"meta.k8s.io/v1","items":[],"kind":"Table"}`,
		"a huge item":                 begin + `{"a":"` + strings.Repeat("a", MaxItem) + `"}]}`,
		"a huge field":                `{"kind":"PodList","x":"` + strings.Repeat("a", maxHead) + `","items":[]}`,
		"white space without end":     begin + strings.Repeat(" ", MaxItem),
		"control characters":          begin + "{\"metadata\":{\"name\":\"a\x01\"}}]}",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := spliced(false, reply{"a", body}); err == nil {
				t.Errorf("got %.200s", got)
			}
		})
	}
}

func TestWriter_RejectsListsOfAnotherKind(t *testing.T) {
	const pods = `{"kind":"PodList","apiVersion":"v1","items":[]}`
	for name, other := range map[string]string{
		"a table":                       `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`,
		"another version":               `{"kind":"PodList","apiVersion":"v2","items":[]}`,
		"another kind":                  `{"kind":"NodeList","apiVersion":"v1","items":[]}`,
		"another kind behind the items": `{"apiVersion":"v1","items":[],"kind":"NodeList"}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, replies := range [][]reply{{{"a", pods}, {"b", other}}, {{"b", other}, {"a", pods}}} {
				if _, err := spliced(false, replies...); !errors.Is(err, ErrOtherShape) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// A watch begins with listed objects. An object that has its own kind does not need that of its
// list.
func TestReader_AsEventsWorksIfKindComesLast(t *testing.T) {
	in := NewReader(strings.NewReader(`{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","uid":"u"}}],"kind":"WidgetList"}`))
	if err := in.Open(); err != nil {
		t.Fatal(err)
	}
	item, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	event, err := in.AsEvents(item)
	if err != nil {
		t.Fatal(err)
	}
	if event.Kind != "Widget" || event.APIVersion != "example.com/v1" || event.Identity.Name != "x" {
		t.Errorf("got %+v", event)
	}
}

// plainList is how encoding/json reads the same.
type plainList struct {
	Kind  string            `json:"kind"`
	Items []json.RawMessage `json:"items"`
	Rows  []json.RawMessage `json:"rows"`
}

func itemsOf(body io.Reader) (items []string, err error) {
	in := NewReader(body)
	if err := in.Open(); err != nil {
		return nil, err
	}
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, string(item))
	}
}

// FuzzReader checks that any list, however it is split into reads, gives the items that
// encoding/json finds in it, that the result is a list with as many items, and that a part of a
// list is never taken for all of it.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[{"metadata":{"name":"a\"]}","labels":{"a":"b"}}}, {"metadata":{}} ]}`), 30)
	f.Add([]byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name","type":"string","format":"name"}],"rows":[{"cells":["a",1,null,[2],{"x":"y"}],"object":{"metadata":{"name":"a"}}}]}`), 100)
	f.Add([]byte(`{"apiVersion":"v1","items":[{"kind":"W"}],"kind":"WList","metadata":{}}`), 40)
	f.Add([]byte(`{"kind":"PodList","items":null,"metadata":{"remainingItemCount":3}}`), 5)
	f.Add([]byte("{\"kind\":\"L\",\"items\":[1,\"a\\\\\\\"\",-2.5e3,true]}\n"), 1)
	f.Fuzz(func(t *testing.T, body []byte, cut int) {
		whole, err := itemsOf(bytes.NewReader(body))
		bytewise, bytewiseErr := itemsOf(iotest.OneByteReader(bytes.NewReader(body)))
		if diff := cmp.Diff(whole, bytewise); diff != "" || (err == nil) != (bytewiseErr == nil) {
			t.Fatalf("byte by byte: %v instead of %v\n%s", bytewiseErr, err, diff)
		}
		if err != nil {
			return
		}
		var want plainList
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q is no JSON: %v", body, err)
		}
		expected := append(want.Items, want.Rows...)
		if len(expected) != len(whole) {
			t.Fatalf("got %d items, want %d: %q", len(whole), len(expected), body)
		}
		for i := range expected {
			if string(expected[i]) != whole[i] {
				t.Fatalf("item %d is %q, want %q", i, whole[i], expected[i])
			}
		}
		if trimmed := bytes.TrimSpace(body); cut >= 0 && cut < len(trimmed) {
			if _, err := itemsOf(bytes.NewReader(trimmed[:cut])); err == nil {
				t.Fatalf("%q is taken for a whole list", trimmed[:cut])
			}
		}
		out, err := spliced(false, reply{"m", string(body)})
		if err != nil {
			return
		}
		var merged plainList
		if err := json.Unmarshal([]byte(out), &merged); err != nil || len(merged.Items)+len(merged.Rows) != len(whole) {
			t.Fatalf("%v: %q came of %q", err, out, body)
		}
	})
}

// Three bytes of a table's rows, or of its columns, would become a hundred.
func TestStream_RefusesEventThatExpandsToGigabytes(t *testing.T) {
	many := strings.Repeat("{},", MaxItem/3-100) + "{}"
	for name, table := range map[string]string{"rows": `"rows":[` + many + `]`, "columns": `"columnDefinitions":[` + many + `],"rows":[{"cells":[],"object":{}}]`} {
		t.Run(name, func(t *testing.T) {
			text := `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + table + `}}`
			bomb.Check(t, func() {
				event, err := NewStream(strings.NewReader(text)).Next()
				if err == nil {
					_, err = NewEvents("cluster", false).Member("m").Event(event, "7")
				}
				if !errors.Is(err, errSyntax) {
					t.Errorf("got error %v, want one about the form", err)
				}
			})
		})
	}
	for rows, want := range map[string]Identity{
		`[{"cells":["a"],"object":{"metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"}}}]`: {Namespace: "n", Name: "a", UID: "u"},
		`[]`: {}, `null`: {},
	} {
		event, err := NewStream(strings.NewReader(`{"type":"ADDED","object":{"kind":"Table","rows":` + rows + `}}`)).Next()
		if err != nil || event.Identity != want {
			t.Errorf("of rows %s it is %+v, with error %v", rows, event.Identity, err)
		}
	}
}
