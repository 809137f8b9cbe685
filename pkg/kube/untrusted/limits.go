// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import "fmt"

// Limits bound one text and what comes of it.
type Limits struct {
	// Bytes bounds the text. What comes of it, what aliases repeat counted each time, has
	// at most twice as many, and no more than a small multiple of what the text has: many
	// small texts in one object cannot each become a large one.
	Bytes int
	// Values bounds maps, lists, scalars and keys, what aliases repeat counted each time.
	Values int
	// Depth bounds how many maps and lists are inside each other.
	Depth int
	// Aliases bounds how often the text refers to an anchor.
	Aliases int
}

// Object are the limits of what fits into one object of the API server, which takes
// requests of 3 MiB: Secrets, ConfigMaps and annotations, in which charts' values, objects
// in envelopes, kubeconfigs and agents' values come.
var Object = Limits{Bytes: 3 << 20, Values: 100_000, Depth: 200, Aliases: 1000}

// File are the limits of a file that people give to a command of theirs on their own
// machine, such as all objects of a hub.
var File = Limits{Bytes: 256 << 20, Values: 10_000_000, Depth: 200, Aliases: 100_000}

// expanded is how many bytes may come of a text, a value counted as one more, and a control
// character as six, which it has in JSON: of a text without aliases and such characters
// never come twice as many as it has.
func (l Limits) expanded(text []byte) int { return min(2*l.Bytes, 4<<10+16*len(text)) }

// A LimitError says that a text is more than its reader takes.
type LimitError struct {
	// What there is too much of, such as "bytes", and how much is allowed.
	What string
	Most int
	// Line on which the limit was passed, counted from 1. 0 stands for the whole text.
	Line int
}

// Error names the limit and the place.
func (e *LimitError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("it has more than %d %s", e.Most, e.What)
	}
	return fmt.Sprintf("line %d: it has more than %d %s", e.Line, e.Most, e.What)
}
