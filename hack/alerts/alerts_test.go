// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts evaluates the alerts of the gateway's chart as Prometheus does.
package alerts

import (
	"os"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

// at is the time of evaluation. Series start at 0 with one sample a minute.
const at = 100 * time.Minute

// expressions returns the expressions of the alerts by name.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("../../charts/gateway/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Rules []struct{ Alert, Expr string }
	}
	if err := yaml.Unmarshal(content, &groups); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, group := range groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule.Expr
		}
	}
	return all
}

// Each alert has series that fire it, and similar ones that must not.
var cases = map[string]struct{ fires, silent []string }{
	"FleetgateNoGateway": {
		fires:  []string{""},
		silent: []string{`fleetgate_tunnel_dials_not_connected_total 0x120`},
	},
	"FleetgateAPIUnavailable": {
		fires:  []string{`aggregator_unavailable_apiservice{name="v1alpha1.tunnel.fleetgate.io"} 1x120`},
		silent: []string{`aggregator_unavailable_apiservice{name="v1beta1.metrics.k8s.io"} 1x120`},
	},
	"FleetgateNoLeader": {
		fires: []string{`leader_election_master_status{name="fleetgate-gateway",pod="a"} 0x120
			leader_election_master_status{name="fleetgate-gateway",pod="b"} 0x120`},
		silent: []string{`leader_election_master_status{name="fleetgate-gateway",pod="a"} 0x120
			leader_election_master_status{name="fleetgate-gateway",pod="b"} 1x120`},
	},
	"FleetgateMemberNotConnected": {
		fires: []string{
			`fleetgate_member_joined{member="a"} 1x120`, // No current gateway ever had its tunnel.
			`fleetgate_member_joined{member="a"} 1x120
			fleetgate_tunnel_sessions{member="a",pod="x"} 0x120
			fleetgate_tunnel_sessions{member="b",pod="x"} 1x120`,
		},
		silent: []string{
			`fleetgate_member_joined{member="waits"} 0x120`,
			`fleetgate_member_joined{member="a"} 1x120
			fleetgate_tunnel_sessions{member="a",pod="x"} 0x120
			fleetgate_tunnel_sessions{member="a",pod="y"} 1x120`,
			`fleetgate_member_joined{member="a"} 1x120
			fleetgate_konnectivity_sessions{member="a"} 1x120`,
		},
	},
	"FleetgateReplicasNotLinked": {
		fires: []string{`fleetgate_tunnel_peer_links_missing{pod="x"} 1x120
			fleetgate_tunnel_peer_links_missing{pod="y"} 0x120`},
		silent: []string{`fleetgate_tunnel_peer_links_missing{pod="x"} 0x120`},
	},
	"FleetgateMemberSilent": {
		fires: []string{`fleetgate_member_joined{member="a",pod="x"} 0x120`},
		// A former leader keeps exporting its last values.
		silent: []string{`fleetgate_member_joined{member="a",pod="x"} 0x120
			fleetgate_member_joined{member="a",pod="y"} 1x120`},
	},
	"FleetgatePlacementStuck": {
		fires: []string{`fleet_workload_placement_status_last_timestamp_seconds{name="a",conditionType="ClusterResourcePlacementApplied"} 60x120`},
		silent: []string{
			`fleet_workload_placement_status_last_timestamp_seconds{name="a",conditionType="Completed"} 60x120`,
			`fleet_workload_placement_status_last_timestamp_seconds{name="a",conditionType="ClusterResourcePlacementApplied"} 5400x120`,
			`fleet_workload_placement_status_last_timestamp_seconds{name="a",conditionType="ClusterResourcePlacementRolloutStarted"} 60x120
			fleetgate_placement_waiting{name="a"} 1x120`,
		},
	},
	"FleetgateUpdateRunStuck": {
		fires:  []string{`fleetgate_update_runs{state="stuck"} 1x120`},
		silent: []string{`fleetgate_update_runs{state="waiting"} 1x120`},
	},
	"FleetgateTokenExpires": {
		fires: []string{
			// Ten minutes are left of a token with a lifetime of two days.
			`fleetgate_account_token_expiration_timestamp_seconds{member="a",account="x"} 6600x120
			fleetgate_account_token_lifetime_seconds{member="a",account="x"} 172800x120`,
			// There is no token.
			`fleetgate_account_token_expiration_timestamp_seconds{member="a",account="x"} 0x120
			fleetgate_account_token_lifetime_seconds{member="a",account="x"} 0x120`,
		},
		// Ten minutes are left of a token with a lifetime of half an hour.
		silent: []string{`fleetgate_account_token_expiration_timestamp_seconds{member="a",account="x"} 6600x120
			fleetgate_account_token_lifetime_seconds{member="a",account="x"} 1800x120`},
	},
	"FleetgateRequestsFail": {
		fires: []string{`fleetgate_proxy_requests_total{member="a",code="504"} 0+10x120
			fleetgate_proxy_requests_total{member="a",code="200"} 0+100x120`},
		silent: []string{`fleetgate_proxy_requests_total{member="a",code="503"} 0+10x120
			fleetgate_proxy_requests_total{member="a",code="504"} 0+1x120
			fleetgate_proxy_requests_total{member="a",code="200"} 0+100x120`},
	},
	"FleetgateRequestsSlow": {
		fires: []string{`fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="5"} 0+90x120
			fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="10"} 0+100x120
			fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="+Inf"} 0+100x120`},
		silent: []string{`fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="5"} 0+100x120
			fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="10"} 0+100x120
			fleetgate_proxy_request_duration_seconds_bucket{verb="get",le="+Inf"} 0+100x120`},
	},
	"FleetgateRequestsRefused": {
		fires:  []string{`fleetgate_proxy_requests_total{member="a",code="429"} 0+60x120`},
		silent: []string{`fleetgate_proxy_requests_total{member="a",code="429"} 0+1x120`},
	},
	"FleetgateReconcileErrors": {
		fires:  []string{`controller_runtime_reconcile_errors_total{controller="work"} 0+10x120`},
		silent: []string{`controller_runtime_reconcile_errors_total{controller="work"} 0+1x120`},
	},
}

func TestAlerts_FireForTheirCasesOnly(t *testing.T) {
	all := expressions(t)
	for name := range cases {
		if all[name] == "" {
			t.Errorf("there is no alert %s", name)
		}
	}
	engine := promqltest.NewTestEngine(t, false, 0, 50_000)
	for name, expression := range all {
		of := cases[name]
		if len(of.fires) == 0 || len(of.silent) == 0 {
			t.Errorf("%s has no case that fires it, or none that does not", name)
		}
		for _, series := range of.fires {
			if evaluate(t, engine, expression, series) == 0 {
				t.Errorf("%s does not fire for\n%s", name, series)
			}
		}
		for _, series := range of.silent {
			if n := evaluate(t, engine, expression, series); n != 0 {
				t.Errorf("%s fires %d times for\n%s", name, n, series)
			}
		}
	}
}

// evaluate returns the number of series for which an expression holds.
func evaluate(t *testing.T, engine *promql.Engine, expression, series string) int {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n\t"+series)
	defer storage.Close()
	query, err := engine.NewInstantQuery(t.Context(), storage, nil, expression, time.Unix(0, 0).Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return len(result)
}
