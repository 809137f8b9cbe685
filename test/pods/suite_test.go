// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods_test installs the charts on a hub and a member that run real Pods: a
// kubelet, containerd and kube-proxy of each, our own images, Services that work. The
// commands are those of docs/getting-started/install.md, and what users do with a Pod of a member is done
// through the hub.
//
// The suite runs on a machine of its own, which machine.sh makes of namespaces and takes
// away again: `make test-pods`, as root. The member's node is on a network of its own; its
// API server is beside the hub's, as that of a cluster whose control plane others run. What
// is missing there is DNS.
package pods_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
)

const (
	systemNamespace = clusterv1beta1.SystemNamespace
	memberName      = "member-1"
)

var (
	hub, member *env.Cluster
	// hubClient and memberClient speak as the break-glass administrator.
	hubClient, memberClient client.Client
	hubNode, memberNode     *env.Node
	// home is the project's folder, work one for files of this run.
	home, work string
	// images are archives for every node.
	images []string
)

func TestPods(t *testing.T) {
	if os.Getenv("FLEETGATE_MACHINE") == "" {
		t.Skip("needs a machine of its own, as root: make test-pods")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Pods", Label("pods"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub, member} })

var _ = BeforeSuite(func(ctx SpecContext) {
	build, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	home, work = filepath.Dir(build), os.TempDir()
	network, err := makeNetwork(ctx)
	Expect(err).NotTo(HaveOccurred())
	images = append(ourImages(), makeImages()...)

	progress := func(line string) { GinkgoWriter.Println(line) }
	clusters, err := env.StartAll(ctx,
		env.Options{Name: "hub", Dir: filepath.Join(work, "hub"), Address: hubAddress, Progress: progress},
		env.Options{Name: memberName, Dir: filepath.Join(work, memberName), Address: hubAddress, Progress: progress},
	)
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	kinds := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme)
	hubClient, err = hub.Client(kinds...)
	Expect(err).NotTo(HaveOccurred())
	memberClient, err = member.Client(kinds...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		for _, c := range clusters {
			Expect(c.Stop(ctx)).To(Succeed())
		}
	})
	DeferCleanup(stopNodes)

	var group errgroup.Group
	group.Go(func() (err error) {
		hubNode, err = hub.StartNode(ctx, env.NodeOptions{Name: "hub-node", Address: hubAddress, Pods: hubPods, Images: images, PauseImage: pauseImage})
		return err
	})
	group.Go(func() (err error) {
		memberNode, err = member.StartNode(ctx, env.NodeOptions{
			Name: "member-node", Address: memberAddress, Pods: memberPods, Network: network, Images: images, PauseImage: pauseImage,
		})
		return err
	})
	Expect(group.Wait()).To(Succeed())
})

// stopNodes ends kubelets and containerd; what their Pods leave ends with the machine.
func stopNodes(ctx SpecContext) {
	for _, node := range []*env.Node{hubNode, memberNode} {
		if node == nil {
			continue
		}
		if root := os.Getenv(artifacts.Folder); root != "" {
			keepNodeLogs(filepath.Join(root, "nodes"), node)
		}
		Expect(node.Stop(ctx)).To(Succeed())
	}
}

// keepNodeLogs keeps the logs of a node's programs and of its Pods.
func keepNodeLogs(dir string, node *env.Node) {
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	logs, err := filepath.Glob(filepath.Join(node.Dir, "*.log"))
	Expect(err).NotTo(HaveOccurred())
	pods, err := filepath.Glob(filepath.Join(node.Dir, "pod-logs", "*", "*", "*.log"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range append(logs, pods...) {
		name := filepath.Base(path)
		if container := filepath.Dir(path); container != node.Dir {
			name = filepath.Base(filepath.Dir(container)) + "_" + filepath.Base(container) + "_" + name
		}
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, node.Name+"_"+name), text, 0o644)).To(Succeed())
	}
}

// breakGlass is the kubeconfig of a cluster's break-glass administrator.
func breakGlass(cluster *env.Cluster) string {
	return filepath.Join(cluster.Dir, env.BreakGlass+".kubeconfig")
}

// ourImages are what `make images` made, for this machine.
func ourImages() []string {
	GinkgoHelper()
	var paths []string
	for _, name := range []string{"gateway", "agent"} {
		path := filepath.Join(home, ".fleetgate", "images", fmt.Sprintf("%s-%s.tar", name, architecture))
		Expect(path).To(BeAnExistingFile(), "make images PLATFORMS=linux/"+architecture)
		paths = append(paths, path)
	}
	return paths
}
