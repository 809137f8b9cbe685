// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// namedLeaving limits the clusters in a message.
const namedLeaving = 5

// baselines remember the decisions that sets follow. The zero value is ready for use. They are not
// stored: after a restart a large removal waits for a confirmation whatever its cause.
type baselines struct {
	mu    sync.Mutex // guards known
	known map[types.NamespacedName]map[string]baseline
}

// baseline is the decision of one Placement.
type baseline struct {
	// version of the Placement's spec for which the clusters were decided: the one when they last
	// changed, or a later one whose decision is the same.
	version  string
	clusters string
}

func (b *baselines) of(set types.NamespacedName, placement string) (baseline, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, known := b.known[set][placement]
	return was, known
}

func (b *baselines) follow(set types.NamespacedName, placement string, now baseline, settled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[types.NamespacedName]map[string]baseline{}
	}
	if b.known[set] == nil {
		b.known[set] = map[string]baseline{}
	}
	if settled || b.known[set][placement].clusters != now.clusters {
		b.known[set][placement] = now
	}
}

func (b *baselines) forget(set types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, set)
}

// suspendRemoval says why the clusters of leaving keep their ManifestWorks for now, out of all that
// have one; empty if they need not. A Placement can lose many clusters although nobody has changed
// it: an outage of the hub's load balancer taints every cluster as unreachable, at once or one after
// the other.
func (r *Reconciler) suspendRemoval(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, p *placed, leaving []*workv1.ManifestWork, all int) (string, error) {
	key, now := client.ObjectKeyFromObject(set), baseline{version: p.decided.version, clusters: placementv1beta1.RemovalToken(p.decided.clusters.UnsortedList())}
	was, known := r.baselines.of(key, p.name)
	expected := known && (was.clusters == now.clusters || was.version != now.version)
	if !expected && len(leaving) > 0 {
		names, err := r.withoutDeleted(ctx, leaving)
		if err != nil {
			return "", err
		}
		recent := r.recentRemovals(set, p, names)
		token, suspends := placementv1beta1.SuspendsRemoval(set, names, all, len(recent))
		switch {
		case suspends:
			return suspended(set, p.name, names, all, len(recent), token), nil
		case placementv1beta1.RemovalConfirmed(set, token):
			recent = nil // The user confirmed it knowing of the previous ones.
		default:
			recent.Add(r.Clock.Now(), names...)
		}
		if err := r.noteRemovals(ctx, set, recent); err != nil {
			return "", err
		}
	}
	r.baselines.follow(key, p.name, now, p.decided.settled)
	return "", nil
}

// recentRemovals are the recorded removals of clusters that are neither selected again nor leaving now.
func (r *Reconciler) recentRemovals(set *workv1alpha1.ManifestWorkReplicaSet, p *placed, leaving []string) placementv1beta1.RecentRemovals {
	now := objects.RecordTime(set.Status.Conditions, r.Clock.Now())
	recent := placementv1beta1.ParseRecentRemovals(set.Annotations[placementv1beta1.RecentRemovalsAnnotation], now)
	recent.Forget(p.decided.clusters.UnsortedList()...)
	recent.Forget(leaving...)
	return recent
}

// noteRemovals writes the record. The rest of the set, which is complete and not as stored, stays.
func (r *Reconciler) noteRemovals(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, recent placementv1beta1.RecentRemovals) error {
	stored := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, Annotations: set.Annotations, ResourceVersion: set.ResourceVersion,
	}}
	if err := objects.NoteRemovals(ctx, r.Client, stored, recent, "ManifestWorkReplicaSet"); err != nil {
		return err
	}
	set.Annotations, set.ResourceVersion = stored.Annotations, stored.ResourceVersion
	return nil
}

// withoutDeleted names the clusters of ManifestWorks, except those that left the hub.
func (r *Reconciler) withoutDeleted(ctx context.Context, works []*workv1.ManifestWork) ([]string, error) {
	var names []string
	for _, work := range works {
		if r.limited.Load() {
			cluster := &clusterv1.ManagedCluster{}
			exists, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: work.Namespace}, cluster, "reading ManagedCluster %q", work.Namespace)
			if err != nil {
				return nil, err
			}
			if !exists || cluster.DeletionTimestamp != nil {
				continue
			}
		}
		names = append(names, work.Namespace)
	}
	slices.Sort(names)
	return names, nil
}

func suspended(set *workv1alpha1.ManifestWorkReplicaSet, placement string, leaving []string, all, recent int, token string) string {
	return fmt.Sprintf("Placement %q no longer selects %d of %d clusters%s although its spec did not change: %s. They keep their ManifestWorks and get no updates. "+
		"Confirm the removal with: kubectl annotate manifestworkreplicaset %s --namespace=%s --overwrite %s=%s",
		placement, len(leaving), all, objects.AfterRecent(recent), refusal.Names(leaving, namedLeaving), set.Name, set.Namespace, placementv1beta1.ConfirmRemovalAnnotation, token)
}

// suspendedCondition is the condition about all suspended removals of a set; nil if there is none.
func suspendedCondition(all []*placed) *metav1.Condition {
	var messages []string
	for _, p := range all {
		if p.suspended != "" {
			messages = append(messages, p.suspended)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return &metav1.Condition{
		Type: placementv1beta1.ConditionRemovalSuspended, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonConfirmationRequired, Message: strings.Join(messages, "; "),
	}
}
