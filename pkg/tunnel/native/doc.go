// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package native carries many streams over one connection, with its own framing. Its protocol is
// SPEC.md of pkg/tunnel, "The multiplexer". It does not know members, targets or HTTP.
//
// A stream guarantees:
//
//   - Flow control. A peer may send only what this side has granted, so an unread
//     stream holds a limited number of bytes and blocks no other stream. The window
//     of a stream whose reader keeps up grows with the round trip. Budgets limit the
//     unread data of all streams of a session, and of a process.
//   - Fairness. Streams with bulk data take turns, a frame each. Small frames (a
//     keystroke, an event of a watch, the protocol's own frames) go first.
//   - Exact ends. A stream that the peer abandoned returns [ErrReset], one whose
//     session broke [ErrSessionClosed]. Only a stream that the peer ended returns
//     io.EOF: a partial response never looks complete.
//   - Liveness. Both sides ping about every 10 s. They close the connection when
//     nothing has arrived for 25 s, or when nothing could be written for 25 s. A
//     busy but slow link stays up.
//
// One goroutine reads (receive.go). A writer writes its frame itself if the connection is free, and
// otherwise waits for its turn (writer.go). The second goroutine of a session sends frames that no
// writer waits for. stream.go and send.go are the two directions of a stream, inbox.go holds unread
// data, and batch.go combines several TLS records in one system call.
package native
