// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

func pod(name string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
}

func waits(container, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func crashes(container string, code int32, reason string) corev1.ContainerStatus {
	c := waits(container, "CrashLoopBackOff", "back-off 2m40s restarting failed container")
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	return c
}

// ended returns a container that has just terminated.
func ended(container string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
}

// again returns a container that was restarted after it terminated.
func again(container string, code int32) corev1.ContainerStatus {
	c := ended(container, code)
	c.LastTerminationState, c.State = c.State, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return c
}

func of(containers ...corev1.ContainerStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: containers}
}

func TestWhyNot_DescribesTheMostSevereProblem(t *testing.T) {
	unschedulable := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}}
	running := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [web]"}}}
	notReady := func(containers ...corev1.ContainerStatus) corev1.PodStatus {
		status := running
		status.ContainerStatuses = containers
		return status
	}
	isReady := func(c corev1.ContainerStatus) corev1.ContainerStatus {
		c.Ready = true
		return c
	}
	image := of(waits("web", "ImagePullBackOff", `Back-off pulling image "web:2"`))
	going := pod("going", image)
	going.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no Pods":                          {},
		"starting":                         {pods: []corev1.Pod{pod("a", of(waits("web", "ContainerCreating", "")))}},
		"started":                          {pods: []corev1.Pod{pod("a", corev1.PodStatus{Phase: corev1.PodRunning})}},
		"done":                             {pods: []corev1.Pod{pod("a", corev1.PodStatus{Phase: corev1.PodSucceeded, Reason: "x"})}},
		"going":                            {pods: []corev1.Pod{going}},
		"an image that cannot be pulled":   {pods: []corev1.Pod{pod("a", image)}, want: `Pod a: container web: ImagePullBackOff: Back-off pulling image "web:2"`},
		"a crash, without its times":       {pods: []corev1.Pod{pod("a", of(crashes("web", 137, "OOMKilled")))}, want: "Pod a: container web: CrashLoopBackOff: it ends with code 137 (OOMKilled)"},
		"a crash of which nothing is left": {pods: []corev1.Pod{pod("a", of(waits("web", "CrashLoopBackOff", "back-off 10s")))}, want: "Pod a: container web: CrashLoopBackOff"},
		"no node":                          {pods: []corev1.Pod{pod("a", unschedulable)}, want: "Pod a: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		"a crash of just now":              {pods: []corev1.Pod{pod("a", notReady(ended("web", 3)))}, want: "Pod a: container web: exited with code 3 (Error)"},
		"a crash, and it runs again":       {pods: []corev1.Pod{pod("a", notReady(again("web", 3)))}, want: "Pod a: container web: exited with code 3 (Error)"},
		"a crash that is over":             {pods: []corev1.Pod{pod("a", of(isReady(again("web", 3))))}},
		"a first container that is done":   {pods: []corev1.Pod{pod("a", of(ended("migrate", 0)))}},
		"not ready":                        {pods: []corev1.Pod{pod("a", running)}, want: "Pod a: ContainersNotReady: containers with unready status: [web]"},
		"evicted":                          {pods: []corev1.Pod{pod("a", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on memory."})}, want: "Pod a: Evicted: The node was low on memory."},
		"a container that makes others wait": {
			pods: []corev1.Pod{pod("a", corev1.PodStatus{Phase: corev1.PodPending,
				InitContainerStatuses: []corev1.ContainerStatus{crashes("migrate", 1, "Error")},
				ContainerStatuses:     []corev1.ContainerStatus{waits("web", "PodInitializing", "")}})},
			want: "Pod a: container migrate: CrashLoopBackOff: it ends with code 1 (Error)",
		},
		"permanent problems before transient ones": {
			pods: []corev1.Pod{pod("a", running), pod("b", unschedulable), pod("c", of(crashes("web", 1, "Error"))), pod("e", image), pod("d", image)},
			want: `Pod d: container web: ImagePullBackOff: Back-off pulling image "web:2"`,
		},
	} {
		if got := WhyNot(test.pods); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestPodsOf_SelectsPodsOfWorkloadsOnly(t *testing.T) {
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}, "matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}}
	for name, test := range map[string]struct {
		object map[string]any
		want   string
	}{
		"a Deployment":            {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"selector": selector}}, "app=web,tier"},
		"without selector":        {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{}}, ""},
		"that selects all":        {map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": map[string]any{"selector": map[string]any{}}}, ""},
		"that is malformed":       {map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": map[string]any{"selector": map[string]any{"matchLabels": "x"}}}, ""},
		"a kind of another group": {map[string]any{"apiVersion": "example.com/v1", "kind": "Deployment", "spec": map[string]any{"selector": selector}}, ""},
		"a ReplicaSet":            {map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"selector": selector}}, ""},
	} {
		if got := PodsOf(&unstructured.Unstructured{Object: test.object}).Selector; got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestLatest_IgnoresPodsOfAnOlderTemplate(t *testing.T) {
	at := func(label Label, p corev1.Pod) corev1.Pod {
		p.Labels = map[string]string{label.Key: label.Value}
		return p
	}
	workload := func(kind string, metadata, status map[string]any) *unstructured.Unstructured {
		metadata["name"] = "web"
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "status": status,
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}}
	}
	says := func(kind, message string) map[string]any {
		return map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "message": `ReplicaSet "web-other" is none of progress`}, map[string]any{"type": kind, "message": message}}}
	}
	for name, test := range map[string]struct {
		of           *unstructured.Unstructured
		older, newer Label
	}{
		"a progressing Deployment":                {workload("Deployment", map[string]any{}, says("Progressing", `ReplicaSet "web-2" is progressing.`)), Label{"pod-template-hash", "1"}, Label{"pod-template-hash", "2"}},
		"a Deployment that has just started":      {workload("Deployment", map[string]any{}, says("Progressing", `Created new replica set "web-2"`)), Label{"pod-template-hash", "1"}, Label{"pod-template-hash", "2"}},
		"a Deployment that exceeded its deadline": {workload("Deployment", map[string]any{}, says("Progressing", `ReplicaSet "web-2" has timed out progressing.`)), Label{"pod-template-hash", "1"}, Label{"pod-template-hash", "2"}},
		"a StatefulSet":                           {workload("StatefulSet", map[string]any{}, map[string]any{"updateRevision": "web-2"}), Label{"controller-revision-hash", "web-1"}, Label{"controller-revision-hash", "web-2"}},
		"a DaemonSet": {workload("DaemonSet", map[string]any{"annotations": map[string]any{"deprecated.daemonset.template.generation": "2"}}, nil),
			Label{"pod-template-generation", "1"}, Label{"pod-template-generation", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := at(test.older, pod("a", of(waits("web", "ImagePullBackOff", ""))))
			starting := at(test.newer, pod("b", of(waits("web", "ContainerCreating", ""))))
			crashing := at(test.newer, pod("c", of(crashes("web", 1, "Error"))))
			chosen := PodsOf(test.of)
			if chosen.Newest != test.newer {
				t.Fatalf("the latest template is that of Pods with %+v", chosen.Newest)
			}
			for want, pods := range map[string][]corev1.Pod{
				"": {bad, starting},
				"Pod c: container web: CrashLoopBackOff: it ends with code 1 (Error)": {bad, starting, crashing},
				"Pod a: container web: ImagePullBackOff":                              {bad},
			} {
				if got := WhyNot(chosen.Latest(pods)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	for name, unknown := range map[string]map[string]any{
		"a Deployment without deadline":       nil,
		"a Deployment that says nothing else": says("Progressing", "Deployment is paused"),
		"another ReplicaSet":                  says("Progressing", `ReplicaSet "db-2" is progressing.`),
	} {
		if got := PodsOf(workload("Deployment", map[string]any{}, unknown)).Newest; got != (Label{}) {
			t.Errorf("%s: the latest template is that of Pods with %+v", name, got)
		}
	}
}
