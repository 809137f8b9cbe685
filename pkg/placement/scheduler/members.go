// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// memberCache holds the members in the framework's types. It translates only members that changed since
// the last call, because most members of a large fleet did not change. The zero value is ready for use.
type memberCache struct {
	mu sync.Mutex // Guards known.
	// known is the last translation of each member, by name.
	known map[string]translation
}

type translation struct {
	version string
	cluster framework.Cluster
}

// clusters lists all members, with the marks of their ManagedClusters.
func (r *memberCache) clusters(ctx context.Context, reader client.Reader, marks Marks) ([]framework.Cluster, error) {
	managed, err := marks.list(ctx, reader)
	if err != nil {
		return nil, err
	}
	var members clusterv1beta1.MemberClusterList
	// Nothing below changes the objects.
	if err := reader.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[string]translation, len(members.Items))
	clusters := make([]framework.Cluster, 0, len(members.Items))
	for i := range members.Items {
		member := &members.Items[i]
		version := string(member.UID) + "/" + member.ResourceVersion
		if managed[member.Name] != nil {
			version += "/" + managed[member.Name].ResourceVersion
		}
		t := r.known[member.Name]
		if t.version != version {
			t = translation{version: version, cluster: marks.clusterOf(member, managed[member.Name])}
		}
		known[member.Name] = t
		clusters = append(clusters, t.cluster)
	}
	r.known = known
	return clusters, nil
}

// size is the number of members in the last list.
func (r *memberCache) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}

// ClusterOf translates a member for the framework.
func ClusterOf(member *clusterv1beta1.MemberCluster) framework.Cluster {
	cluster := framework.Cluster{
		Name: member.Name, Labels: member.Labels,
		Leaving:    member.DeletionTimestamp != nil,
		Properties: propertiesOf(&member.Status),
		Agent:      agentOf(member),
	}
	if meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionNamespacesCollected) {
		cluster.Namespaces = member.Status.Namespaces
		if cluster.Namespaces == nil {
			cluster.Namespaces = map[string]string{}
		}
	}
	for _, t := range member.Spec.Taints {
		cluster.Taints = append(cluster.Taints, framework.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return cluster
}

func agentOf(member *clusterv1beta1.MemberCluster) framework.Agent {
	reported := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if reported == nil {
		return framework.Agent{}
	}
	agent := framework.Agent{
		Reported:      true,
		LastHeartbeat: reported.LastReceivedHeartbeat.Time,
		Heard:         member.IsJoined(),
		Joined:        meta.IsStatusConditionTrue(reported.Conditions, clusterv1beta1.ConditionJoined),
	}
	if health := meta.FindStatusCondition(reported.Conditions, clusterv1beta1.ConditionHealthy); health != nil {
		agent.Health, agent.HealthSince = framework.Unhealthy, health.LastTransitionTime.Time
		if health.Status == metav1.ConditionTrue {
			agent.Health = framework.Healthy
		}
	}
	return agent
}

// propertiesOf merges reported properties and resource properties into one map.
func propertiesOf(status *clusterv1beta1.MemberClusterStatus) map[string]string {
	properties := make(map[string]string, len(status.Properties))
	for name, property := range status.Properties {
		properties[string(name)] = property.Value
	}
	usage := status.ResourceUsage
	for kind, list := range map[string]corev1.ResourceList{"total-": usage.Capacity, "allocatable-": usage.Allocatable, "available-": usage.Available} {
		for name, quantity := range list {
			properties[placementv1beta1.ResourcePropertyPrefix+kind+string(name)] = quantity.String()
		}
	}
	return properties
}
