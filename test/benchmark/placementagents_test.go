// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// beat is the interval of an idle agent's Lease renewals, and beatsPerReport the number of renewals
// per report, as in the product's agents.
const (
	beat           = time.Minute
	beatsPerReport = 5
)

// agents write what the agents of all members would write: a finalizer on each Work, and a status
// for each of its generations. They do not read the manifests.
type agents struct {
	hub client.WithWatch
	// members have reported, works were seen.
	members, works *names
	// wrote counts what was written for Works.
	wrote atomic.Int64

	mu sync.Mutex // guards what follows
	// reported are the reported generations of Works.
	reported map[client.ObjectKey]int64
	// changed are the Works of the snapshot that is expected of their placement.
	changed *names
	awaited map[string]int
}

func newAgents(hub client.WithWatch) *agents {
	return &agents{hub: hub, members: newNames(), works: newNames(), reported: map[client.ObjectKey]int64{}, changed: newNames()}
}

// start runs until the context ends.
func (a *agents) start(ctx context.Context, running *sync.WaitGroup) {
	// Both queues have room for everything, so that a watch never blocks.
	const room = 100_000
	reports, works := make(chan dueBeat, room), make(chan *metav1.PartialObjectMetadata, room)
	// The gateway creates the object in which a member's agent reports. Heartbeats begin with it.
	see(ctx, running, a.hub, metadataOf(clusterv1beta1.GroupVersion.WithKind("InternalMemberClusterList")), func(object client.Object) {
		if a.members.add(object.GetName()) {
			reports <- dueBeat{member: object.GetName()}
		}
	})
	see(ctx, running, a.hub, metadataOf(placementv1beta1.GroupVersion.WithKind("WorkList")), func(object client.Object) {
		work, ok := object.(*metav1.PartialObjectMetadata)
		if ok && a.notice(work) {
			works <- work
		}
	})
	for range concurrency {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case b := <-reports:
					// An error shows because the benchmark does not complete.
					_ = a.beat(ctx, b)
					time.AfterFunc(beat, func() { reports <- dueBeat{b.member, b.nth + 1} })
				case work := <-works:
					_ = a.settle(ctx, work)
				}
			}
		})
	}
}

// expect sets the snapshots that the Works of some placements must reach.
func (a *agents) expect(snapshots map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited, a.changed = snapshots, newNames()
}

// changes returns the number of Works that have reached them.
func (a *agents) changes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed.len()
}

// notice reports whether a Work needs a status.
func (a *agents) notice(work *metav1.PartialObjectMetadata) bool {
	if !strings.HasPrefix(work.Namespace, clusterv1beta1.MemberNamespace("")) {
		return false // The Work is the bare client's.
	}
	key := client.ObjectKeyFromObject(work)
	if isMeasured(work) {
		a.works.add(key.String())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	snapshot, awaited := a.awaited[work.Labels[placementv1beta1.ParentPlacementLabel]]
	if awaited && work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel] == strconv.Itoa(snapshot) {
		a.changed.add(key.String())
	}
	if a.reported[key] >= work.Generation {
		return false
	}
	a.reported[key] = work.Generation
	return true
}

// settle reports a Work as applied and available.
func (a *agents) settle(ctx context.Context, work *metav1.PartialObjectMetadata) error {
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	if len(work.Finalizers) == 0 {
		hold := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, placementv1beta1.WorkCleanupFinalizer)
		if err := a.hub.Patch(ctx, target, client.RawPatch(types.MergePatchType, hold)); err != nil {
			return client.IgnoreNotFound(err)
		}
		a.count(work)
	}
	status, err := availableStatus(work.Generation)
	if err != nil {
		return err
	}
	a.count(work)
	return client.IgnoreNotFound(a.hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, status)))
}

// count counts a write for a measured Work.
func (a *agents) count(work *metav1.PartialObjectMetadata) {
	if isMeasured(work) {
		a.wrote.Add(1)
	}
}

// availableStatus returns the status of an applied and available Work.
func availableStatus(generation int64) ([]byte, error) {
	now := metav1.Now()
	condition := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: generation, LastTransitionTime: now, Message: "All objects available"}
	}
	var status placementv1beta1.WorkStatus
	status.Conditions = []metav1.Condition{
		condition(placementv1beta1.ConditionApplied, placementv1beta1.ReasonAllManifestsApplied),
		condition(placementv1beta1.ConditionAvailable, placementv1beta1.ReasonAllManifestsAvailable),
	}
	for i := range placedConfigMaps + 1 {
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: i, Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "shop-00", Name: fmt.Sprintf("settings-%d", i)},
			Conditions: []metav1.Condition{condition(placementv1beta1.ConditionApplied, "Applied"), condition(placementv1beta1.ConditionAvailable, "Available")},
		})
	}
	return json.Marshal(map[string]any{"status": status})
}

// dueBeat is the nth heartbeat of a member, from 0.
type dueBeat struct {
	member string
	nth    int
}

// beat renews a member's Lease, and reports its status now and then.
func (a *agents) beat(ctx context.Context, b dueBeat) error {
	if b.nth%beatsPerReport == 0 {
		if err := a.report(ctx, b.member); err != nil {
			return err
		}
	}
	renewed := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"renewTime":%q}}`,
		b.member, int(beat.Seconds()), time.Now().UTC().Format(metav1.RFC3339Micro))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace(b.member), Name: clusterv1beta1.AgentLease}}
	return a.hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, renewed))
}

// report reports a member as joined and healthy.
func (a *agents) report(ctx context.Context, name string) error {
	now := metav1.Now()
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Simulated", LastTransitionTime: now}
	}
	status := clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
		Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionJoined), condition(clusterv1beta1.ConditionHealthy)},
	}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	target := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}}
	return a.hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
}
