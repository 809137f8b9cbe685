// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// samples are packets with upstream's generated code, and the same with ours.
var samples = []struct {
	name string
	peer *client.Packet
	ours packet
}{
	{
		name: "a dial, whose type is zero and so not on the wire",
		peer: &client.Packet{Payload: &client.Packet_DialRequest{
			DialRequest: &client.DialRequest{Protocol: "tcp", Address: "[fd00::1]:443", Random: 1<<62 + 1},
		}},
		ours: packet{kind: dialRequest, protocol: "tcp", address: "[fd00::1]:443", random: 1<<62 + 1},
	},
	{
		name: "an answer to a dial",
		peer: dialRsp(7, 1, ""),
		ours: packet{kind: dialResponse, random: 7, connID: 1},
	},
	{
		name: "a refusal of a dial",
		peer: dialRsp(7, 0, "connection refused"),
		ours: packet{kind: dialResponse, random: 7, reason: "connection refused"},
	},
	{
		name: "a close",
		peer: closeReq(3),
		ours: packet{kind: closeRequest, connID: 3},
	},
	{
		name: "a closed connection",
		peer: closeRsp(3),
		ours: packet{kind: closeResponse, connID: 3},
	},
	{
		name: "data",
		peer: dataPacket(300, []byte("payload")),
		ours: packet{kind: data, connID: 300, payload: mem.BufferSlice{mem.SliceBuffer("payload")}},
	},
	{
		name: "a dial that is given up",
		peer: &client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: 9}}},
		ours: packet{kind: dialClose, random: 9},
	},
	{
		name: "a drain",
		peer: &client.Packet{Type: client.PacketType_DRAIN, Payload: &client.Packet_Drain{Drain: &client.Drain{}}},
		ours: packet{kind: drain},
	},
}

func TestPacket_EncodesLikeUpstream(t *testing.T) {
	for _, sample := range samples {
		t.Run(sample.name, func(t *testing.T) {
			wire, err := codec{}.Marshal(&sample.ours)
			if err != nil {
				t.Fatal(err)
			}
			read := new(client.Packet)
			if err := proto.Unmarshal(wire.Materialize(), read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sample.peer, read, protocmp.Transform()); diff != "" {
				t.Errorf("upstream reads our packet differently (-want +got):\n%s", diff)
			}
			peer, err := proto.Marshal(sample.peer)
			if err != nil {
				t.Fatal(err)
			}
			var got packet
			if err := got.decode(mem.BufferSlice{mem.SliceBuffer(peer)}); err != nil {
				t.Fatal(err)
			}
			comparePackets(t, sample.ours, got)
		})
	}
}

func comparePackets(t *testing.T, want, got packet) {
	t.Helper()
	if diff := cmp.Diff(want.payload.Materialize(), got.payload.Materialize()); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	want.payload, got.payload = nil, nil
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(packet{})); diff != "" {
		t.Errorf("packet (-want +got):\n%s", diff)
	}
}

func TestPacket_OwnPacketsRoundTrip(t *testing.T) {
	for name, p := range map[string]packet{
		"a credit":                {kind: credit, connID: 5, amount: 1 << 20},
		"a half close":            {kind: end, connID: 5},
		"a reset by the gateway":  {kind: closeRequest, connID: 5, reason: resetReason},
		"a reset by the agent":    {kind: closeResponse, connID: 5, reason: resetReason},
		"a refusal with its code": {kind: dialResponse, random: 5, reason: "no", code: 3},
	} {
		t.Run(name, func(t *testing.T) {
			var got packet
			if err := got.decode(mem.BufferSlice{mem.SliceBuffer(p.encode())}); err != nil {
				t.Fatal(err)
			}
			comparePackets(t, p, got)
		})
	}
}

func TestPacket_DataIsDecodedWithoutCopyAtAnySplit(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 100)
	wire, err := proto.Marshal(dataPacket(1<<40, payload))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(wire) {
		var got packet
		if err := got.decode(mem.BufferSlice{mem.SliceBuffer(wire[:cut]), mem.SliceBuffer(wire[cut:])}); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got.kind != data || got.connID != 1<<40 || !bytes.Equal(got.payload.Materialize(), payload) {
			t.Fatalf("cut at %d: read %+v", cut, got)
		}
	}
}

func TestPacket_UnknownPacketsAreIgnored(t *testing.T) {
	for name, p := range map[string]*client.Packet{
		"an empty packet is no dial":        {},
		"a type without its payload":        {Type: client.PacketType_DATA},
		"a type with another one's payload": {Type: client.PacketType_DATA, Payload: closeReq(1).Payload},
		"a type of a later version":         {Type: 42, Payload: &client.Packet_Drain{Drain: &client.Drain{}}},
	} {
		t.Run(name, func(t *testing.T) {
			wire, err := proto.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var got packet
			if err := got.decode(mem.BufferSlice{mem.SliceBuffer(wire)}); err != nil {
				t.Fatal(err)
			}
			if got.kind != nothing {
				t.Errorf("it was read as %s", got.kind)
			}
		})
	}
}

func TestPrintable_LimitsTextsOfAPeer(t *testing.T) {
	p := packet{kind: dialResponse, random: 1, reason: strings.Repeat("a\nb\x1b", 1000)}
	var got packet
	if err := got.decode(mem.BufferSlice{mem.SliceBuffer(p.encode())}); err != nil {
		t.Fatal(err)
	}
	if len(got.reason) > maxText || strings.ContainsAny(got.reason, "\n\x1b") {
		t.Errorf("kept %d bytes: %.20q", len(got.reason), got.reason)
	}
}

// FuzzPacket compares with protobuf: if both can read a packet, it means the same, and encoded
// packets can be decoded.
func FuzzPacket(f *testing.F) {
	for _, sample := range samples {
		wire, err := proto.Marshal(sample.peer)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, 3)
	}
	f.Add((&packet{kind: credit, connID: 1, amount: 1}).encode(), 0)
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		cut = max(0, min(cut, len(wire)))
		var ours packet
		err := ours.decode(mem.BufferSlice{mem.SliceBuffer(wire[:cut]), mem.SliceBuffer(wire[cut:])})
		peer := new(client.Packet)
		peerErr := proto.Unmarshal(wire, peer)
		if err != nil {
			if peerErr == nil {
				t.Fatalf("protobuf reads what we refuse: %v", err)
			}
			return
		}
		if peerErr == nil && ours.kind == data {
			if peer.GetData().GetConnectID() != ours.connID || !bytes.Equal(peer.GetData().GetData(), ours.payload.Materialize()) {
				t.Fatalf("protobuf reads %v, we read %+v", peer, ours)
			}
		}
		if ours.kind == nothing || ours.kind == data && len(ours.payload) == 0 {
			return
		}
		again, err := codec{}.Marshal(&ours)
		if err != nil {
			t.Fatal(err)
		}
		var back packet
		if err := back.decode(again); err != nil {
			t.Fatalf("reading what was written: %v", err)
		}
		comparePackets(t, ours, back)
	})
}
