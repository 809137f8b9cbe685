// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/placement/problems"
)

// Ranks of rows: problems first, pending before healthy.
const (
	failing = iota
	pending
	healthy
)

// expiresSoon is the remaining lifetime below which the report lists a token.
const expiresSoon = time.Hour

// gateways lists the leaders by their Leases, and the version that installed the CRDs.
func (r *Reporter) gateways(ctx context.Context) (section, error) {
	s := section{title: "Gateways", head: []string{"LEASE", "LEADER", "RENEWED"}}
	var leases coordinationv1.LeaseList
	if _, err := r.list(ctx, &leases, client.InNamespace(r.Namespace)); err != nil {
		return s, err
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if strings.HasPrefix(lease.Name, install.LeaderLease) {
			s.rows = append(s.rows, row{cells: []string{lease.Name, ptr.Deref(lease.Spec.HolderIdentity, ""), r.ago(ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time)}})
		}
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Hub.Get(ctx, client.ObjectKey{Name: "memberclusters." + clusterv1beta1.GroupName}, definition); err != nil {
		return s, err
	}
	s.note = "CRD version: " + cmp.Or(clean(definition.Annotations[install.AnnotationVersion]), "unknown")
	return s, nil
}

// apis lists the APIServices of the gateway.
func (r *Reporter) apis(ctx context.Context) (section, error) {
	s := section{title: "APIs served by the gateway", head: []string{"APISERVICE", "AVAILABLE", "REASON"}}
	var services apiregistrationv1.APIServiceList
	note, err := r.list(ctx, &services, client.MatchingLabels{install.LabelManagedBy: install.ManagedBy})
	s.note = note
	for i := range services.Items {
		line := row{rank: failing, cells: []string{services.Items[i].Name, "Unknown", ""}}
		for _, condition := range services.Items[i].Status.Conditions {
			if condition.Type == apiregistrationv1.Available {
				line.cells[1] = string(condition.Status)
				if condition.Status == apiregistrationv1.ConditionTrue {
					line.rank = healthy
				} else {
					line.cells[2] = condition.Reason + ": " + condition.Message
				}
			}
		}
		s.rows = append(s.rows, line)
	}
	return s, err
}

// members lists the members with their tunnels as reported by the gateway.
func (r *Reporter) members(ctx context.Context) (section, error) {
	s := section{title: "Members", head: []string{"MEMBER", "JOINED", "HEALTHY", "HEARTBEAT", "TUNNEL", "AGENT", "KUBERNETES", "REASON"}}
	var members clusterv1beta1.MemberClusterList
	note, err := r.list(ctx, &members)
	if err != nil {
		return s, err
	}
	tunnels, unknown := r.tunnels(ctx)
	renewed, err := identity.FleetSeats().Renewals(ctx, r.Hub)
	if err != nil {
		unknown = joined(unknown, "heartbeats are from status reports and may be minutes old: "+clean(err.Error()))
	}
	for i := range members.Items {
		member := &members.Items[i]
		cells, reason := states(member.Status.Conditions, clusterv1beta1.ConditionJoined)
		heartbeat, health := "never", "-"
		if report := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent); report != nil {
			heartbeat = r.ago(later(report.LastReceivedHeartbeat, renewed[member.Name]).Time)
			state, unhealthy := states(report.Conditions, clusterv1beta1.ConditionHealthy)
			health, reason = state[0], cmp.Or(reason, unhealthy)
		}
		warning := member.Status.Warning()
		if warning != nil {
			reason = cmp.Or(reason, warning.Reason+": "+warning.Message)
		}
		tunnel := cmp.Or(tunnels[member.Name], "-")
		line := row{rank: failing, cells: []string{
			member.Name, cells[0], health, heartbeat, tunnel,
			member.Status.Properties[clusterv1beta1.PropertyAgentVersion].Value, member.Status.Properties[clusterv1beta1.PropertyKubernetesVersion].Value, reason,
		}}
		if cells[0] == string(metav1.ConditionTrue) && health == string(metav1.ConditionTrue) && tunnel == connected && warning == nil {
			line.rank = healthy
		}
		s.rows = append(s.rows, line)
	}
	s.note = joined(note, unknown)
	return s, nil
}

func later(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

const connected = "connected"

// tunnels returns the gateway's status of each tunnel, or why it is unknown.
func (r *Reporter) tunnels(ctx context.Context) (of map[string]string, unknown string) {
	var gateways gatewayv1alpha1.ClusterGatewayList
	if _, err := r.list(ctx, &gateways); err != nil {
		return nil, "tunnel status unknown: " + clean(err.Error())
	}
	of = map[string]string{}
	for i := range gateways.Items {
		status := gateways.Items[i].Status
		of[gateways.Items[i].Name] = connected
		if !status.Healthy {
			of[gateways.Items[i].Name] = cmp.Or(string(status.HealthyReason), "Unknown")
		}
	}
	return of, ""
}

// registrationTokens lists the ClusterRegistrationTokens. Their values are in Secrets, which the
// report does not read.
func (r *Reporter) registrationTokens(ctx context.Context) (section, error) {
	s := section{title: "Registration tokens", head: []string{"NAMESPACE", "NAME", "READY", "EXPIRES", "REASON"}}
	var tokens registrationv1alpha1.ClusterRegistrationTokenList
	note, err := r.list(ctx, &tokens)
	s.note = note
	for i := range tokens.Items {
		token := &tokens.Items[i]
		cells, reason := states(token.Status.Conditions, registrationv1alpha1.TokenConditionReady)
		expires := "never"
		if token.Status.Expires != nil {
			expires = r.ago(token.Status.Expires.Time)
		}
		rank := rankOf(cells[0])
		if ready := meta.FindStatusCondition(token.Status.Conditions, registrationv1alpha1.TokenConditionReady); ready != nil &&
			(ready.Reason == registrationv1alpha1.TokenReasonUseLimitReached || ready.Reason == registrationv1alpha1.PreviousUseLimitReached) {
			rank = healthy // A used token has served its purpose.
		}
		s.rows = append(s.rows, row{rank: rank, cells: []string{token.Namespace, token.Name, cells[0], expires, reason}})
	}
	return s, err
}

// registrations lists those that are not granted.
func (r *Reporter) registrations(ctx context.Context) (section, error) {
	s := section{title: "Pending or rejected registrations", head: []string{"NAMESPACE", "CREATED", "REASON"}}
	var requests registrationv1alpha1.ClusterRegistrationList
	note, err := r.list(ctx, &requests)
	s.note = note
	for i := range requests.Items {
		request := &requests.Items[i]
		if request.Status.Granted {
			continue
		}
		_, reason := states(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
		s.rows = append(s.rows, row{cells: []string{request.Namespace, r.ago(request.CreationTimestamp.Time), cmp.Or(reason, "pending: no gateway has processed it")}})
	}
	return s, err
}

// imports lists the Clusters on which the hub failed to install an agent.
func (r *Reporter) imports(ctx context.Context) (section, error) {
	s := section{title: "Failed imports", head: []string{"NAMESPACE", "CLUSTER", "REASON"}}
	var clusters registrationv1alpha1.ClusterList
	note, err := r.list(ctx, &clusters)
	s.note = note
	for i := range clusters.Items {
		of := &clusters.Items[i]
		for _, c := range of.Status.Conditions {
			if c.Type == registrationv1alpha1.ClusterConditionImported && c.Status == corev1.ConditionFalse {
				s.rows = append(s.rows, row{cells: []string{of.Namespace, of.Name, c.Reason + ": " + c.Message}})
			}
		}
	}
	return s, err
}

// accounts lists the ManagedServiceAccounts whose token is missing or expires soon.
func (r *Reporter) accounts(ctx context.Context) (section, error) {
	s := section{title: "Service-account tokens that are missing or expire within an hour", head: []string{"NAMESPACE", "NAME", "REPORTED", "EXPIRES", "REASON"}}
	var accounts authenticationv1beta1.ManagedServiceAccountList
	note, err := r.list(ctx, &accounts)
	valid := 0
	for i := range accounts.Items {
		account := &accounts.Items[i]
		cells, reason := states(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
		expires := ptr.Deref(account.Status.ExpirationTimestamp, metav1.Time{}).Time
		if cells[0] == string(metav1.ConditionTrue) && expires.Sub(r.Clock.Now()) > expiresSoon {
			valid++
			continue
		}
		s.rows = append(s.rows, row{rank: rankOf(cells[0]), cells: []string{account.Namespace, account.Name, cells[0], r.ago(expires), reason}})
	}
	s.note = joined(note, fmt.Sprintf("valid tokens: %d", valid))
	return s, err
}

// placements lists the placements that are not available, with each kind of problem and the first
// member and object that has it.
func (r *Reporter) placements(ctx context.Context) (section, error) {
	s := section{title: "Placements that are not available", head: []string{"PLACEMENT", "CONDITION", "REASON", "REMEDY"}}
	all, note, err := r.allPlacements(ctx)
	if err != nil {
		return s, err
	}
	available := 0
	for _, placement := range all {
		rows := placementRows(placement)
		if len(rows) == 0 {
			available++
		}
		s.rows = append(s.rows, rows...)
	}
	s.note = joined(note, fmt.Sprintf("available placements: %d", available))
	return s, nil
}

func placementRows(placement placementv1beta1.PlacementObject) []row {
	name := klog.KObj(placement).String()
	var rows []row
	for _, t := range problems.Of(placement) {
		rank := failing
		if t.Waits {
			rank = pending
		}
		rows = append(rows, row{rank: rank, cells: []string{name, t.Condition, t.String(), explain.Remedy(t.Message, t.Object, t.Member, name)}})
	}
	if len(rows) > 0 {
		return rows
	}
	conditions := placement.GetStatus().Conditions
	if len(conditions) == 0 {
		return []row{{rank: pending, cells: []string{name, "-", "no gateway has processed the placement", "check under GATEWAYS that a gateway is the leader"}}}
	}
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			return []row{{rank: pending, cells: []string{name, c.Type + "=" + string(c.Status), c.Reason + ": " + c.Message, explain.Remedy(c.Message, "", "", name)}}}
		}
	}
	return nil
}

// warnings lists the latest warning events of the fleet.
func (r *Reporter) warnings(ctx context.Context) (section, error) {
	s := section{title: "Recent warning events", head: []string{"LAST SEEN", "COUNT", "OBJECT", "MESSAGE"}}
	var events corev1.EventList
	note, err := r.list(ctx, &events, client.MatchingFields{"type": corev1.EventTypeWarning})
	if err != nil {
		return s, err
	}
	ours := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning || !ofTheFleet(&e, r.Namespace) })
	slices.SortStableFunc(ours, func(a, b corev1.Event) int { return lastSeen(&b).Compare(lastSeen(&a)) })
	const latest = 20
	for i := range ours[:min(len(ours), latest)] {
		e := &ours[i]
		count := max(e.Count, 1)
		if e.Series != nil {
			count = e.Series.Count
		}
		s.rows = append(s.rows, row{cells: []string{
			r.ago(lastSeen(e)), fmt.Sprint(count), e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, e.Reason + ": " + e.Message,
		}})
	}
	s.note = note
	return s, nil
}

// ofTheFleet is true for events about the fleet's kinds, in the gateway's namespace and in those of
// members.
func ofTheFleet(e *corev1.Event, namespace string) bool {
	group, _, _ := strings.Cut(e.InvolvedObject.APIVersion, "/")
	groups := []string{
		clusterv1beta1.GroupName, placementv1beta1.GroupName, registrationv1alpha1.GroupName, authenticationv1beta1.GroupVersion.Group, gatewayv1alpha1.GroupVersion.Group,
	}
	return e.Namespace == namespace || strings.HasPrefix(e.Namespace, clusterv1beta1.MemberNamespacePrefix) || slices.Contains(groups, group)
}

func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return e.CreationTimestamp.Time
}

// rankOf ranks the status of a condition.
func rankOf(status string) int {
	switch status {
	case string(metav1.ConditionTrue):
		return healthy
	case "-":
		return pending
	}
	return failing
}

// joined joins the notes that are not empty.
func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}
