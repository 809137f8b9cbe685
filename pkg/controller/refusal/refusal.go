// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal is a no with its reason, as a value that is the same all the way from who
// says it to the condition, event or log line that people read. A no is an answer, not a
// failure: nothing is tried again because of one, only once what it names has changed.
//
// A function that can also fail returns it as its error; whoever has to tell the two apart
// asks Of.
package refusal

import (
	"errors"
	"fmt"
)

// Refusal is why something is not done, or not yet.
type Refusal struct {
	// Reason is one word, for programs: mostly that of a condition.
	Reason string
	// Message is for people: it names the thing and what to do about it. It holds no secret.
	Message string
	// Err is the cause, or nil.
	Err error
}

// New returns a refusal with a message as fmt.Errorf makes one: an error that is wrapped in
// it with %w is the cause.
func New(reason, format string, args ...any) *Refusal {
	err := fmt.Errorf(format, args...)
	return &Refusal{Reason: reason, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Of returns the outermost refusal in an error, and nil if there is none: then it could not
// be found out.
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
