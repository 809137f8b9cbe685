// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestToJSON_HasMeaningOfKubernetes(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                    "",
		"comments only":              "# nothing\n",
		"words of YAML 1.1":          "a: yes\nb: Off\nc: y\nd: 'yes'\ne: !!str no\nf: on",
		"numbers":                    "a: 1\nb: 0777\nc: 0x1F\nd: 1_000\ne: 1.5\nf: 1e3\ng: 18446744073709551615\nh: 123456789012345678901234567890\ni: -0\nj: 1:20\nk: 0o17\nl: 0b11\nm: +1",
		"dates are texts":            "a: 2001-01-01\nb: 2001-12-14t21:59:43.10-05:00",
		"nulls":                      "a:\nb: ~\nc: null\nd: ''",
		"keys that are no texts":     "1: a\ntrue: b\nyes2: c",
		"block scalars":              "a: |\n  one\n  two\nb: >-\n  one\n  two\n",
		"aliases":                    "a: &x {b: 1}\nc: *x\nd: [*x, *x]",
		"a merge":                    "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  e: 3",
		"a list of merges":           "a: &x {b: 1}\nc: &y {d: 2}\ne:\n  <<: [*x, *y]",
		"JSON":                       `{"a":[1,2.5,"x",null,true,{"b":"<&>"}]}`,
		"the first of two documents": "a: 1\n---\nb: 2\n",
		"a quoted merge key":         `{"<<": 1}`,
		"an explicit type":           "a: !!str 1\nb: !!float 1\nc: !!int \"3\"",
	} {
		t.Run(name, func(t *testing.T) {
			want, err := yaml.YAMLToJSONStrict([]byte(text))
			if err != nil {
				t.Fatalf("Kubernetes refuses the text: %v", err)
			}
			got, err := ToJSON([]byte(text), Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
				t.Errorf("what Kubernetes reads (-), what is read here (+):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func TestToJSON_KeyWinsOverMergedKey(t *testing.T) {
	got, err := ToJSON([]byte("a: &x {b: 1, c: 2}\nd: &y {b: 4, f: 5}\ne:\n  b: 3\n  <<: [*x, *y]\n"), Object)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":{"b":1,"c":2},"d":{"b":4,"f":5},"e":{"b":3,"c":2,"f":5}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

var small = Limits{Bytes: 200, Values: 20, Depth: 5, Aliases: 3}

func TestToJSON_NamesLimitAndLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"bytes":                       {strings.Repeat("#", 201), "it has more than 200 bytes"},
		"values":                      {"\n\n[" + strings.Repeat("1,", 20) + "]", "line 3: it has more than 20 values, with what its aliases repeat"},
		"values before it is parsed":  {"[" + strings.Repeat("1,", 90) + "]", "line 1: it has more than 20 values"},
		"levels":                      {"a:\n b: [[[[1]]]]", "line 2: it has more than 5 levels"},
		"aliases":                     {"a: &a 1\nb: [*a,*a,*a,\n*a]", "line 3: it has more than 3 aliases"},
		"values by aliases":           {"a: &a [1,2,3,4,5]\nb: &b [*a,*a]\nc: *b", "line 1: it has more than 20 values, with what its aliases repeat"},
		"bytes by aliases":            {"a: &a " + strings.Repeat("x", 150) + "\nb: *a\nc: *a", "line 1: it has more than 400 bytes, with what its aliases repeat"},
		"a value inside itself":       {"a: &a\n  b: *a", "line 1: it has more than 5 levels"},
		"a key twice":                 {"a: 1\nb: 2\na: 3", "line 3: a key occurs twice in its map"},
		"a key twice, as a number":    {"1: 1\n\"1\": 2", "line 2: a key occurs twice in its map"},
		"a key that is a map":         {"{a: 1}: 2", "line 1: a key must be a text, a whole number or a boolean"},
		"a number without JSON":       {"a: .inf", "line 1: it is a number that JSON does not support"},
		"a tag without JSON":          {"a: !secret b", "line 1: it has a tag for which there is no type in JSON"},
		"a tag that does not fit":     {"a: !!int s3cret", "line 1: it is not of the type that its tag says"},
		"a merge of something else":   {"a:\n  <<: 1", "line 2: << needs a map or a list of maps"},
		"an anchor that is not there": {"token: *s3cret", "it is not YAML"},
		"no YAML":                     {"a: 1\nb: [s3cret", "near line 1: it is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ToJSON([]byte(test.text), small)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestUnmarshalJSON_StaysWithinLimits(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a text":               {`{"a":{"b":[1,2]},"c":"d"}`, ""},
		"a name in two":        {`[{"a":1},{"a":2}]`, ""},
		"bytes":                {strings.Repeat(" ", 201), "it has more than 200 bytes"},
		"values":               {"[" + strings.Repeat("1,\n", 19) + "1]", "line 20: it has more than 20 values"},
		"levels":               {`[[[[[[]]]]]]`, "line 1: it has more than 5 levels"},
		"a key twice":          {`{"a":1,` + "\n" + `"a":2}`, "line 2: a key occurs twice in its object"},
		"a key twice, escaped": {`{"a":{},"\u0061":2}`, "line 1: a key occurs twice in its object"},
		"YAML":                 {"a: s3cret", "line 1: it is not JSON from there on"},
		"half a text":          {`{"a":`, "unexpected end of JSON input"},
		"two texts":            {`{} {}`, "invalid character '{' after top-level value"},
	} {
		t.Run(name, func(t *testing.T) {
			var value any
			err := UnmarshalJSON([]byte(test.text), small, &value)
			if got := fmt.Sprint(err); err != nil && got != test.want || err == nil && test.want != "" {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestUnmarshal_FillsFieldsAsKubernetesDoes(t *testing.T) {
	type target struct {
		Name  string            `json:"name"`
		Count int               `json:"count"`
		Map   map[string]string `json:"map"`
	}
	text := []byte("name: 123\ncount: 5\nmap: {a: 1}\nother: x\n")
	var got target
	if err := Unmarshal(text, Object, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(target{Name: "123", Count: 5, Map: map[string]string{"a": "1"}}, got); diff != "" {
		t.Error(diff)
	}
	if err := UnmarshalStrict(text, Object, &got); err == nil {
		t.Error("a field that nobody knows was read")
	}
	var limit *LimitError
	if err := Unmarshal(text, Limits{Bytes: 3}, &got); !errors.As(err, &limit) {
		t.Errorf("got %v, want a LimitError", err)
	}
}
