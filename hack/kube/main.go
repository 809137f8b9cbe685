// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube is real Kubernetes in one binary: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kubelet, kube-proxy and kubectl, chosen by the name under which it is called (one
// link per program). Tests and `make up` therefore need neither a download nor a container engine.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// As upstream's kubectl: credentials plugins of the cloud providers' kubeconfigs.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	programs := map[string]func() int{
		"etcd":                    runEtcd,
		"kube-apiserver":          run(apiserver.NewAPIServerCommand),
		"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kube-proxy":              run(kubeproxy.NewProxyCommand),
		"kubectl":                 runKubectl,
		"kubelet":                 run(newKubelet),
	}
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		names := make([]string, 0, len(programs))
		for n := range programs {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "%s: call this binary through a link named after one of: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(program())
}

// newKubelet needs its own context because kubelet's command builds its signal handling on it.
func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

func run(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
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
