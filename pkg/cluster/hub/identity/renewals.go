// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Renewals are the last Lease renewals of the agents, by member, from one list request. A MemberCluster
// is not written for each renewal, so its heartbeat can be minutes older. The times are those of the
// hub, which records when a Lease was written: agents write the time of their own clocks. Leases that
// no agent has renewed yet are left out.
func (s Seats) Renewals(ctx context.Context, hub client.Reader) (map[string]metav1.Time, error) {
	var leases coordinationv1.LeaseList
	if err := hub.List(ctx, &leases, client.MatchingFields{"metadata.name": s.Lease}); err != nil {
		return nil, fmt.Errorf("listing the Leases of agents: %w", err)
	}
	all := make(map[string]metav1.Time, len(leases.Items))
	for i := range leases.Items {
		lease := &leases.Items[i]
		if member, ok := s.MemberOf(lease.Namespace); ok && lease.Spec.RenewTime != nil {
			all[member] = lastWrite(lease)
		}
	}
	return all, nil
}

// Renewal is the last Lease renewal of one member's agent, as in Renewals; zero if there is none.
func (s Seats) Renewal(ctx context.Context, hub client.Reader, member string) (metav1.Time, error) {
	var lease coordinationv1.Lease
	if err := hub.Get(ctx, client.ObjectKey{Namespace: s.Namespace(member), Name: s.Lease}, &lease); err != nil {
		return metav1.Time{}, fmt.Errorf("reading the Lease of the agent of %q: %w", member, err)
	}
	if lease.Spec.RenewTime == nil {
		return metav1.Time{}, nil
	}
	return lastWrite(&lease), nil
}

// lastWrite is the last write of an object, by the clock of its API server.
func lastWrite(object metav1.Object) metav1.Time {
	var last metav1.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last.Time) {
			last = *entry.Time
		}
	}
	return last
}
