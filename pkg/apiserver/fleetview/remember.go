// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"encoding/hex"
	"strings"
	"sync/atomic"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

const (
	// DefaultRemembered is the memory, in bytes, of all watches of a gateway for what they have
	// sent: about 900,000 objects.
	DefaultRemembered = 128 << 20
	// entryCost is the cost of one object besides its name: its UID, and its place in a map that is
	// half full.
	entryCost = 96
)

// budget limits the memory of watches.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves bytes if there is room, and reports whether there was.
func (b *budget) take(bytes int64) bool {
	if b.used.Add(bytes) <= b.limit {
		return true
	}
	b.used.Add(-bytes)
	return false
}

// memory is what a watch has sent of one member, so that it can send DELETED events when the member
// leaves. It is useful only if it is complete.
type memory struct {
	budget *budget
	// whole is false once there was no room, or if the watch was resumed: what its predecessor sent
	// is not known.
	whole bool
	cost  int64
	known map[string]remembered
	// round counts the lists of the member. Objects of an earlier round that the last list does not
	// have are deleted.
	round uint32
}

type remembered struct {
	uid   [16]byte
	round uint32
}

func newMemory(of *budget, whole bool) *memory {
	return &memory{budget: of, whole: whole, known: map[string]remembered{}}
}

func keyOf(of splice.Identity) string { return of.Namespace + "/" + of.Name }

// add records that an object was sent, and reports whether it was sent before.
func (m *memory) add(of splice.Identity) (before bool) {
	if !m.whole {
		return false
	}
	key := keyOf(of)
	if _, before = m.known[key]; !before {
		cost := int64(len(key) + entryCost)
		if !m.budget.take(cost) {
			m.drop()
			return false
		}
		m.cost += cost
	}
	m.known[key] = remembered{uid: binaryUID(of.UID), round: m.round}
	return before
}

// remove records that an object was deleted.
func (m *memory) remove(of splice.Identity) {
	key := keyOf(of)
	if _, ok := m.known[key]; !ok {
		return
	}
	delete(m.known, key)
	cost := int64(len(key) + entryCost)
	m.cost -= cost
	m.budget.used.Add(-cost)
}

// drop forgets everything: what was sent is no longer known.
func (m *memory) drop() {
	m.budget.used.Add(-m.cost)
	m.cost, m.known, m.whole = 0, map[string]remembered{}, false
}

// forget removes and returns objects: all, or those that are not in the last list.
func (m *memory) forget(all bool) []splice.Identity {
	var gone []splice.Identity
	for key, of := range m.known {
		if !all && of.round == m.round {
			continue
		}
		namespace, name, _ := strings.Cut(key, "/")
		gone = append(gone, splice.Identity{Namespace: namespace, Name: name, UID: textUID(of.uid)})
	}
	for _, of := range gone {
		m.remove(of)
	}
	return gone
}

// binaryUID is a UID in half of its length; a UID in another format is left out.
func binaryUID(text string) (uid [16]byte) {
	if len(text) == 36 {
		if digits, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil && len(digits) == len(uid) {
			copy(uid[:], digits)
		}
	}
	return uid
}

func textUID(uid [16]byte) string {
	if uid == [16]byte{} {
		return ""
	}
	text := hex.EncodeToString(uid[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
