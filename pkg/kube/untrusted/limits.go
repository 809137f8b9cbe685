// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import "fmt"

// Limits limit one text and its decoded size.
type Limits struct {
	// Bytes limits the text. Its decoded form, with aliases expanded, has at most twice as many
	// bytes, and no more than a small multiple of the text's own size: many small texts in one
	// object cannot each become a large one.
	Bytes int
	// Values limits maps, lists, scalars and keys, with aliases expanded.
	Values int
	// Depth limits the nesting of maps and lists.
	Depth int
	// Aliases limits the references to anchors.
	Aliases int
}

// Object are the limits for one object of the API server, which accepts requests of 3 MiB: Secrets,
// ConfigMaps and annotations with charts' values, objects in envelopes, kubeconfigs and agents'
// values.
var Object = Limits{Bytes: 3 << 20, Values: 100_000, Depth: 200, Aliases: 1000}

// File are the limits of a file that users pass to a command on their own machine, such as all
// objects of a hub.
var File = Limits{Bytes: 256 << 20, Values: 10_000_000, Depth: 200, Aliases: 100_000}

// expanded is the maximum decoded size of a text. A value counts as one more byte, and a control
// character as six, its size in JSON. A text without aliases and such characters never decodes to
// twice its size.
func (l Limits) expanded(text []byte) int { return min(2*l.Bytes, 4<<10+16*len(text)) }

// A LimitError says that a text exceeds a limit.
type LimitError struct {
	// What exceeds its limit, such as "bytes", and the limit.
	What string
	Most int
	// Line on which the limit was exceeded, counted from 1. 0 is the whole text.
	Line int
}

// Error names the limit and the place.
func (e *LimitError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("it has more than %d %s", e.Most, e.What)
	}
	return fmt.Sprintf("line %d: it has more than %d %s", e.Line, e.Most, e.What)
}
