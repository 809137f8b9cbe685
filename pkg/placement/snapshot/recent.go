// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory is the size of manifests that recentGroups caches, in bytes.
const memory = 64 << 20

// recentGroups caches the groups that were read last, by the UID of their master.
type recentGroups struct {
	// mu guards the fields below.
	mu     sync.Mutex
	groups map[types.UID]*Group
	order  []types.UID
	size   int
}

func (r *recentGroups) get(master types.UID) *Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.groups[master]
}

// add caches the group and drops the oldest ones while there are too many bytes. It keeps at least one
// group of any size.
func (r *recentGroups) add(master types.UID, group *Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.groups[master]; again {
		return
	}
	r.groups[master] = group
	r.order = append(r.order, master)
	r.size += group.size
	for r.size > memory && len(r.order) > 1 {
		r.size -= r.groups[r.order[0]].size
		delete(r.groups, r.order[0])
		r.order = r.order[1:]
	}
}
