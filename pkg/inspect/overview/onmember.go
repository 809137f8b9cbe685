// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// Limits for one answer: the users of a member determine how much there is.
const (
	maxEvents     = 500
	maxPods       = 100
	logLines      = 500
	maxLog        = 128 << 10
	memberTimeout = 5 * time.Second
)

// onMember is a client for a member through the hub, with the same credentials.
func (h *Hub) onMember(member string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(h.MemberConfig(member))
	if err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", member, err)
	}
	return client, nil
}

// MemberEvents reads the events of a member, the newest first: those of an object, of a namespace,
// or all.
func (h *Hub) MemberEvents(ctx context.Context, member string, of *corev1.ObjectReference, warnings bool) ([]corev1.Event, error) {
	client, err := h.onMember(member)
	if err != nil {
		return nil, err
	}
	chosen := fields.Set{}
	for field, value := range map[string]string{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name, "involvedObject.uid": string(of.UID)} {
		if value != "" {
			chosen[field] = value
		}
	}
	if warnings {
		chosen["type"] = corev1.EventTypeWarning
	}
	list, err := client.CoreV1().Events(of.Namespace).List(ctx, metav1.ListOptions{Limit: maxEvents, FieldSelector: chosen.AsSelector().String()})
	if err != nil {
		return nil, fmt.Errorf("listing the events of member %q: %w", member, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return explain.LastSeen(&b).Compare(explain.LastSeen(&a)) })
	return list.Items, nil
}

// MemberPod reads a Pod on a member.
func (h *Hub) MemberPod(ctx context.Context, member, namespace, name string) (*corev1.Pod, error) {
	client, err := h.onMember(member)
	if err != nil {
		return nil, err
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Pod %s/%s of member %q: %w", namespace, name, member, err)
	}
	return pod, nil
}

// MemberLog reads the end of a container's log, of at most 500 lines and 128 KiB.
func (h *Hub) MemberLog(ctx context.Context, member, namespace, pod, container string) (string, error) {
	client, err := h.onMember(member)
	if err != nil {
		return "", err
	}
	options := &corev1.PodLogOptions{Container: container, TailLines: ptr.To[int64](logLines), LimitBytes: ptr.To[int64](maxLog)}
	stream, err := client.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the log of Pod %s/%s of member %q: %w", namespace, pod, member, err)
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(io.LimitReader(stream, maxLog))
	if err != nil {
		return "", fmt.Errorf("reading the log of Pod %s/%s of member %q: %w", namespace, pod, member, err)
	}
	return string(text), nil
}

// MemberLatency measures the response time of a member through the hub.
func (h *Hub) MemberLatency(ctx context.Context, member string) (time.Duration, error) {
	client, err := h.onMember(member)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw(); err != nil {
		return 0, fmt.Errorf("requesting /version from member %q: %w", member, err)
	}
	return time.Since(started), nil
}

// Follow reads events about the object of an answer from the member, and the Pods of a workload with
// their events. An error, such as a missing permission, becomes part of the answer.
func (h *Hub) Follow(ctx context.Context, a *explain.Problem) {
	if a.Of == nil || a.Member == "" || !a.Live {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	seen, err := h.evidence(ctx, a)
	a.Follow(seen, err)
}

func (h *Hub) evidence(ctx context.Context, a *explain.Problem) (explain.Evidence, error) {
	var seen explain.Evidence
	events, err := h.MemberEvents(ctx, a.Member, &corev1.ObjectReference{Kind: a.Of.Kind, Namespace: a.Of.Namespace, Name: a.Of.Name}, true)
	if err != nil {
		return seen, err
	}
	seen.Events = events
	pods, err := h.podsOf(ctx, a)
	if err != nil || len(pods) == 0 {
		return seen, err
	}
	seen.Pods = availability.WhyNot(pods)
	// The text begins with the name of the Pod in question.
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return strings.HasPrefix(seen.Pods, "Pod "+p.Name+":") })
	pod := pods[max(at, 0)].Name
	events, err = h.MemberEvents(ctx, a.Member, &corev1.ObjectReference{Kind: "Pod", Namespace: a.Of.Namespace, Name: pod}, true)
	seen.Events = append(seen.Events, events...)
	return seen, err
}

// podsOf lists the existing Pods of a workload, only those of its latest template if there are any.
func (h *Hub) podsOf(ctx context.Context, a *explain.Problem) ([]corev1.Pod, error) {
	pods, err := h.podSelector(ctx, a)
	if err != nil || pods.Selector == "" {
		return nil, err
	}
	client, err := h.onMember(a.Member)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Pods(a.Of.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector, Limit: maxPods})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of %s on member %q: %w", a.Object, a.Member, err)
	}
	return pods.Latest(list.Items), nil
}

// podSelector selects the Pods of a workload; it is empty for other objects.
func (h *Hub) podSelector(ctx context.Context, a *explain.Problem) (availability.Pods, error) {
	var none availability.Pods
	if a.Of.Group == "batch" && a.Of.Kind == "Job" {
		return availability.Pods{Selector: labels.Set{batchv1.JobNameLabel: a.Of.Name}.String()}, nil
	}
	if a.Of.Group != "apps" {
		return none, nil
	}
	dynamicClient, err := dynamic.NewForConfig(h.MemberConfig(a.Member))
	if err != nil {
		return none, fmt.Errorf("connecting to member %q: %w", a.Member, err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: a.Of.Group, Version: a.Of.Version, Kind: a.Of.Kind})
	object, err := dynamicClient.Resource(resource).Namespace(a.Of.Namespace).Get(ctx, a.Of.Name, metav1.GetOptions{})
	if err != nil {
		return none, fmt.Errorf("reading %s of member %q: %w", a.Object, a.Member, err)
	}
	return availability.PodsOf(object), nil
}
