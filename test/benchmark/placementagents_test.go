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

// beat is how often an agent renews its Lease though nothing happens, and beatsPerReport
// how many of these it takes until it reports too: as the product's agents do.
const (
	beat           = time.Minute
	beatsPerReport = 5
)

// agents write what the agents of all members would: they hold a Work with a finalizer,
// and say for each of its generations that all is well. Of what is in it they know nothing.
type agents struct {
	hub client.WithWatch
	// members have reported, works were seen.
	members, works *names
	// wrote counts what was written for Works.
	wrote atomic.Int64

	mu sync.Mutex // guards what follows
	// held are the generations that were reported of Works.
	held map[client.ObjectKey]int64
	// changed has the Works that are of the snapshot that is awaited of their placement.
	changed *names
	awaited map[string]int
}

func newAgents(hub client.WithWatch) *agents {
	return &agents{hub: hub, members: newNames(), works: newNames(), held: map[client.ObjectKey]int64{}, changed: newNames()}
}

// start runs until the context ends.
func (a *agents) start(ctx context.Context, running *sync.WaitGroup) {
	// Both queues have room for all that can come, so that nobody waits who watches.
	const room = 100_000
	reports, works := make(chan pulse, room), make(chan *metav1.PartialObjectMetadata, room)
	// The gateway makes what a member's agent reports with; it begins when that is there.
	see(ctx, running, a.hub, metadataOf(clusterv1beta1.GroupVersion.WithKind("InternalMemberClusterList")), func(object client.Object) {
		if a.members.add(object.GetName()) {
			reports <- pulse{member: object.GetName()}
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
					// Who fails is seen: the benchmark does not get on.
					_ = a.beat(ctx, b)
					time.AfterFunc(beat, func() { reports <- pulse{b.member, b.nth + 1} })
				case work := <-works:
					_ = a.settle(ctx, work)
				}
			}
		})
	}
}

// expect awaits that the Works of some placements are of a snapshot each.
func (a *agents) expect(snapshots map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited, a.changed = snapshots, newNames()
}

// changes is how many are.
func (a *agents) changes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed.len()
}

// notice reports whether there is something to say of a Work.
func (a *agents) notice(work *metav1.PartialObjectMetadata) bool {
	if !strings.HasPrefix(work.Namespace, clusterv1beta1.MemberNamespace("")) {
		return false // The bare client's.
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
	if a.held[key] >= work.Generation {
		return false
	}
	a.held[key] = work.Generation
	return true
}

// settle says of a Work that all is well.
func (a *agents) settle(ctx context.Context, work *metav1.PartialObjectMetadata) error {
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	if len(work.Finalizers) == 0 {
		hold := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, placementv1beta1.WorkCleanupFinalizer)
		if err := a.hub.Patch(ctx, target, client.RawPatch(types.MergePatchType, hold)); err != nil {
			return client.IgnoreNotFound(err)
		}
		a.count(work)
	}
	status, err := wellDone(work.Generation)
	if err != nil {
		return err
	}
	a.count(work)
	return client.IgnoreNotFound(a.hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, status)))
}

// count counts a write for a Work that is measured.
func (a *agents) count(work *metav1.PartialObjectMetadata) {
	if isMeasured(work) {
		a.wrote.Add(1)
	}
}

// wellDone is what an agent says of a Work once all is well.
func wellDone(generation int64) ([]byte, error) {
	now := metav1.Now()
	condition := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: generation, LastTransitionTime: now, Message: "All is as it should be"}
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

// pulse is the nth heartbeat of a member, from 0.
type pulse struct {
	member string
	nth    int
}

// beat says that a member lives, and now and then how it is.
func (a *agents) beat(ctx context.Context, b pulse) error {
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

// report says that a member has joined, and is well.
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
