// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// podPage is a Pod on a member.
type podPage struct {
	Member, Namespace, Name string
	Phase, Node, Problem    string
	Containers              []string
	// Container is the one whose log is shown; LogProblem is why its log cannot be read.
	Container, Log, LogProblem string
	Events                     []event
	EventsProblem              string
}

// pod renders a Pod on a member with its events and the end of a log.
func (c *Console) pod(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := &podPage{Member: q.Get("member"), Namespace: q.Get("namespace"), Name: q.Get("name"), Container: q.Get("container")}
	// Check the name before it becomes part of a URL.
	if _, err := c.Hub.Member(r.Context(), p.Member); err != nil {
		c.failed(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), memberTimeout)
	defer cancel()
	pod, err := c.Hub.MemberPod(ctx, p.Member, p.Namespace, p.Name)
	if err != nil {
		c.failed(w, err)
		return
	}
	p.Phase, p.Node, p.Problem = string(pod.Status.Phase), pod.Spec.NodeName, availability.WhyNot([]corev1.Pod{*pod})
	for _, all := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range all {
			p.Containers = append(p.Containers, all[i].Name)
		}
	}
	if p.Container == "" && len(pod.Spec.Containers) > 0 {
		p.Container = pod.Spec.Containers[0].Name
	}
	if log, err := c.Hub.MemberLog(ctx, p.Member, p.Namespace, p.Name, p.Container); err != nil {
		p.LogProblem = err.Error()
	} else {
		p.Log = plainLines(log)
	}
	events, err := c.Hub.MemberEvents(ctx, p.Member, &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: pod.UID}, false)
	if err != nil {
		p.EventsProblem = err.Error()
	}
	p.Events = c.eventsOf(events)
	c.render(w, "pod", http.StatusOK, page{Title: "Pod " + p.Namespace + "/" + p.Name, Here: "search", Data: p})
}

// plainLines is plain for a text of many lines.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	return strings.Join(lines, "\n")
}
