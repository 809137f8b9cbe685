// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"fits":                 {"abcdef", 6, "abcdef"},
		"too long":             {"abcdefg", 6, "abc..."},
		"cut inside character": {"ab\u00e4\u00f6\u00fc", 6, "ab..."},
	} {
		if got := Truncate(tc.text, tc.limit); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestTruncateMiddle(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"fits":     {"spec: too long", "spec: too long"},
		"too long": {"spec.replicas: is not a number", "spec.r ... number"},
	} {
		if got := TruncateMiddle(tc.text, 18); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestVisibleJSON(t *testing.T) {
	const text, want = "{\"a\":\n\"\u202e\u009b \U000e0001\u00e4\"}", `{"a":` + "\n" + `"\u202e\u009b \udb40\udc01` + "\u00e4\"}"
	if got := string(VisibleJSON([]byte(text))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExcerpt(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":             {"no route to host", "no route to host"},
		"several lines":     {"a\r\n\tb\x00c", "a b c"},
		"escape sequence":   {"\x1b[2Jgone", "[2Jgone"},
		"direction changed": {"a\u202eb", "a b"},
		"invalid UTF-8":     {"a\xffb", "a b"},
		"long":              {strings.Repeat("x", 80), strings.Repeat("x", 61) + "..."},
	} {
		if got := Excerpt(tc.text, 64); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb", 64)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 4 + int(uint(limit)%1000)
		got := Excerpt(text, limit)
		if len(got) > limit || strings.ContainsAny(got, "\n\r\x1b\x00") || !utf8.ValidString(got) {
			t.Errorf("Excerpt(%q, %d) = %q", text, limit, got)
		}
	})
}
