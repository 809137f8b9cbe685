// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
)

// Tunnel is the gateway's status of the connection to a member.
type Tunnel = gatewayv1alpha1.ClusterGatewayStatus

// Overview is a snapshot of the fleet.
type Overview struct {
	Members []clusterv1beta1.MemberCluster
	// Tunnels is the gateway's status of the connection to each member. If it could not be read,
	// Tunnels is nil and TunnelsUnknown is the error.
	Tunnels        map[string]Tunnel
	TunnelsUnknown error
	// Renewed is when the agent of each member last renewed its Lease; nil if the user cannot read
	// Leases. Agents renew Leases more often than they update the MemberCluster.
	Renewed map[string]metav1.Time
	// NotReady are the placements that are not ready, Failing the names of placements by the
	// members on which they fail.
	NotReady []placementv1beta1.PlacementObject
	Failing  map[string][]string
}

// Overview reads members, tunnels and the placements that are not ready, in parallel. Ready
// placements are cheap: it lists placements as a table, and reads only those completely that the
// table does not show as available.
func (h *Hub) Overview(ctx context.Context, options ...client.ListOption) (*Overview, error) {
	o := &Overview{}
	var members clusterv1beta1.MemberClusterList
	err := together(ctx,
		func(ctx context.Context) error {
			if err := h.List(ctx, &members, options...); err != nil {
				return fmt.Errorf("listing members: %w", err)
			}
			return nil
		},
		func(ctx context.Context) error {
			o.Tunnels, o.TunnelsUnknown = h.tunnels(ctx)
			return nil // An unreachable gateway is shown as such.
		},
		func(ctx context.Context) error {
			// Without permission to read Leases, the heartbeats of the MemberClusters are used.
			o.Renewed, _ = identity.FleetSeats().Renewals(ctx, h)
			return nil
		},
		func(ctx context.Context) (err error) {
			o.NotReady, err = h.placementsNotReady(ctx)
			return err
		},
	)
	o.Members, o.Failing = members.Items, failing(o.NotReady)
	return o, err
}

func (h *Hub) tunnels(ctx context.Context) (map[string]Tunnel, error) {
	var list gatewayv1alpha1.ClusterGatewayList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the tunnels of the gateway: %w", err)
	}
	all := make(map[string]Tunnel, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Status
	}
	return all, nil
}

// RenewedBy is when the agent of one member last renewed its Lease; zero if it has not, or if the user
// cannot read the Lease.
func (h *Hub) RenewedBy(ctx context.Context, member string) metav1.Time {
	renewed, _ := identity.FleetSeats().Renewal(ctx, h, member)
	return renewed
}

// failing returns the names of the placements that fail, by member.
func failing(notReady []placementv1beta1.PlacementObject) map[string][]string {
	failing := map[string][]string{}
	for _, placement := range notReady {
		for i := range placement.GetStatus().PlacementStatuses {
			if of := &placement.GetStatus().PlacementStatuses[i]; of.ClusterName != "" && IsFailing(of) {
				failing[of.ClusterName] = append(failing[of.ClusterName], NameOf(placement))
			}
		}
	}
	return failing
}

// IsFailing is true for a member on which a resource of a placement has failed, is not available
// or has drifted. Conditions that are Unknown or not set are not failures.
func IsFailing(of *placementv1beta1.PerClusterPlacementStatus) bool {
	return len(of.FailedPlacements) > 0 || len(of.DriftedPlacements) > 0 ||
		slices.ContainsFunc(of.Conditions, func(c metav1.Condition) bool { return c.Status == metav1.ConditionFalse })
}

// NameOf returns the name of a placement in the form that Placement accepts.
func NameOf(placement metav1.Object) string {
	if placement.GetNamespace() == "" {
		return placement.GetName()
	}
	return placement.GetNamespace() + "/" + placement.GetName()
}

// IsReady is true for a placement that selects resources, is scheduled and has passed the last
// stage of its strategy on all of its members. It may have no members.
func IsReady(placement placementv1beta1.PlacementObject) bool {
	conditions := placement.GetStatus().Conditions
	if placement.GetStatus().SelectsNothing() || !meta.IsStatusConditionTrue(conditions, placement.ConditionType(placementv1beta1.ConditionScheduled)) {
		return false
	}
	if len(placement.GetStatus().PlacementStatuses) == 0 {
		return true
	}
	return meta.IsStatusConditionTrue(conditions, placement.ConditionType(explain.LastStage(placement)))
}

// placementsNotReady returns those of both scopes that are not ready.
func (h *Hub) placementsNotReady(ctx context.Context) ([]placementv1beta1.PlacementObject, error) {
	rows, err := h.PlacementRows(ctx)
	if err != nil {
		return nil, err
	}
	read, err := h.ReadUnavailable(ctx, rows)
	return slices.DeleteFunc(read, IsReady), err
}

// ReadUnavailable reads the placements that the table does not show as available, in the order of
// the rows. Some are ready nevertheless, which only the complete object shows.
func (h *Hub) ReadUnavailable(ctx context.Context, rows []PlacementRow) ([]placementv1beta1.PlacementObject, error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r PlacementRow) bool { return r.Available })
	all := make([]placementv1beta1.PlacementObject, len(rows))
	var reads []func(context.Context) error
	for i, r := range rows {
		reads = append(reads, func(ctx context.Context) error {
			placement, err := h.Placement(ctx, r.Name, notOlderThan(r.version))
			all[i] = placement
			return err
		})
	}
	if err := together(ctx, reads...); err != nil {
		return nil, err
	}
	return all, nil
}

// PlacementRow is a row of the hub's table of placements.
type PlacementRow struct {
	// Name is in the form that Placement accepts.
	Name string
	// Scheduled, Applied and AvailableStatus are the statuses of these conditions; empty if not set.
	Scheduled, Applied, AvailableStatus string
	// Reason is that of the most severe problem.
	Reason string
	// Available is true if the row shows the placement as scheduled and available, and it selects
	// resources. Others can be ready, too, see IsReady.
	Available bool
	// version is the resource version of the table.
	version string
}

// PlacementRows reads all placements as tables, which are small however many members a placement
// has.
func (h *Hub) PlacementRows(ctx context.Context) ([]PlacementRow, error) {
	var wide, narrow []PlacementRow
	err := together(ctx,
		func(ctx context.Context) (err error) {
			wide, err = h.rowsOf(ctx, "clusterresourceplacements")
			return err
		},
		func(ctx context.Context) (err error) { narrow, err = h.rowsOf(ctx, "resourceplacements"); return err },
	)
	return append(wide, narrow...), err
}

func (h *Hub) rowsOf(ctx context.Context, resource string) ([]PlacementRow, error) {
	restClient, err := h.restClient()
	if err != nil {
		return nil, err
	}
	text, err := restClient.Get().AbsPath("/apis", placementv1beta1.GroupVersion.String(), resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("reading the table of %s: %w", resource, err)
	}
	return rowsOfTable(&table)
}

func rowsOfTable(table *metav1.Table) ([]PlacementRow, error) {
	column := map[string]int{}
	for i, c := range table.ColumnDefinitions {
		column[c.Name] = i
	}
	cell := func(row *metav1.TableRow, name string) string {
		if i, ok := column[name]; ok && i < len(row.Cells) {
			text, _ := row.Cells[i].(string) // A condition that is not set is null.
			return text
		}
		return ""
	}
	rows := make([]PlacementRow, 0, len(table.Rows))
	for i := range table.Rows {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(table.Rows[i].Object.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading the name in row %d: %w", i, err)
		}
		r := PlacementRow{
			Name: NameOf(&object), Scheduled: cell(&table.Rows[i], "Scheduled"), Applied: cell(&table.Rows[i], "Applied"), AvailableStatus: cell(&table.Rows[i], "Available"),
			Reason: cell(&table.Rows[i], "Reason"), version: table.ResourceVersion,
		}
		r.Available = r.Scheduled == string(metav1.ConditionTrue) && r.AvailableStatus == string(metav1.ConditionTrue) && r.Reason != placementv1beta1.ReasonNothingSelected
		rows = append(rows, r)
	}
	return rows, nil
}

// MemberState is the summary of a member.
type MemberState struct {
	// Joined is the status of that condition; Unknown if it was never set.
	Joined metav1.ConditionStatus
	// Connected is Yes, No, or Unknown if the gateway could not be read.
	Connected string
	// LastSeen is the time of the last heartbeat, in a report or a Lease; zero if there was none.
	LastSeen metav1.Time
	// Agent and Kubernetes are versions.
	Agent, Kubernetes string
	// Nodes is the number of nodes that the agent reports.
	Nodes string
	// Failing is how many placements fail on the member.
	Failing int
	// Reason is why the member is not ready; empty if it is.
	Reason string
	// OnlyPlacements is true if failing placements are the only problem.
	OnlyPlacements bool
}

// Values of MemberState.Connected.
const (
	Connected      = "Yes"
	NotConnected   = "No"
	ConnectedQuery = "Unknown"
)

// State summarizes a member.
func (o *Overview) State(member *clusterv1beta1.MemberCluster) MemberState {
	properties := member.Status.Properties
	s := MemberState{
		Joined: metav1.ConditionUnknown, Connected: ConnectedQuery, Failing: len(o.Failing[member.Name]),
		Agent:      properties[clusterv1beta1.PropertyAgentVersion].Value,
		Kubernetes: properties[clusterv1beta1.PropertyKubernetesVersion].Value,
		Nodes:      properties[clusterv1beta1.PropertyNodeCount].Value,
	}
	if c := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionJoined); c != nil {
		s.Joined = c.Status
	}
	if agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil {
		s.LastSeen = agent.LastReceivedHeartbeat
		if renewed := o.Renewed[member.Name]; renewed.After(s.LastSeen.Time) {
			s.LastSeen = renewed
		}
	}
	if status, known := o.Tunnels[member.Name]; known {
		s.Connected = Connected
		if status.HealthyReason == gatewayv1alpha1.HealthyReasonNotConnected {
			s.Connected = NotConnected
		}
	}
	s.Reason = o.reason(member)
	if s.Reason == "" && s.Failing > 0 {
		first := o.Failing[member.Name][0]
		s.Reason = fmt.Sprintf("failing placements: %d, first %s: kubectl fleetgate why %s --member %s", s.Failing, first, first, member.Name)
		s.OnlyPlacements = true
	}
	return s
}

// reason is the first problem of a member itself, causes before their consequences.
func (o *Overview) reason(member *clusterv1beta1.MemberCluster) string {
	if !member.IsApproved() {
		return "waiting for approval: kubectl fleetgate approve " + member.Name
	}
	for _, kind := range []string{clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined} {
		if c := meta.FindStatusCondition(member.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			return messageOf(kind, c)
		}
	}
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return "the agent has never reported"
	}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy); c != nil && c.Status != metav1.ConditionTrue {
		return messageOf(clusterv1beta1.ConditionHealthy, c)
	}
	if status, known := o.Tunnels[member.Name]; known && !status.Healthy {
		if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTunnelConnected); c != nil && c.Status == metav1.ConditionFalse {
			return messageOf(clusterv1beta1.ConditionTunnelConnected, c)
		}
		return cmp.Or(string(status.HealthyReason), "the connection through the gateway fails")
	}
	if c := member.Status.Warning(); c != nil {
		return messageOf(c.Type, c)
	}
	return ""
}

func messageOf(kind string, c *metav1.Condition) string {
	if c == nil {
		return "condition " + kind + " is not set yet"
	}
	return c.Reason + ": " + c.Message
}
