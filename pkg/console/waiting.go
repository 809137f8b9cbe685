// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

const (
	// maxWaiting is how many confirmations are kept; of more the oldest is forgotten.
	maxWaiting = 32
	// waitAtMost is how long somebody may look at one.
	waitAtMost = 10 * time.Minute
)

// shownChanges are the changes on confirmations that nobody has answered. They are kept here,
// so that what is sent is what was shown, whatever has come since.
type shownChanges struct {
	// mu guards all, which has the oldest first.
	mu  sync.Mutex
	all []shownChange
}

type shownChange struct {
	id, what string
	changes  []hub.Change
	at       time.Time
}

// keep returns the text by which a form names them.
func (s *shownChanges) keep(what string, changes []hub.Change, now time.Time) (id string, err error) {
	if id, err = secret(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, shownChange{id, what, changes, now})
	s.all = s.all[max(0, len(s.all)-maxWaiting):]
	return id, nil
}

// take returns what was shown, once.
func (s *shownChanges) take(what, id string, now time.Time) ([]hub.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range s.all {
		if one.id == id && one.what == what && now.Sub(one.at) < waitAtMost {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return one.changes, nil
		}
	}
	return nil, errors.New("these requests were answered already, or shown too long ago: go back to the runs, and look again")
}
