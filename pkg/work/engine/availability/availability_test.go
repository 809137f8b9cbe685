// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		object string
		want   State
	}{
		"a Deployment whose replicas all run the latest template": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3},
				status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`,
			want: Available,
		},
		"a Deployment without replicas wants one": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
				status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`,
			want: Available,
		},
		"a Deployment scaled to nothing": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0},
				status: {observedGeneration: 1}}`,
			want: Available,
		},
		"a Deployment that its controller has not seen": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1},
				status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`,
			want: NotYet,
		},
		"a Deployment with old replicas left": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
				status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`,
			want: NotYet,
		},
		"a Deployment with one replica too many, which is going": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
				status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 2, unavailableReplicas: 1}}`,
			want: NotYet,
		},
		"a paused Deployment whose replicas run an older template": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2, paused: true},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 2}}`,
			want: Available,
		},
		"a Deployment that was paused in the middle of a rollout": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2, paused: true},
				status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 2, unavailableReplicas: 1}}`,
			want: Available,
		},
		"a paused Deployment that never had replicas": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 2, paused: true}, status: {observedGeneration: 1}}`,
			want:   NotYet,
		},
		"a paused Deployment whose pause nobody has seen": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1, paused: true},
				status: {observedGeneration: 1, replicas: 1, availableReplicas: 1}}`,
			want: NotYet,
		},
		"a StatefulSet OnDelete whose Pods were all deleted": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: b}}`,
			want: Available,
		},
		"a StatefulSet OnDelete whose Pods run the older template": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 2, currentReplicas: 2, currentRevision: a, updateRevision: b}}`,
			want: Available,
		},
		"a StatefulSet OnDelete that waits for a Pod": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 1, updatedReplicas: 2, currentRevision: a, updateRevision: b}}`,
			want: NotYet,
		},
		"a StatefulSet OnDelete with one replica too many": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 1, updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 1, currentRevision: a, updateRevision: b}}`,
			want: NotYet,
		},
		"a StatefulSet that is updated down to its partition": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2},
				spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}},
				status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			want: Available,
		},
		"a StatefulSet whose partition counts from its first ordinal": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2},
				spec: {replicas: 3, ordinals: {start: 5}, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 6}}},
				status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			want: NotYet,
		},
		"a StatefulSet that is not updated down to its partition yet": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2},
				spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}},
				status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			want: NotYet,
		},
		"a StatefulSet with a partition beyond its replicas": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2},
				spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 9}}},
				status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, currentReplicas: 3, currentRevision: a, updateRevision: b}}`,
			want: Available,
		},
		"a DaemonSet OnDelete whose pods run the older template": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 0, numberAvailable: 2}}`,
			want: Available,
		},
		"a DaemonSet OnDelete that waits for a node": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}`,
			want: NotYet,
		},
		"a claim that is bound":        {object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, want: NotTrackable},
		"a claim that is not bound":    {object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, want: NotYet},
		"a claim that is lost":         {object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`, want: NotYet},
		"a volume without a claim":     {object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, want: NotTrackable},
		"a volume that is bound":       {object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Bound}}`, want: NotTrackable},
		"a volume that lost its claim": {object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Released}}`, want: NotYet},
		"a volume that failed":         {object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Failed, message: no plugin}}`, want: NotYet},
		"a custom resource that is ready": {
			object: `{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`,
			want:   Available,
		},
		"a custom resource that is not ready": {
			object: `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False", reason: NoDisk}]}}`,
			want:   NotYet,
		},
		"a custom resource of which it is not known whether it is ready": {
			object: `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: Unknown}]}}`,
			want:   NotYet,
		},
		"a custom resource that its controller has not seen": {
			object: `{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`,
			want:   NotYet,
		},
		"a custom resource that was ready before the change": {
			object: `{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
			want:   NotYet,
		},
		"a custom resource that is reconciled": {
			object: `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}`,
			want:   NotYet,
		},
		"a custom resource that is stalled": {
			object: `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", reason: BadSpec}]}}`,
			want:   Failed,
		},
		"a custom resource with other conditions": {
			object: `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Synced, status: "False"}]}}`,
			want:   NotTrackable,
		},
		"a custom resource of a project of Kubernetes": {
			object: `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, status: {conditions: [{type: Ready, status: "False"}]}}`,
			want:   NotYet,
		},
		"a Pod that is not ready": {
			object: `{apiVersion: v1, kind: Pod, status: {conditions: [{type: Ready, status: "False"}]}}`,
			want:   NotTrackable,
		},
		"an APIService": {
			object: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Ready, status: "False"}]}}`,
			want:   NotTrackable,
		},
		"a Deployment in a shape that is not one": {
			object: `{apiVersion: apps/v1, kind: Deployment, status: {observedGeneration: soon}}`,
			want:   Failed,
		},
		"a StatefulSet on its latest revision": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2},
				status: {observedGeneration: 1, availableReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: a}}`,
			want: Available,
		},
		"a StatefulSet in the middle of a rollout": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2},
				status: {observedGeneration: 1, availableReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			want: NotYet,
		},
		"a StatefulSet with too few replicas": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2},
				status: {observedGeneration: 1, availableReplicas: 1, currentReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: a}}`,
			want: NotYet,
		},
		"a DaemonSet on every node": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1},
				status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}`,
			want: Available,
		},
		"a DaemonSet that waits for a node": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1},
				status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}`,
			want: NotYet,
		},
		"a DaemonSet that its controller has not seen": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}}`,
			want:   NotYet,
		},
		"a Service with a cluster IP":    {object: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1}}`, want: Available},
		"a headless Service":             {object: `{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, want: Available},
		"a Service without a cluster IP": {object: `{apiVersion: v1, kind: Service, spec: {type: NodePort}}`, want: NotYet},
		"a Service of type ExternalName": {object: `{apiVersion: v1, kind: Service, spec: {type: ExternalName}}`, want: NotTrackable},
		"a load balancer without an address": {
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`,
			want:   NotYet,
		},
		"a load balancer with an address": {
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: a.example}]}}}`,
			want:   Available,
		},
		"a CustomResourceDefinition that is served": {
			object: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
				status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`,
			want: Available,
		},
		"a CustomResourceDefinition that is not established": {
			object: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
				status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False"}]}}`,
			want: NotYet,
		},
		"a PodDisruptionBudget that was computed": {
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1},
				status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False"}]}}`,
			want: Available,
		},
		"a PodDisruptionBudget that was computed for an older specification": {
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2},
				status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False"}]}}`,
			want: NotYet,
		},
		"a ConfigMap":          {object: `{apiVersion: v1, kind: ConfigMap}`, want: Available},
		"a Namespace":          {object: `{apiVersion: v1, kind: Namespace}`, want: Available},
		"a ClusterRoleBinding": {object: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}`, want: Available},
		"a Job":                {object: `{apiVersion: batch/v1, kind: Job}`, want: NotTrackable},
		"a custom resource":    {object: `{apiVersion: example.com/v1, kind: Widget}`, want: NotTrackable},
		"a custom resource with the name of a kind": {object: `{apiVersion: example.com/v1, kind: Secret}`, want: NotTrackable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			got := Of(integers(object))
			if got.State != tc.want {
				t.Errorf("state is %s (%s), want %s", got.State, got.Message, tc.want)
			}
			if got.Message == "" {
				t.Error("the verdict has no message")
			}
		})
	}
}

// integers gives the object the number types that an API client gives it.
func integers(object *unstructured.Unstructured) *unstructured.Unstructured {
	text, err := object.MarshalJSON()
	if err != nil {
		return object
	}
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON(text); err != nil {
		return object
	}
	return read
}

func TestOf_ReportsTheReplicaFailureOfADeployment(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [
		{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: "Deployment does not have minimum availability."},
		{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-1-a" is forbidden: exceeded quota: none'}]}}`), object); err != nil {
		t.Fatal(err)
	}
	const want = `Not all replicas run the latest template yet. FailedCreate: pods "web-1-a" is forbidden: exceeded quota: none`
	if got := Of(object); got.State != NotYet || got.Message != want {
		t.Errorf("got %+v", got)
	}
}
