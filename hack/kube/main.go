// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube is a Kubernetes control plane in one binary: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl, chosen by the name under which it is called
// (one link per program). Tests and `make up` therefore need neither a download nor a container engine.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	// As upstream's kubectl: credentials plugins of the cloud providers' kubeconfigs.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"fleetgate.io/fleetgate/hack/kube/multicall"
)

func main() {
	multicall.Main(map[string]func() int{
		"etcd":                    runEtcd,
		"kube-apiserver":          multicall.Command(apiserver.NewAPIServerCommand),
		"kube-controller-manager": multicall.Command(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          multicall.Command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubectl":                 runKubectl,
	})
}

// runEtcd runs etcd's own main, which exits the process when it fails.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl follows upstream's main, because kubectl prints API errors in its own format.
func runKubectl() int {
	// As upstream: kubectl's own logging starts before its flags are parsed.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
