// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// readTimeout limits a read of the cache, which waits only for a kind that was never listed.
const readTimeout = 5 * time.Second

// Fleet has the metrics of the kinds that the gateway serves.
type Fleet struct {
	// Reader reads from a cache: each scrape lists all objects of each kind.
	Reader client.Reader
	// Accounts is true if ManagedServiceAccounts are served; members and placements always are.
	Accounts bool
}

// Run registers the metrics while this replica leads. A scrape in progress ends with it.
func (f *Fleet) Run(ctx context.Context, registerer prometheus.Registerer) error {
	c := &collector{fleet: f, leads: func() context.Context { return ctx }}
	if err := registerer.Register(c); err != nil {
		return fmt.Errorf("registering the metrics of the fleet: %w", err)
	}
	defer registerer.Unregister(c)
	<-ctx.Done()
	return nil
}

// collector computes the metrics of a fleet at each scrape.
type collector struct {
	fleet *Fleet
	// leads is the context that ends when another replica leads.
	leads func() context.Context
}

var _ prometheus.Collector = (*collector)(nil)

// Describe lists the metrics.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, vec := range newSeries().all() {
		vec.Describe(descriptions)
	}
}

// Collect computes them. A kind that cannot be read is left out of this scrape.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.leads(), readTimeout)
	defer cancel()
	s := newSeries()
	fills := []func(context.Context, client.Reader) error{s.ofMembers, s.ofPlacements, s.ofWorks, s.ofRuns, s.ofEvictions}
	if c.fleet.Accounts {
		fills = append(fills, s.ofAccounts)
	}
	for _, fill := range fills {
		if err := fill(ctx, c.fleet.Reader); err != nil {
			log.Log.WithName("fleetmetrics").V(1).Info("Metrics of a kind cannot be computed", "reason", err.Error())
		}
	}
	for _, vec := range s.all() {
		vec.Collect(metrics)
	}
}

// series are all metrics of one scrape.
type series struct {
	members, joined, placements, waiting, works, runs, runStates, evictions, tokens, lifetimes *prometheus.GaugeVec
}

func (s series) all() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{
		s.members, s.joined, s.placements, s.waiting, s.works, s.runs, s.runStates, s.evictions, s.tokens, s.lifetimes,
	}
}

func newSeries() series {
	return series{
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_members",
			Help: "Number of members by state: joined, unhealthy (joined, and reports itself unhealthy), silent (no heartbeat), waiting (the agent has not reported yet), leaving.",
		}, []string{"state"}),
		joined: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_member_joined",
			Help: "1 if the member has joined and sends heartbeats, otherwise 0.",
		}, []string{"member"}),
		placements: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleet_workload_placement_status_last_timestamp_seconds",
			Help: "Unix time of the last change of the placement's first condition that is not True, or of Completed. Same name as in KubeFleet.",
		}, []string{"namespace", "name", "generation", "conditionType", "status", "reason"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_placement_waiting",
			Help: "1 if the placement waits only for a user: update runs roll it out, or it names no member. Such a placement is not stuck.",
		}, []string{"namespace", "name"}),
		works: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_works",
			Help: "Number of Works by state: available, unavailable (applied, but not available), failed (not applied), pending (not reported by the member yet).",
		}, []string{"state"}),
		runs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_update_runs",
			Help: "Number of update runs by state: new, running, waiting (for an approval, a time or a member), stuck, stopped, succeeded, failed.",
		}, []string{"state"}),
		runStates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleet_workload_update_run_status_last_timestamp_seconds",
			Help: "Unix time of the last change of the update run's last known condition. Same name as in KubeFleet.",
		}, []string{"namespace", "name", "state", "condition", "status", "reason"}),
		evictions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleet_workload_eviction_complete",
			Help: "1 if the eviction is complete, otherwise 0. The labels have its result. Same name as in KubeFleet.",
		}, []string{"name", "isCompleted", "isValid"}),
		tokens: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_account_token_expiration_timestamp_seconds",
			Help: "Unix time at which the token of a member's account expires, or 0 if it has none.",
		}, []string{"member", "account"}),
		lifetimes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetgate_account_token_lifetime_seconds",
			Help: "Lifetime in seconds of the token of a member's account, from its last refresh, or 0 if it has none.",
		}, []string{"member", "account"}),
	}
}
