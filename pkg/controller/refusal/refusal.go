// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal represents a rejection with its reason. The value is the same from where it is
// decided to the condition, event or log line that people read. A rejection is a result and not a
// failure: it is retried only when what it names has changed.
//
// A function that can also fail returns it as its error; Of distinguishes the two.
package refusal

import (
	"errors"
	"fmt"
)

// Refusal is why something is not done, or not yet.
type Refusal struct {
	// Reason is one word, for programs: usually that of a condition.
	Reason string
	// Message is for people: it names the object and the remedy. It holds no secret.
	Message string
	// Err is the cause, or nil.
	Err error
}

// New returns a refusal with a message formatted as by fmt.Errorf: an error that is wrapped with %w
// is the cause.
func New(reason, format string, args ...any) *Refusal {
	err := fmt.Errorf(format, args...)
	return &Refusal{Reason: reason, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Of returns the outermost refusal in an error, and nil if there is none: then the error is a
// failure.
func Of(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// ReasonOf is the reason of the refusal in an error, and empty if there is none.
func ReasonOf(err error) string {
	if r := Of(err); r != nil {
		return r.Reason
	}
	return ""
}
