// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"
	"unicode"
)

const ellipsis = "..."

// Truncate shortens text to at most limit bytes of valid UTF-8. Shortened text ends with "...".
// The limit must be greater than the three bytes of that.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// Line makes text from elsewhere safe for a log, a condition, a header or a terminal: one line of
// valid UTF-8, without characters that move the cursor or change the direction of what follows.
func Line(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || !unicode.IsPrint(r)
	}), " ")
}

// Excerpt is a Line of at most limit bytes.
func Excerpt(text string, limit int) string { return Truncate(Line(text), limit) }
