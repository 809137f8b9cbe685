// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// stages are KWOK's instructions.
//
//go:embed stages.yaml
var stages string

// controllersWork returns nil when a namespace has everything that controllers create in it, so
// that the first Pod or token of a test succeeds.
func (c *Cluster) controllersWork(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	core := client.CoreV1()
	if _, err := core.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	_, err = core.ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err
}

// nodesWork creates missing nodes, and returns nil when Pods can be scheduled on all.
func (c *Cluster) nodesWork(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	for i := range c.options.Nodes {
		want := simulatedNode(fmt.Sprintf("%s-node-%d", c.Name, i+1))
		node, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			node, err = nodes.Create(ctx, want, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		if !isSchedulable(node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

func simulatedNode(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("128Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("500Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room.DeepCopy(),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v0.0.0-simulated",
			},
		},
	}
}

func isSchedulable(node *corev1.Node) bool {
	if len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
