// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

var (
	// ErrNotConnected is returned by a dial to a member without a session, or whose sessions all
	// broke during the dial. The member may reconnect within seconds, but a dial does not wait for
	// it.
	ErrNotConnected = errors.New("the member's agent is not connected")
	// ErrDraining is returned by a dial when the member's agent is about to close its only session.
	// Dials wrap it in ErrNotConnected.
	ErrDraining = native.ErrDraining
	// ErrUnresponsive is returned by a dial when the member's agent did not respond to a probe in any of
	// its sessions. Dials wrap it in ErrNotConnected.
	ErrUnresponsive = errors.New("the member's agent does not respond")
	// ErrRefused is matched by every [RefusedError].
	ErrRefused = errors.New("the member refused the connection")
	// ErrTooManySessions is returned by Serve when the member has the maximum number of sessions.
	ErrTooManySessions = errors.New("the member has too many tunnel sessions")
	// ErrClosed is returned by Serve after Close.
	ErrClosed = errors.New("the gateway is shutting down")
	// ErrReset is returned by a stream that the other side abandoned; also syscall.ECONNRESET.
	ErrReset = native.ErrReset
	// ErrSessionClosed is returned by a stream whose session has ended.
	ErrSessionClosed = native.ErrSessionClosed

	// errForeignStream ends a session whose agent opened a stream.
	errForeignStream = errors.New("the agent opened a stream, which only the gateway may do")
	// errNoToken means that an attempt reached the other side, but the agent has no token to
	// authenticate with.
	errNoToken = errors.New("getting the token for the hub")
)

// Code says why a stream was refused. Unknown codes of later versions are kept.
type Code uint8

// The codes of SPEC.md, "The response".
const (
	// UnknownTarget: the agent serves no target of this name.
	UnknownTarget Code = 1
	// Unreachable: the target is known, but could not be reached.
	Unreachable Code = 2
	// TimedOut: the target did not respond in the time that the gateway gave.
	TimedOut Code = 3
	// Busy: too many streams are open.
	Busy Code = 4
	// Malformed: the header does not follow the protocol.
	Malformed Code = 5
	// Unsupported: the header asks for something that this agent does not know.
	Unsupported Code = 6
	// NotHere: another gateway was asked for a member that has no session there.
	NotHere Code = 7

	codeOK Code = 0
	// codeOnData accepts a stream whose bytes are on the data connection that the gateway has offered.
	// Without an offer it is a refusal.
	codeOnData Code = 8
)

func (c Code) String() string {
	names := [...]string{"OK", "UnknownTarget", "Unreachable", "TimedOut", "Busy", "Malformed", "Unsupported", "NotHere", "OnData"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Code%d", uint8(c))
}

// RefusedError is the agent's response to a stream that it does not take.
type RefusedError struct {
	Code Code
	// Message is the agent's, bounded and without control characters.
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %v: %s", ErrRefused, e.Code, e.Message)
}

// Is makes errors.Is(err, ErrRefused) hold.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// IsNotConnected says that the member has no session here.
func IsNotConnected(err error) bool { return errors.Is(err, ErrNotConnected) }

// IsRefused says that the member's agent refused; errors.As with a *RefusedError gives the reason.
func IsRefused(err error) bool { return errors.Is(err, ErrRefused) }
