// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// usage sums up nodes and the pods on them.
type usage struct {
	nodes, readyNodes int
	// sampleNode is the name of one of the nodes, the first.
	sampleNode                       string
	capacity, allocatable, requested corev1.ResourceList
}

func newUsage() *usage {
	u := &usage{capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{}, requested: corev1.ResourceList{}}
	for _, name := range reportedResources() {
		u.capacity[name], u.allocatable[name], u.requested[name] = resource.Quantity{}, resource.Quantity{}, resource.Quantity{}
	}
	return u
}

func (u *usage) addNode(node *corev1.Node) {
	u.nodes++
	if isReady(node) {
		u.readyNodes++
	}
	if u.sampleNode == "" || node.Name < u.sampleNode {
		u.sampleNode = node.Name
	}
	add(u.capacity, node.Status.Capacity)
	add(u.allocatable, node.Status.Allocatable)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// addPod counts a pod that has a node and has not ended.
func (u *usage) addPod(pod *corev1.Pod) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName == "" || ended {
		return
	}
	add(u.requested, requestsOf(&pod.Spec))
}

// available is what pods may still request; never less than nothing.
func (u *usage) available() corev1.ResourceList {
	available := u.allocatable.DeepCopy()
	for name, quantity := range available {
		quantity.Sub(u.requested[name])
		if quantity.Sign() < 0 {
			quantity = resource.Quantity{Format: quantity.Format}
		}
		available[name] = quantity
	}
	return available
}

// requestsOf is what the scheduler reserves for a pod: its containers together with the
// init containers that keep running, or the largest moment of its start if that is
// more, and the overhead of its runtime.
func requestsOf(pod *corev1.PodSpec) corev1.ResourceList {
	running, start := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.InitContainers {
		container := &pod.InitContainers[i]
		moment := running.DeepCopy()
		sum(moment, container.Resources.Requests)
		raise(start, moment)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running = moment
		}
	}
	for i := range pod.Containers {
		sum(running, pod.Containers[i].Resources.Requests)
	}
	raise(running, start)
	sum(running, pod.Overhead)
	return running
}

// add adds to the resources that total has, and to no others.
func add(total, more corev1.ResourceList) {
	for name, quantity := range total {
		quantity.Add(more[name])
		total[name] = quantity
	}
}

func sum(total, more corev1.ResourceList) {
	for name, quantity := range more {
		have := total[name]
		have.Add(quantity)
		total[name] = have
	}
}

func raise(total, floor corev1.ResourceList) {
	for name, quantity := range floor {
		if have := total[name]; have.Cmp(quantity) < 0 {
			total[name] = quantity
		}
	}
}
