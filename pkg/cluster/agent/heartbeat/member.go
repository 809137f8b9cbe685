// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Limits of requests to the member.
const (
	probeTimeout   = 10 * time.Second
	collectTimeout = 30 * time.Second
	pageSize       = 500
	// maxPages limits the Pods and nodes that are counted.
	maxPages = 100
)

// probe checks the readiness of the member's API server.
func (r *Reconciler) probe(ctx context.Context) health {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := r.Member.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return health{message: fmt.Sprintf("the member's API server is not ready: %v", err)}
	}
	h := health{ok: true, message: "the member's API server is ready"}
	if r.Unstored != nil {
		if err := r.Unstored(); err != nil {
			h.message += fmt.Sprintf(", but it does not store the agent's renewed token, without which an agent that restarts later is not enrolled: %v", err)
		}
	}
	return h
}

// collect counts the member's nodes and the requests of their Pods.
func collect(ctx context.Context, member kubernetes.Interface) (*usage, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	u := newUsage()
	err := inPages(func(options metav1.ListOptions) (string, error) {
		nodes, err := member.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("listing nodes: %w", err)
		}
		for i := range nodes.Items {
			u.addNode(&nodes.Items[i])
		}
		return nodes.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	err = inPages(func(options metav1.ListOptions) (string, error) {
		options.FieldSelector = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
		pods, err := member.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("listing pods: %w", err)
		}
		for i := range pods.Items {
			u.addPod(&pods.Items[i])
		}
		return pods.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

func inPages(list func(metav1.ListOptions) (next string, err error)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		next, err := list(options)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
	return nil
}
