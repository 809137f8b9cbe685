// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What one text of at most a mebibyte may cost, all allocations of a read added up, those
// too that are garbage at once.
const mayCost = 192 << 20

// bombs are texts that cost a careless reader a multiple of their size.
func bombs() map[string]string {
	return map[string]string{
		"aliases of aliases":     aliasBomb(9, 9),
		"a large text, repeated": "a: &a " + strings.Repeat("x", 70<<10) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"many keys, repeated":    "a: &a {" + numbered("k%d: v,", 3000) + "}\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"merges of merges":       mergeBomb(20),
		"a value inside itself":  "a: &a [*a, *a, *a]\n",
		"many merges of one map": "a: &a {" + numbered("k%d: v,", 2000) + "}\n" + numbered("b%d: {<<: *a}\n", 900),
		"deep flow":              strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deeper flow":            strings.Repeat("[", 1<<20),
		"deep maps":              strings.Repeat("{a: ", 9000),
		"deep blocks":            deepBlocks(1400),
		"deep lists on one line": strings.Repeat("- ", 1<<19),
		"deep questions":         strings.Repeat("? ", 1<<19),
		"many anchors":           numbered("- &a%d x\n", 60_000),
		"many values":            "[" + strings.Repeat("1,", 1<<19) + "]",
		"many small maps":        "[" + strings.Repeat("{},", 1<<18) + "]",
		"many empty lines":       "a: |\n" + strings.Repeat("\n", 1<<20) + "b",
		"many comments":          "a: 1\n" + strings.Repeat("#\n", 1<<19) + "b: 2",
		"comments on values":     numbered("- %d #\n  #\n", 50_000),
		"many colons":            strings.Repeat(":", 1<<20),
		"many documents":         strings.Repeat("---\n", 1<<18),
		"many tags":              strings.Repeat("!a ", 1<<18),
		"a huge scalar":          "a: " + strings.Repeat("x", 1<<20-10),
		"a huge quoted scalar":   `"` + strings.Repeat(`\n`, 1<<19) + `"`,
		"a huge folded scalar":   "a: >\n" + strings.Repeat(" x\n", 1<<18),
		"a long key":             strings.Repeat("k", 1<<20-10) + ": 1",
		"long keys":              numbered(strings.Repeat("k", 1000)+"%d: 1\n", 1000),
		"a long number":          strings.Repeat("9", 1<<20),
		"a key twice":            "a: 1\na: 2",
		"UTF-16":                 "\xff\xfea\x00:\x00 \x001\x00",
		"JSON":                   `{"a":[1,{"b":null}],"c":"\u0000"}`,
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// aliasBomb stands for width to the power of levels values.
func aliasBomb(levels, width int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*l%d,", i-1), width))
	}
	return b.String()
}

func mergeBomb(levels int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 {a: 1}\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d {<<: [*l%d, *l%d], k%d: *l%d}\n", i, i, i-1, i-1, i, i-1)
	}
	return b.String()
}

func deepBlocks(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// cost is what reading a text allocates. Memory is kept so scarce that garbage goes at
// once: what then still grows is really held.
func cost(read func()) uint64 {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestNoTextCostsMoreThanItMay(t *testing.T) {
	for name, text := range bombs() {
		t.Run(name, func(t *testing.T) {
			if spent := cost(func() { _, _ = ToJSON([]byte(text), Object) }); spent > mayCost {
				t.Errorf("reading %d bytes of YAML allocated %d MiB", len(text), spent>>20)
			}
			if spent := cost(func() { _ = UnmarshalJSON([]byte(text), Object, new(any)) }); spent > mayCost {
				t.Errorf("reading %d bytes of JSON allocated %d MiB", len(text), spent>>20)
			}
		})
	}
}

// A text is read in bounded memory, and means what it means to Kubernetes, whose own
// reader is asked where there is no alias that could harm it.
func FuzzToJSON(f *testing.F) {
	for _, text := range bombs() {
		f.Add([]byte(text))
	}
	f.Add([]byte("a: yes\nb: 0777\nc: 1_0\n'd': [~, 2001-01-01]\n<<: {e: 1.0e+3}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<20 {
			return
		}
		var got []byte
		var err error
		if spent := cost(func() { got, err = ToJSON(text, Object) }); spent > mayCost {
			t.Fatalf("reading %d bytes allocated %d MiB", len(text), spent>>20)
		}
		if err != nil {
			return
		}
		if len(got) > 6*Object.Bytes+8*Object.Values {
			t.Fatalf("%d bytes came of %d", len(got), len(text))
		}
		if bytes.ContainsAny(text, "*&") || bytes.Contains(text, []byte("<<")) {
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

// What is read as JSON is what encoding/json reads, but for keys that are there twice.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, text := range bombs() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"a":[1,{"a":2,"b":"c"}],"b":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<20 {
			return
		}
		var got any
		var err error
		if spent := cost(func() { err = UnmarshalJSON(text, Object, &got) }); spent > mayCost {
			t.Fatalf("reading %d bytes allocated %d MiB", len(text), spent>>20)
		}
		var want any
		if jsonErr := json.Unmarshal(text, &want); err == nil && (jsonErr != nil || !cmp.Equal(want, got)) {
			t.Fatalf("encoding/json reads %v (%v), we read %v", want, jsonErr, got)
		}
	})
}
