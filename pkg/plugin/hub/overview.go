// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

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
	"fleetgate.io/fleetgate/pkg/cluster"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// Tunnel is what the gateway says of a member's way in.
type Tunnel = gatewayv1alpha1.ClusterGatewayStatus

// Overview is the fleet at one moment.
type Overview struct {
	Members []clusterv1beta1.MemberCluster
	// Tunnels are what the gateway says of each member's way in. TunnelsUnknown is why it
	// could not be asked; then they are nil.
	Tunnels        map[string]Tunnel
	TunnelsUnknown error
	// Renewed is when the agent of each member has renewed its Lease; nil for who may not read
	// Leases. A MemberCluster is not written for each.
	Renewed map[string]metav1.Time
	// Unwell are the placements that are not what they should be, Failing their names by member.
	Unwell  []placementv1beta1.PlacementObject
	Failing map[string][]string
}

// Overview reads members, tunnels and the placements that are not well, beside each other.
// What is well costs nothing: of placements the hub is asked for its own columns, and only
// of those that are not Available for all that they say.
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
			return nil // A gateway that is away is something to show.
		},
		func(ctx context.Context) error {
			// Who may not read Leases has what the MemberClusters say.
			o.Renewed, _ = cluster.FleetSeats().Renewals(ctx, h)
			return nil
		},
		func(ctx context.Context) (err error) {
			o.Unwell, err = h.unwellPlacements(ctx)
			return err
		},
	)
	o.Members, o.Failing = members.Items, failing(o.Unwell)
	return o, err
}

func (h *Hub) tunnels(ctx context.Context) (map[string]Tunnel, error) {
	var list gatewayv1alpha1.ClusterGatewayList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("asking the gateway for its tunnels: %w", err)
	}
	all := make(map[string]Tunnel, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Status
	}
	return all, nil
}

// RenewedBy is when the agent of one member has renewed its Lease; zero if it has not, or for who
// may not read it.
func (h *Hub) RenewedBy(ctx context.Context, member string) metav1.Time {
	renewed, _ := cluster.FleetSeats().Renewal(ctx, h, member)
	return renewed
}

// failing is, by member, the names of the placements that are not well there.
func failing(unwell []placementv1beta1.PlacementObject) map[string][]string {
	failing := map[string][]string{}
	for _, placement := range unwell {
		for i := range placement.GetStatus().PlacementStatuses {
			if of := &placement.GetStatus().PlacementStatuses[i]; of.ClusterName != "" && !Well(of) {
				failing[of.ClusterName] = append(failing[of.ClusterName], NameOf(placement))
			}
		}
	}
	return failing
}

// Well is false for a member on which something of a placement has failed, is not
// available, or has drifted. Conditions that are not known yet are no failure.
func Well(of *placementv1beta1.PerClusterPlacementStatus) bool {
	return len(of.FailedPlacements) == 0 && len(of.DriftedPlacements) == 0 &&
		!slices.ContainsFunc(of.Conditions, func(c metav1.Condition) bool { return c.Status == metav1.ConditionFalse })
}

// NameOf names a placement as Placement takes it.
func NameOf(placement metav1.Object) string {
	if placement.GetNamespace() == "" {
		return placement.GetName()
	}
	return placement.GetNamespace() + "/" + placement.GetName()
}

// WellPlacement is true for one that has something to place, is scheduled and through the last
// stage of its strategy on all its members, of which there may be none.
func WellPlacement(placement placementv1beta1.PlacementObject) bool {
	conditions := placement.GetStatus().Conditions
	if placement.GetStatus().SelectsNothing() || !meta.IsStatusConditionTrue(conditions, placement.ConditionType(placementv1beta1.ConditionScheduled)) {
		return false
	}
	if len(placement.GetStatus().PlacementStatuses) == 0 {
		return true
	}
	return meta.IsStatusConditionTrue(conditions, placement.ConditionType(why.LastStage(placement)))
}

// unwellPlacements are those of both scopes that are not well, by name.
func (h *Hub) unwellPlacements(ctx context.Context) ([]placementv1beta1.PlacementObject, error) {
	rows, err := h.PlacementRows(ctx)
	if err != nil {
		return nil, err
	}
	read, err := h.ReadUnavailable(ctx, rows)
	return slices.DeleteFunc(read, WellPlacement), err
}

// ReadUnavailable reads those of the placements of which the hub's columns do not say that they
// are available, in their order. Some are well all the same: only the whole object says so.
func (h *Hub) ReadUnavailable(ctx context.Context, rows []PlacementRow) ([]placementv1beta1.PlacementObject, error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r PlacementRow) bool { return r.Well })
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

// PlacementRow is what the hub's own columns say of a placement.
type PlacementRow struct {
	// Name is as Placement takes it.
	Name string
	// Scheduled and Available are the statuses of these conditions; empty if not set.
	Scheduled, Applied, Available string
	// Reason is that of what is worst.
	Reason string
	// Well is true if the columns say that it is scheduled and available, and there is
	// something to place. Others may be well, too, see WellPlacement.
	Well bool
	// version is the hub's when it said so.
	version string
}

// PlacementRows reads what the hub's own columns say of all placements. It asks for tables, which are small however many members a placement has.
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
	asker, err := h.asker()
	if err != nil {
		return nil, err
	}
	text, err := asker.Get().AbsPath("/apis", placementv1beta1.GroupVersion.String(), resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
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
			Name: NameOf(&object), Scheduled: cell(&table.Rows[i], "Scheduled"), Applied: cell(&table.Rows[i], "Applied"), Available: cell(&table.Rows[i], "Available"),
			Reason: cell(&table.Rows[i], "Reason"), version: table.ResourceVersion,
		}
		r.Well = r.Scheduled == string(metav1.ConditionTrue) && r.Available == string(metav1.ConditionTrue) && r.Reason != placementv1beta1.ReasonNothingSelected
		rows = append(rows, r)
	}
	return rows, nil
}

// MemberState is what an operator wants to know of a member at first sight.
type MemberState struct {
	// Joined is the status of that condition; Unknown if it was never set.
	Joined metav1.ConditionStatus
	// Connected is Yes, No, or Unknown if the gateway could not be asked.
	Connected string
	// LastSeen is when the hub heard of the agent last, a report or a Lease; zero if it never has.
	LastSeen metav1.Time
	// Agent and Kubernetes are versions.
	Agent, Kubernetes string
	// Nodes is how many it has, as the agent says.
	Nodes string
	// Failing is how many placements are not well there.
	Failing int
	// WhyNot is empty if the member is well.
	WhyNot string
	// OnlyPlacements is true if nothing is wrong but what placements have failed there.
	OnlyPlacements bool
}

// Values of MemberState.Connected.
const (
	Connected      = "Yes"
	NotConnected   = "No"
	ConnectedQuery = "Unknown"
)

// State sums a member up.
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
	s.WhyNot = o.whyNot(member)
	if s.WhyNot == "" && s.Failing > 0 {
		first := o.Failing[member.Name][0]
		s.WhyNot = fmt.Sprintf("placements that are not well there: %d, first %s: kubectl fleetgate why %s --member %s", s.Failing, first, first, member.Name)
		s.OnlyPlacements = true
	}
	return s
}

// whyNot is the first thing that is wrong with a member itself, the cause before what follows
// of it.
func (o *Overview) whyNot(member *clusterv1beta1.MemberCluster) string {
	if !member.IsApproved() {
		return "waits for approval: kubectl fleetgate approve " + member.Name
	}
	for _, kind := range []string{clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined} {
		if c := meta.FindStatusCondition(member.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			return said(kind, c)
		}
	}
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return "its agent has never reported"
	}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy); c != nil && c.Status != metav1.ConditionTrue {
		return said(clusterv1beta1.ConditionHealthy, c)
	}
	if status, known := o.Tunnels[member.Name]; known && !status.Healthy {
		if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTunnelConnected); c != nil && c.Status == metav1.ConditionFalse {
			return said(clusterv1beta1.ConditionTunnelConnected, c)
		}
		return cmp.Or(string(status.HealthyReason), "the way into it does not work")
	}
	if c := member.Status.Warning(); c != nil {
		return said(c.Type, c)
	}
	return ""
}

func said(kind string, c *metav1.Condition) string {
	if c == nil {
		return kind + " is not known yet"
	}
	return c.Reason + ": " + c.Message
}
