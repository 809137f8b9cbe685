// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// window is how many bytes of a secret are compared at first, and so the least that a
// secret must have: less is found by chance.
const window = 16

// Search returns which of the secrets are in the text in any form, by their index, in
// ascending order. Of a token in three parts, as JSON Web Tokens are, the last part
// counts: the others prove nothing to anybody. A secret is made of letters, digits
// and the signs of base64, as tokens and keys are; Search panics on another one, and
// on one of less than 16 bytes, which no caller means.
func Search(text string, secrets ...string) []int {
	wanted := formsOf(secrets)
	found := map[int]bool{}
	for _, text := range []string{text, undump(text)} {
		for word := range words(text) {
			wanted.findIn(word, found)
		}
	}
	var indexes []int
	for i := range secrets {
		if found[i] {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// form is one way to write the secret with an index.
type form struct {
	text  string
	index int
}

// forms are all, by their first bytes: a text is read once, however many there are.
type forms map[string][]form

func formsOf(secrets []string) forms {
	all := forms{}
	for i, secret := range secrets {
		for _, text := range writings(telling(secret)) {
			all[text[:window]] = append(all[text[:window]], form{text: text, index: i})
		}
	}
	return all
}

func (f forms) findIn(word string, found map[int]bool) {
	for at := 0; at+window <= len(word); at++ {
		for _, candidate := range f[word[at:at+window]] {
			if strings.HasPrefix(word[at:], candidate.text) {
				found[candidate.index] = true
			}
		}
	}
}

// telling is the part of a secret that must not be seen.
func telling(secret string) string {
	if parts := strings.Split(secret, "."); len(parts) == 3 {
		secret = parts[2]
	}
	if len(secret) < window || strings.ContainsFunc(secret, func(r rune) bool { return r > 127 || !isSign[r] }) {
		panic("leak: that is no secret that can be looked for")
	}
	return secret
}

// writings are the ways in which programs write a secret.
func writings(secret string) []string {
	all := []string{secret, hex.EncodeToString([]byte(secret))}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inside(alphabet, secret, before))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// inside is what base64 of any text holds in which the secret stands after a number
// of bytes that leaves the rest before when divided by three: the characters that the
// secret alone decides.
func inside(alphabet *base64.Encoding, secret string, before int) string {
	encoded := alphabet.EncodeToString([]byte(strings.Repeat("x", before) + secret))
	first := (before*8 + 5) / 6
	last := (before + len(secret)) * 8 / 6
	return encoded[first:last]
}

// isSign says of what words are made: the signs of base64 and hexadecimal numbers.
var isSign = func() (is [256]bool) {
	for _, sign := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_" {
		is[sign] = true
	}
	return is
}()

// words are the parts of a text that may hold a form: runs of signs that are long
// enough.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for at := 0; at <= len(text); at++ {
			if at < len(text) && isSign[text[at]] {
				continue
			}
			if at-start >= window && !yield(text[start:at]) {
				return
			}
			start = at + 1
		}
	}
}

// undump joins the bytes of all dumps, as encoding/hex makes them, in a text. Logs
// may indent their lines.
func undump(text string) string {
	var joined strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, "\t ")
		if len(line) < 12 || line[8:10] != "  " {
			continue
		}
		numbers, _, ends := strings.Cut(line[10:], "|")
		bytes, err := hex.DecodeString(strings.ReplaceAll(numbers, " ", ""))
		if err != nil || !ends {
			continue // Not a dump after all.
		}
		joined.Write(bytes)
	}
	return joined.String()
}
