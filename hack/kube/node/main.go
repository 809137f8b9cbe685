// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command node is what runs on a node, kubelet and kube-proxy, in one binary. Only tests on real Pods
// need it, and it takes a minute to build.
package main

import (
	"context"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"fleetgate.io/fleetgate/hack/kube/multicall"
)

func main() {
	multicall.Main(map[string]func() int{
		"kube-proxy": multicall.Command(kubeproxy.NewProxyCommand),
		"kubelet":    multicall.Command(newKubelet),
	})
}

// newKubelet needs its own context because kubelet's command builds its signal handling on it.
func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }
