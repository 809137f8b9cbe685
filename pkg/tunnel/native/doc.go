// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package native carries many streams over one connection with the yamux
// multiplexer (github.com/hashicorp/yamux). It is the first carrier of
// pkg/tunnel and knows nothing of members, targets or HTTP.
//
// Yamux gives frames, flow control per stream and half close. Three things
// that a proxied connection needs are missing in it and are added here:
//
//   - Reset. Yamux can tell the peer "I have no more to say" but not "I am gone".
//     [Stream.Reset] and a Close that meets unread data send yamux's own RST
//     frame, so a peer that writes to a closed stream stops instead of waiting
//     for a window that never opens.
//   - The truth about an end. A stream whose connection broke answers reads with
//     [ErrSessionClosed], never with io.EOF, so half an answer cannot pass for a
//     whole one.
//   - Liveness by what arrives. Both sides ping about every 10 s and give the
//     connection up when nothing at all has arrived for 25 s, or when no frame
//     could be written for 25 s. A link that is busy but slow stays up.
//
// wire.go holds what happens to bytes, stream.go what happens to a stream,
// carrier.go what happens to a session.
package native
