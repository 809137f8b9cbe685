// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
)

// usage sums up nodes and the requests of their Pods.
type usage struct {
	nodes, readyNodes int
	// sampleNode is the first node by name.
	sampleNode                       string
	capacity, allocatable, requested corev1.ResourceList
	// schedulable are the nodes that take new Pods, and free is what such Pods can request there.
	schedulable sets.Set[string]
	free        corev1.ResourceList
}

func newUsage() *usage {
	u := &usage{
		capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{}, requested: corev1.ResourceList{},
		schedulable: sets.New[string](), free: corev1.ResourceList{},
	}
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
	if isReady(node) && !node.Spec.Unschedulable {
		u.schedulable.Insert(node.Name)
		sum(u.free, node.Status.Allocatable)
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// addPod counts a scheduled Pod that has not ended.
func (u *usage) addPod(pod *corev1.Pod) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName == "" || ended {
		return
	}
	requests := requestsOf(&pod.Spec)
	add(u.requested, requests)
	if u.schedulable.Has(pod.Spec.NodeName) {
		for name, quantity := range u.free {
			quantity.Sub(requests[name])
			u.free[name] = quantity
		}
	}
}

// available is the capacity that Pods can still request, at least zero.
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

// requestsOf returns the resources that the scheduler reserves for a Pod: the sum of containers and
// sidecars, or the largest step of the init containers if that is more, and the overhead of the
// RuntimeClass.
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

// add adds only the resources that total has.
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
