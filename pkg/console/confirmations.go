// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

const (
	// maxPending limits the pending confirmations. The oldest are dropped.
	maxPending = 32
	// confirmWithin is how long a confirmation is valid.
	confirmWithin = 10 * time.Minute
)

// confirmations are changes that were shown and are not confirmed yet. They are kept, so that the
// request that is sent is the one that was shown, whatever has changed since.
type confirmations struct {
	// mu guards all, which has the oldest first.
	mu  sync.Mutex
	all []pendingChange
}

type pendingChange struct {
	id, what string
	changes  []overview.Change
	at       time.Time
}

// keep stores changes and returns the ID that the form sends back.
func (s *confirmations) keep(what string, changes []overview.Change, now time.Time) (id string, err error) {
	if id, err = secret(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, pendingChange{id, what, changes, now})
	s.all = s.all[max(0, len(s.all)-maxPending):]
	return id, nil
}

// take returns the changes that were shown, once.
func (s *confirmations) take(what, id string, now time.Time) ([]overview.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range s.all {
		if one.id == id && one.what == what && now.Sub(one.at) < confirmWithin {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return one.changes, nil
		}
	}
	return nil, errors.New("these requests were already sent or have expired: return to the update runs and review them again")
}
