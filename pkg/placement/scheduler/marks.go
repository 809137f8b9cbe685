// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Marks are the labels and taints that users set on the ManagedCluster of a member. The UID is the
// MemberCluster's; it is empty if the ManagedCluster mirrors no member.
type Marks func(*clusterv1.ManagedCluster) (member types.UID, labels map[string]string, taints []clusterv1.Taint)

// mark is the relevant content of one ManagedCluster.
type mark struct {
	member types.UID
	labels map[string]string
	taints []framework.Taint
}

// markOf translates the taints to NoSchedule taints, like all taints of a MemberCluster.
func (m Marks) markOf(cluster *clusterv1.ManagedCluster) mark {
	var marked mark
	var taints []clusterv1.Taint
	marked.member, marked.labels, taints = m(cluster)
	for _, taint := range taints {
		if taint.Effect != clusterv1.TaintEffectPreferNoSelect {
			marked.taints = append(marked.taints, framework.Taint{Key: taint.Key, Value: taint.Value, Effect: string(corev1.TaintEffectNoSchedule)})
		}
	}
	return marked
}

// list returns all ManagedClusters by name; none if Marks is nil.
func (m Marks) list(ctx context.Context, reader client.Reader) (map[string]*clusterv1.ManagedCluster, error) {
	if m == nil {
		return nil, nil
	}
	clusters := &clusterv1.ManagedClusterList{}
	// Nothing below changes the objects.
	if err := reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusters: %w", err)
	}
	named := make(map[string]*clusterv1.ManagedCluster, len(clusters.Items))
	for i := range clusters.Items {
		named[clusters.Items[i].Name] = &clusters.Items[i]
	}
	return named, nil
}

// clusterOf translates a member with the marks of its ManagedCluster, if it exists. The member's own
// values take precedence.
func (m Marks) clusterOf(member *clusterv1beta1.MemberCluster, managed *clusterv1.ManagedCluster) framework.Cluster {
	cluster := ClusterOf(member)
	if managed == nil {
		return cluster
	}
	marked := m.markOf(managed)
	if marked.member != member.UID {
		return cluster
	}
	if len(marked.labels) > 0 {
		labels := maps.Clone(marked.labels)
		maps.Copy(labels, cluster.Labels)
		cluster.Labels = labels
	}
	cluster.Taints = append(cluster.Taints, marked.taints...)
	return cluster
}

// watchMarks queues all placements when the marks of a ManagedCluster change.
func (r *Reconciler) watchMarks(b *builder.Builder, all *memberHandler) *builder.Builder {
	if r.Marks == nil {
		return b
	}
	changed := func(was, is *clusterv1.ManagedCluster) bool {
		old, now := r.Marks.markOf(was), r.Marks.markOf(is)
		return old.member != now.member || !maps.Equal(old.labels, now.labels) || !slices.Equal(old.taints, now.taints)
	}
	return b.Watches(&clusterv1.ManagedCluster{},
		handler.Funcs{
			UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q queue) { all.all(ctx, q) },
			DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { all.all(ctx, q) },
		},
		builder.WithPredicates(enqueue.Updates(changed)))
}
