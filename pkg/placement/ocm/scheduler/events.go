// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/addonscore"
)

const (
	// maxScores limits the text of an event about scores, in bytes: an event may have 1024.
	maxScores = 1000
	// more is the end of a text that was cut.
	more = "......"
)

func (w *round) recordCreated(decision *ocmclusterv1beta1.PlacementDecision) {
	w.Recorder.Eventf(w.placement, decision, corev1.EventTypeNormal, ocmclusterv1beta1.EventDecisionCreate, "DecisionCreated",
		"Decision %s is created with placement %s in namespace %s", decision.Name, w.placement.Name, w.placement.Namespace)
}

func (w *round) recordUpdated(decision *ocmclusterv1beta1.PlacementDecision) {
	text := fmt.Sprintf("Decision %s is updated with placement %s in namespace %s", decision.Name, w.placement.Name, w.placement.Namespace)
	kind := corev1.EventTypeNormal
	if warning := w.result.expired(); warning != "" {
		kind, text = corev1.EventTypeWarning, text+": "+warning
	}
	w.Recorder.Eventf(w.placement, decision, kind, ocmclusterv1beta1.EventDecisionUpdate, "DecisionUpdated", "%s", untrusted.Truncate(text, maxScores))
}

func (w *round) recordDeleted(decision *ocmclusterv1beta1.PlacementDecision) {
	w.Recorder.Eventf(w.placement, decision, corev1.EventTypeNormal, ocmclusterv1beta1.EventDecisionDelete, "DecisionDeleted",
		"Decision %s is deleted with placement %s in namespace %s", decision.Name, w.placement.Name, w.placement.Namespace)
}

func (w *round) recordScores() {
	if text := w.result.scores(); text != "" {
		w.Recorder.Eventf(w.placement, w.lastChanged, corev1.EventTypeNormal, ocmclusterv1beta1.EventScoreUpdate, "ScoreUpdated", "%s", text)
	}
}

// scores are the scores of clusters, the best first, each followed by a space, as far as there is
// room.
func (r *result) scores() string {
	var text strings.Builder
	for _, places := range [][]framework.Place{r.ranked.Picked, r.ranked.Outscored} {
		for _, place := range places {
			next := fmt.Sprintf("%s:%d ", place.Cluster.Name, place.Score)
			if text.Len()+len(next) > maxScores {
				return text.String() + more
			}
			text.WriteString(next)
		}
	}
	return text.String()
}

// expired names scores that would count if they were still valid.
func (r *result) expired() string {
	for _, weighted := range r.parsed.scorers {
		scorer, ok := weighted.Scorer.(addonscore.Scorer)
		if !ok {
			continue
		}
		var names []string
		for _, places := range [][]framework.Place{r.ranked.Picked, r.ranked.Outscored} {
			for _, place := range places {
				if sheet, there := place.Cluster.Scores[scorer.Sheet]; there && !sheet.Valid(r.fleet.Now) {
					names = append(names, place.Cluster.Name+"/"+scorer.Sheet)
				}
			}
		}
		if len(names) > 0 {
			return fmt.Sprintf("AddOnPlacementScores %s expired in plugin %s", strings.Join(names, " "), scorer.Name())
		}
	}
	return ""
}
