// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

func TestMetrics_CountSessionsAndDials(t *testing.T) {
	registerer := prometheus.NewPedanticRegistry()
	r := tunneltest.NewRegistry(t, tunnel.Options{Registerer: registerer})
	if _, err := tunnel.NewRegistry(tunnel.Options{Registerer: registerer}); err == nil {
		t.Error("registering the metrics twice succeeded")
	}
	leave := tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("hello"), "echo": echo})
	hear(t, r, "one", "a")
	_, _ = r.DialMember(t.Context(), "one", "unknown")
	_, _ = r.DialMember(t.Context(), "made-up-name", "a")
	open, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	want := `
# HELP fleetgate_tunnel_bytes_total Bytes sent to or received from a member in streams.
# TYPE fleetgate_tunnel_bytes_total counter
fleetgate_tunnel_bytes_total{direction="received",member="one"} 5
fleetgate_tunnel_bytes_total{direction="sent",member="one"} 0
# HELP fleetgate_tunnel_dials_not_connected_total Number of dials to members without a tunnel session.
# TYPE fleetgate_tunnel_dials_not_connected_total counter
fleetgate_tunnel_dials_not_connected_total 1
# HELP fleetgate_tunnel_dials_total Number of streams requested from a connected member, by result.
# TYPE fleetgate_tunnel_dials_total counter
fleetgate_tunnel_dials_total{member="one",result="ok"} 2
fleetgate_tunnel_dials_total{member="one",result="refused"} 1
# HELP fleetgate_tunnel_moves_requested_total Number of tunnel sessions that this gateway asked to move to a replica with fewer sessions.
# TYPE fleetgate_tunnel_moves_requested_total counter
fleetgate_tunnel_moves_requested_total 0
# HELP fleetgate_tunnel_peer_links_missing Number of serving replicas of the gateway to which this one has no link.
# TYPE fleetgate_tunnel_peer_links_missing gauge
fleetgate_tunnel_peer_links_missing 0
# HELP fleetgate_tunnel_sessions Number of tunnel sessions of a member's agents to this gateway. 0 or absent: not connected.
# TYPE fleetgate_tunnel_sessions gauge
fleetgate_tunnel_sessions{member="one"} 1
# HELP fleetgate_tunnel_streams Number of streams that are open, or being opened, to a member.
# TYPE fleetgate_tunnel_streams gauge
fleetgate_tunnel_streams{member="one"} 1
`
	if err := testutil.GatherAndCompare(registerer, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	_ = open.Close()
	leave()
	r.Disconnect("one")
	if n, err := testutil.GatherAndCount(registerer, "fleetgate_tunnel_sessions", "fleetgate_tunnel_dials_total"); n != 0 || err != nil {
		t.Errorf("%d series of a forgotten member are left, %v", n, err)
	}
}
