// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// inMemory lists without copies, because nothing here is changed.
func inMemory(ctx context.Context, from client.Reader, into client.ObjectList) error {
	if err := from.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	return nil
}

// count sets every state, including those without objects.
func count(vec *prometheus.GaugeVec, states []string, of map[string]int) {
	for _, state := range states {
		vec.WithLabelValues(state).Set(float64(of[state]))
	}
}

func (s series) ofMembers(ctx context.Context, from client.Reader) error {
	var list clusterv1beta1.MemberClusterList
	if err := inMemory(ctx, from, &list); err != nil {
		return err
	}
	in := map[string]int{}
	for i := range list.Items {
		member := &list.Items[i]
		state := stateOfMember(member)
		in[state]++
		joined := 0.0
		if state == "joined" || state == "unhealthy" {
			joined = 1
		}
		s.joined.WithLabelValues(member.Name).Set(joined)
	}
	count(s.members, []string{"joined", "unhealthy", "silent", "waiting", "leaving"}, in)
	return nil
}

func stateOfMember(member *clusterv1beta1.MemberCluster) string {
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	joined := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionJoined)
	_, silent := member.SilentSince()
	switch {
	case member.DeletionTimestamp != nil, joined != nil && joined.Status == metav1.ConditionFalse:
		return "leaving"
	case silent:
		return "silent"
	case agent == nil, joined == nil:
		return "waiting"
	case meta.IsStatusConditionFalse(agent.Conditions, clusterv1beta1.ConditionHealthy):
		return "unhealthy"
	}
	return "joined"
}

func (s series) ofPlacements(ctx context.Context, from client.Reader) error {
	var wide placementv1beta1.ClusterResourcePlacementList
	var narrow placementv1beta1.ResourcePlacementList
	for _, list := range []client.ObjectList{&wide, &narrow} {
		if err := inMemory(ctx, from, list); err != nil {
			return err
		}
	}
	for i := range wide.Items {
		s.ofPlacement(&wide.Items[i])
	}
	for i := range narrow.Items {
		s.ofPlacement(&narrow.Items[i])
	}
	return nil
}

func (s series) ofPlacement(placement placementv1beta1.PlacementObject) {
	at := stateCondition(placement)
	s.placements.WithLabelValues(placement.GetNamespace(), placement.GetName(), strconv.FormatInt(placement.GetGeneration(), 10),
		at.Type, string(at.Status), at.Reason).Set(float64(at.LastTransitionTime.Unix()))
	if waitsForPeople(placement, at) {
		s.waiting.WithLabelValues(placement.GetNamespace(), placement.GetName()).Set(1)
	}
}

// waitsForPeople is true for a placement that has stopped only because a person asked for it. It is
// false for one that no gateway has reconciled since it was changed.
func waitsForPeople(placement placementv1beta1.PlacementObject, at metav1.Condition) bool {
	if at.ObservedGeneration != placement.GetGeneration() {
		return false
	}
	policy := placement.GetSpec().Policy
	namesNobody := policy != nil && policy.PlacementType == placementv1beta1.PickFixed && len(policy.ClusterNames) == 0
	return at.Reason == placementv1beta1.ReasonRolloutControlledByExternalController || namesNobody && at.Reason == placementv1beta1.ReasonSchedulePending
}

// stateCondition is the first condition that keeps a placement from being completed, or one that says
// that nothing does.
func stateCondition(placement placementv1beta1.PlacementObject) metav1.Condition {
	conditions := placement.GetStatus().Conditions
	scheduled := placement.ConditionType(placementv1beta1.ConditionScheduled)
	var last metav1.Condition
	for _, kind := range []string{
		placementv1beta1.ConditionScheduled, placementv1beta1.ConditionRolloutStarted, placementv1beta1.ConditionOverridden,
		placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable,
		placementv1beta1.ConditionDiffReported,
	} {
		c := meta.FindStatusCondition(conditions, placement.ConditionType(kind))
		switch {
		case c == nil:
			continue // Some belong to other strategies, and conditions after one that is not True are not set.
		case c.Status != metav1.ConditionTrue || c.ObservedGeneration != placement.GetGeneration():
			return *c
		}
		last = *c
	}
	if last.Type == "" {
		return metav1.Condition{Type: scheduled, Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonSchedulePending,
			LastTransitionTime: placement.GetCreationTimestamp()}
	}
	return metav1.Condition{Type: "Completed", Status: metav1.ConditionTrue, Reason: "Completed", LastTransitionTime: last.LastTransitionTime}
}

func (s series) ofWorks(ctx context.Context, from client.Reader) error {
	var list placementv1beta1.WorkList
	if err := inMemory(ctx, from, &list); err != nil {
		return err
	}
	in := map[string]int{}
	for i := range list.Items {
		in[stateOfWork(&list.Items[i])]++
	}
	count(s.works, []string{"available", "unavailable", "failed", "pending"}, in)
	return nil
}

func stateOfWork(work *placementv1beta1.Work) string {
	conditionStatus := func(kind string) metav1.ConditionStatus {
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.ObservedGeneration != work.Generation {
			return metav1.ConditionUnknown
		}
		return c.Status
	}
	switch conditionStatus(placementv1beta1.ConditionApplied) {
	case metav1.ConditionFalse:
		return "failed"
	case metav1.ConditionTrue:
		if conditionStatus(placementv1beta1.ConditionAvailable) == metav1.ConditionTrue {
			return "available"
		}
		return "unavailable"
	}
	switch conditionStatus(placementv1beta1.ConditionDiffReported) { // The strategy is to report.
	case metav1.ConditionFalse:
		return "failed"
	case metav1.ConditionTrue:
		return "available"
	}
	return "pending"
}

func (s series) ofRuns(ctx context.Context, from client.Reader) error {
	var wide placementv1beta1.ClusterStagedUpdateRunList
	var narrow placementv1beta1.StagedUpdateRunList
	for _, list := range []client.ObjectList{&wide, &narrow} {
		if err := inMemory(ctx, from, list); err != nil {
			return err
		}
	}
	in := map[string]int{}
	for i := range wide.Items {
		s.ofRun(&wide.Items[i], in)
	}
	for i := range narrow.Items {
		s.ofRun(&narrow.Items[i], in)
	}
	count(s.runs, []string{"new", "running", "waiting", "stuck", "stopped", "succeeded", "failed"}, in)
	return nil
}

// ofRun reports the standing of a run, and counts its state.
func (s series) ofRun(run placementv1beta1.UpdateRunObject, in map[string]int) {
	in[stateOfRun(run.GetStatus().Conditions)]++
	at := stateConditionOfRun(run)
	s.runStates.WithLabelValues(run.GetNamespace(), run.GetName(), string(run.GetSpec().State), at.Type, string(at.Status), at.Reason).
		Set(float64(at.LastTransitionTime.Unix()))
}

// stateConditionOfRun is the last known condition of a run: each is set only after the previous one.
func stateConditionOfRun(run placementv1beta1.UpdateRunObject) metav1.Condition {
	for _, kind := range []string{
		placementv1beta1.ConditionUpdateRunSucceeded, placementv1beta1.ConditionUpdateRunProgressing, placementv1beta1.ConditionUpdateRunInitialized,
	} {
		if c := meta.FindStatusCondition(run.GetStatus().Conditions, kind); c != nil {
			return *c
		}
	}
	return metav1.Condition{Type: placementv1beta1.ConditionUpdateRunInitialized, Status: metav1.ConditionUnknown, LastTransitionTime: run.GetCreationTimestamp()}
}

func stateOfRun(conditions []metav1.Condition) string {
	switch {
	case meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionUpdateRunSucceeded):
		return "succeeded"
	case meta.IsStatusConditionFalse(conditions, placementv1beta1.ConditionUpdateRunSucceeded),
		meta.IsStatusConditionFalse(conditions, placementv1beta1.ConditionUpdateRunInitialized):
		return "failed"
	}
	progressing := meta.FindStatusCondition(conditions, placementv1beta1.ConditionUpdateRunProgressing)
	if progressing == nil {
		return "new"
	}
	switch progressing.Reason {
	case placementv1beta1.ReasonUpdateRunWaiting:
		return "waiting"
	case placementv1beta1.ReasonUpdateRunStuck:
		return "stuck"
	case placementv1beta1.ReasonUpdateRunStopping, placementv1beta1.ReasonUpdateRunStopped:
		return "stopped"
	}
	return "running"
}

func (s series) ofEvictions(ctx context.Context, from client.Reader) error {
	var list placementv1beta1.ClusterResourcePlacementEvictionList
	if err := inMemory(ctx, from, &list); err != nil {
		return err
	}
	for i := range list.Items {
		conditions := list.Items[i].Status.Conditions
		valid := meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionEvictionValid)
		invalid := meta.IsStatusConditionFalse(conditions, placementv1beta1.ConditionEvictionValid)
		ended, value := invalid || meta.FindStatusCondition(conditions, placementv1beta1.ConditionEvictionExecuted) != nil, 0.0
		if ended {
			value = 1
		}
		s.evictions.WithLabelValues(list.Items[i].Name, strconv.FormatBool(ended), strconv.FormatBool(valid)).Set(value)
	}
	return nil
}

func (s series) ofAccounts(ctx context.Context, from client.Reader) error {
	var list authenticationv1beta1.ManagedServiceAccountList
	if err := inMemory(ctx, from, &list); err != nil {
		return err
	}
	for i := range list.Items {
		account := &list.Items[i]
		member, ok := clusterv1beta1.MemberOfNamespace(account.Namespace)
		if !ok {
			continue // It belongs to a cluster that is not ours.
		}
		expires, lifetime := 0.0, 0.0
		if at := account.Status.ExpirationTimestamp; at != nil {
			expires = float64(at.Unix())
			if ref := account.Status.TokenSecretRef; ref != nil {
				lifetime = at.Sub(ref.LastRefreshTimestamp.Time).Seconds()
			}
		}
		s.tokens.WithLabelValues(member, account.Name).Set(expires)
		s.lifetimes.WithLabelValues(member, account.Name).Set(lifetime)
	}
	return nil
}
