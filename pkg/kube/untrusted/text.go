// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const ellipsis = "..."

// Truncate shortens text to at most limit bytes of valid UTF-8. Shortened text ends with "...".
// The limit must be greater than the three bytes of that.
func Truncate(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// TruncateMiddle shortens a message to at most limit bytes of valid UTF-8. It keeps the start, which
// names the subject, and the end, which names the problem.
func TruncateMiddle(text string, limit int) string {
	const cut = " ... "
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	half := (limit - len(cut)) / 2
	return strings.ToValidUTF8(text[:half]+cut+text[len(text)-half:], "")
}

// Line makes text from elsewhere safe for a log, a condition, a header or a terminal: one line of
// valid UTF-8, without characters that move the cursor or change the direction of what follows.
func Line(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, separates) {
		return text // Names and paths of each request are usually like this.
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), separates), " ")
}

// separates reports whether a Line has a space in place of such characters.
func separates(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || !unicode.IsPrint(r)
}

// Excerpt is a Line of at most limit bytes.
func Excerpt(text string, limit int) string { return Truncate(Line(text), limit) }

// VisibleJSON escapes unprintable and bidirectional characters in JSON. The meaning stays the same, and
// the reader sees them. Line feeds between JSON tokens stay.
func VisibleJSON(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		if unicode.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}
