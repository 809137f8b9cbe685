// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bomb makes small texts that stand for large ones, and measures what reading
// one costs.
package bomb

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// MayCost is what reading one text of at most a mebibyte may allocate, garbage included.
const MayCost = 192 << 20

// Secret is YAML that fits into a Secret, 78 KiB, and stands for 210 MiB. With what
// careless readers make of them on the way, those have been 2.4 GB.
func Secret() string {
	return "a: &a " + strings.Repeat("x", 70<<10) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n"
}

// Check fails a test if reading costs more than MayCost.
func Check(t testing.TB, read func()) {
	t.Helper()
	if spent := Cost(read); spent > MayCost {
		t.Errorf("reading allocated %d MiB, it may allocate %d", spent>>20, MayCost>>20)
	}
}

// Texts are of at most a mebibyte each, and cost a careless reader a multiple of their size.
func Texts() map[string]string {
	return map[string]string{
		"aliases of aliases":     aliasBomb(9, 9),
		"a large text, repeated": Secret(),
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
		"UTF-16 after a mark":    "\xfe\xff" + strings.Repeat("\x00-\x00 ", 1<<18),
		"a mark and CRLF":        "\xef\xbb\xbf" + strings.Repeat("a: 1\r\n", 1<<17),
		"escapes, repeated":      "a: &a \"" + strings.Repeat(`\x01`, 90<<10) + "\"\nb: [" + strings.Repeat("*a,", 60) + "]\n",
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

// Cost is what reading a text allocates, in bytes, garbage included. Memory is kept so scarce that garbage goes at
// once: what then still grows is really held.
func Cost(read func()) uint64 {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
