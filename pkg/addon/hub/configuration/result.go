// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// changes are functions that bring the status of each add-on up to date, by add-on. Most add-ons are, and those
// are left out.
func (g *graph) changes() map[*addonv1alpha1.ManagedClusterAddOn]func(*addonv1alpha1.ManagedClusterAddOnStatus) {
	all := map[*addonv1alpha1.ManagedClusterAddOn]func(*addonv1alpha1.ManagedClusterAddOnStatus){}
	for _, n := range g.nodes {
		turn := sets.New(n.plan.Turn...)
		for cluster, addOn := range n.addOns {
			if change := n.change(cluster, addOn, turn.Has(cluster)); change != nil {
				all[addOn] = change
			}
		}
	}
	for cluster, addOn := range g.defaults.addOns {
		if change := g.defaults.change(cluster, addOn, true); change != nil {
			all[addOn] = change
		}
	}
	return all
}

// change gives an add-on its configurations if it is its turn. Otherwise it says that they are
// waiting. It returns nil if the status says all of this already.
func (n *node) change(cluster string, addOn *addonv1alpha1.ManagedClusterAddOn, turn bool) func(*addonv1alpha1.ManagedClusterAddOnStatus) {
	_, given := n.statuses[cluster]
	if n.held && !given {
		return nil
	}
	condition := metav1.Condition{
		Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue,
		Reason: addonv1alpha1.ReasonConfigurationsConfigured, Message: "Configurations configured",
	}
	if !given && !turn {
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationsNotConfigured
		condition.Message = "Configurations updated and not configured yet"
	}
	gives := !given && turn
	if has := meta.FindStatusCondition(addOn.Status.Conditions, condition.Type); !gives && has != nil &&
		has.Status == condition.Status && has.Reason == condition.Reason && has.Message == condition.Message {
		return nil
	}
	return func(status *addonv1alpha1.ManagedClusterAddOnStatus) {
		if gives {
			status.ConfigReferences = merged(status.ConfigReferences, referencesOf(addOn, n.desired))
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

// counts are the clusters of a Placement by the state of their rollout. Those whose add-on does not
// exist yet are among the configured ones only, so that the rollout does not complete before it exists.
type counts struct {
	selected, configured, progressing, done, failed, timedOut int
}

func (n *node) count(now time.Time) counts {
	c := counts{selected: n.selected, configured: n.own, timedOut: len(n.plan.TimedOut)}
	turn, timedOut := sets.New(n.plan.Turn...), sets.New(n.plan.TimedOut...)
	for cluster := range n.addOns {
		status, given := n.statuses[cluster]
		switch {
		case !given && !turn.Has(cluster):
		case !given, status.State != rolloutstrategy.Succeeded && !timedOut.Has(cluster), n.isSoaking(status, now):
			c.progressing++
		case status.State == rolloutstrategy.Succeeded:
			c.done++
		case status.State == rolloutstrategy.Failed:
			c.failed++
		}
	}
	return c
}

// isSoaking reports whether a successful add-on must stay so for longer before it counts.
func (n *node) isSoaking(status rolloutstrategy.ClusterRolloutStatus, now time.Time) bool {
	return status.State == rolloutstrategy.Succeeded && n.how.Type != rolloutstrategy.All && n.how.Type != "" && n.how.MinSuccessTime > 0 &&
		now.Before(status.Since.Add(n.how.MinSuccessTime))
}

// report writes the progress of a Placement. The messages are those of Open Cluster Management,
// which clients compare.
func report(progression *addonv1alpha1.InstallProgression, refused string, c counts) {
	condition := metav1.Condition{Type: addonv1alpha1.ConditionProgressing}
	switch {
	case refused != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, addonv1alpha1.ReasonFailed, refused
	case c.configured == 0 || c.done != c.configured:
		condition.Status, condition.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonProgressing
		condition.Message = fmt.Sprintf("selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.",
			c.selected, c.progressing+c.done, c.configured, c.failed, c.timedOut)
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonCompleted
		condition.Message = fmt.Sprintf("selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.",
			c.selected, c.done, c.configured, c.failed, c.timedOut)
		for i := range progression.ConfigReferences {
			reference := &progression.ConfigReferences[i]
			reference.LastAppliedConfig, reference.LastKnownGoodConfig = reference.DesiredConfig.DeepCopy(), reference.DesiredConfig.DeepCopy()
		}
	}
	meta.SetStatusCondition(&progression.Conditions, condition)
}
