// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// standing remembers of objects in which version they were looked at last, and what was
// applied to them then. One that has the same version at the next look has been changed
// by nobody, not even by what was applied: it stands as it should, and to apply the same
// once more would be a request that changes nothing.
type standing struct {
	mu   sync.Mutex
	last map[types.UID]look
}

type look struct {
	version string
	applied *unstructured.Unstructured
}

// still reports whether an object stands as it should. A standing that is nil remembers
// nothing.
func (s *standing) still(current, desired *unstructured.Unstructured) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.last[current.GetUID()]
	return known && before.version == current.GetResourceVersion() && equality.Semantic.DeepEqual(before.applied, desired)
}

// applies notes what was applied to an object that was looked at, once it has been.
func (s *standing) applies(current, desired *unstructured.Unstructured) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[types.UID]look{}
	}
	s.last[current.GetUID()] = look{version: current.GetResourceVersion(), applied: desired}
}
