// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"fmt"
	"net"
)

// The targets that every agent serves.
const (
	// APIServer is the member's API server: the agent knows its address.
	APIServer = "apiserver"
	// Agent is the agent's own small HTTP/1.1 API.
	Agent = "agent"
)

// MaxTargetLength is the length of the longest target in bytes, that of a DNS name.
const MaxTargetLength = 253

// Target prepares a connection to a named target for one stream. When it returns an error the
// stream is refused: with the code and message of a [RefusedError], or otherwise as [Unreachable]
// with the error's text, which the gateway's callers can read. ctx ends when the gateway stops
// waiting.
type Target func(ctx context.Context) (Handler, error)

// Handler serves one accepted stream; the stream is closed when it returns. It must return when ctx
// ends.
type Handler func(ctx context.Context, stream net.Conn) error

// validTarget accepts what a stream's header may carry: 1 to MaxTargetLength visible ASCII
// characters.
func validTarget(name string) error {
	if name == "" || len(name) > MaxTargetLength {
		return fmt.Errorf("a target has 1 to %d characters, this one has %d", MaxTargetLength, len(name))
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return fmt.Errorf("target %q: character %d is not visible ASCII", name, i)
		}
	}
	return nil
}
