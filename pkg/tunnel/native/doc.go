// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package native carries many streams over one connection, with a framing of its
// own: SPEC.md of pkg/tunnel, "The carrier", is its protocol. It knows nothing of
// members, targets or HTTP.
//
// What a stream can rely on:
//
//   - Flow control of its own. A peer may send what this side has granted and not
//     more, so a stream that nobody reads holds a bounded number of bytes and stops
//     nobody. The window of a stream whose reader keeps up grows with the round
//     trip; budgets bound what all streams of a session, and of a process, hold.
//   - Its turn. Streams that move bulk data take turns, a frame each; what is small
//     (a keystroke, an event of a watch, the protocol's own frames) goes before.
//   - The truth about an end. A stream that the peer gave up answers with
//     [ErrReset], one whose session broke with [ErrSessionClosed], and only one that
//     the peer ended with io.EOF: half an answer never passes for a whole one.
//   - Liveness. Both sides ping about every 10 s and give the connection up when
//     nothing has arrived for 25 s, or when nothing could be written for 25 s. A
//     link that is busy but slow stays up.
//
// One goroutine reads (receive.go). Whoever writes a frame does so itself if the
// connection is free, and otherwise waits for its turn (writer.go); the second
// goroutine of a session sends what nobody waits for. stream.go and send.go are the
// two directions of a stream, inbox.go what waits for its reader, batch.go makes
// one system call of several TLS records.
package native
