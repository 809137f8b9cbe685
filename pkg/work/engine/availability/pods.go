// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pods selects the Pods of a workload.
type Pods struct {
	// Selector is their label selector; "" if the object is not a supported workload or selects
	// nothing.
	Selector string
	// Newest is the label of Pods of the latest template; zero if the workload does not show it.
	Newest Label
}

// Label is one label of an object.
type Label struct{ Key, Value string }

// Latest returns the Pods of the latest template, or all if there are none. Pods of an older
// template are being replaced, mostly because of the problem that the new template fixes.
func (p Pods) Latest(pods []corev1.Pod) []corev1.Pod {
	older := func(pod corev1.Pod) bool { return pod.Labels[p.Newest.Key] != p.Newest.Value }
	if latest := slices.DeleteFunc(slices.Clone(pods), older); len(latest) > 0 {
		return latest
	}
	return pods
}

// PodsOf returns the selector that the workload contains.
func PodsOf(object *unstructured.Unstructured) Pods {
	selector := selectorOf(object)
	if selector == "" {
		return Pods{}
	}
	return Pods{Selector: selector, Newest: newestOf(object)}
}

// progressing finds the ReplicaSet of the latest template in the message of condition Progressing.
// There is no field for it.
var progressing = regexp.MustCompile(`(?i)\breplica ?set "([^"]+)"`)

// newestOf returns the label that the workload's controller sets on Pods of the latest template.
func newestOf(object *unstructured.Unstructured) Label {
	switch object.GetKind() {
	case "Deployment":
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			fields, _ := c.(map[string]any)
			message, _ := fields["message"].(string)
			if found := progressing.FindStringSubmatch(message); fields["type"] == string(appsv1.DeploymentProgressing) && found != nil {
				if hash, ok := strings.CutPrefix(found[1], object.GetName()+"-"); ok {
					return Label{appsv1.DefaultDeploymentUniqueLabelKey, hash}
				}
			}
		}
	case "StatefulSet":
		if revision, _, _ := unstructured.NestedString(object.Object, "status", "updateRevision"); revision != "" {
			return Label{appsv1.ControllerRevisionHashLabelKey, revision}
		}
	case "DaemonSet":
		if generation := object.GetAnnotations()[appsv1.DeprecatedTemplateGeneration]; generation != "" {
			return Label{templateGeneration, generation}
		}
	}
	return Label{}
}

// templateGeneration is the label that the DaemonSet controller sets on Pods.
const templateGeneration = "pod-template-generation"

func selectorOf(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().Group != "apps" {
		return ""
	}
	switch object.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet":
	default:
		return ""
	}
	field, found, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if !found || err != nil {
		return ""
	}
	var labels metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(field, &labels); err != nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(&labels)
	if err != nil || selector.Empty() {
		return ""
	}
	return selector.String()
}

// severity orders the problems of Pods. The least likely to resolve itself is the highest.
type severity int

const (
	nothing severity = iota
	notReady
	unschedulable
	lost
	ending
	unstartable
)

// WhyNot describes the most severe problem of a workload's Pods, starting with the Pod's name. It
// is "" if all Pods are only starting. The text has no counts or times, so that it changes only
// with the problem.
func WhyNot(pods []corev1.Pod) string {
	var worst severity
	var message, of string
	for i := range pods {
		pod := &pods[i]
		how, text := holdsUp(pod)
		if how > worst || how == worst && how > nothing && pod.Name < of {
			worst, message, of = how, text, pod.Name
		}
	}
	if worst == nothing {
		return ""
	}
	return fmt.Sprintf("Pod %s: %s", of, message)
}

func holdsUp(pod *corev1.Pod) (severity, string) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
		return nothing, ""
	}
	if pod.Status.Phase == corev1.PodFailed {
		return lost, sentence(cmp.Or(pod.Status.Reason, "Failed"), pod.Status.Message)
	}
	if c := conditionOf(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return unschedulable, sentence(cmp.Or(c.Reason, corev1.PodReasonUnschedulable), c.Message)
	}
	var worst severity
	var message string
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if how, text := holdsUpContainer(&container); how > worst {
			worst, message = how, text
		}
	}
	if ready := conditionOf(pod, corev1.PodReady); worst == nothing && pod.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionFalse {
		return notReady, sentence(cmp.Or(ready.Reason, "NotReady"), ready.Message)
	}
	return worst, message
}

// holdsUpContainer ignores states that every container passes. A crashing container is in state
// Waiting only part of the time, so it also checks the last termination.
func holdsUpContainer(c *corev1.ContainerStatus) (severity, string) {
	waiting, ended := c.State.Waiting, c.LastTerminationState.Terminated
	if c.State.Terminated != nil {
		ended = c.State.Terminated
	}
	switch {
	case waiting == nil && !c.Ready && ended != nil && ended.ExitCode != 0:
		return ending, fmt.Sprintf("container %s: exited with code %d (%s)", c.Name, ended.ExitCode, cmp.Or(ended.Reason, "no reason"))
	case waiting == nil, waiting.Reason == "", waiting.Reason == "ContainerCreating", waiting.Reason == "PodInitializing":
		return nothing, ""
	case waiting.Reason != "CrashLoopBackOff":
		return unstartable, fmt.Sprintf("container %s: %s", c.Name, sentence(waiting.Reason, waiting.Message))
	}
	// The message of CrashLoopBackOff contains the present back-off, which changes with each
	// restart.
	if ended == nil {
		return ending, fmt.Sprintf("container %s: CrashLoopBackOff", c.Name)
	}
	return ending, fmt.Sprintf("container %s: CrashLoopBackOff: it ends with code %d (%s)", c.Name, ended.ExitCode, cmp.Or(ended.Reason, "no reason"))
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func sentence(reason, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return reason
	}
	return reason + ": " + message
}
