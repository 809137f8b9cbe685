// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts_test installs the charts with Helm on real API servers that enforce Pod
// Security "restricted", from a release in a registry of the suite. Nodes are missing, so the suite is the kubelet: it runs the
// commands of the Pods that appear, with their arguments, environment and account, and
// says of a Pod what its probes say.
package charts_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
)

const namespace = clusterv1beta1.SystemNamespace

var (
	hub, member *env.Cluster
	// hubClient and memberClient speak as the break-glass administrator.
	hubClient, memberClient client.Client
	// home is the project's folder.
	home     string
	released *release
)

func TestCharts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Charts", Label("integration", "charts"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	build, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	home = filepath.Dir(build)
	released = newRelease(ctx)
	progress := func(line string) { GinkgoWriter.Println(line) }
	clusters, err := env.StartAll(ctx, env.Options{Name: "hub", Progress: progress}, env.Options{Name: "member-1", Progress: progress})
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	DeferCleanup(func(ctx SpecContext) {
		Expect(hub.Stop(ctx)).To(Succeed())
		Expect(member.Stop(ctx)).To(Succeed())
	})
	hubClient, memberClient = clientOf(hub), clientOf(member)
	for _, of := range []client.Client{hubClient, memberClient} {
		Expect(of.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}})).To(Succeed())
	}
})

// clientOf speaks as the break-glass administrator.
func clientOf(cluster *env.Cluster) client.Client {
	GinkgoHelper()
	c, err := cluster.Client(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// helm runs Helm on a cluster, as its administrator, and returns what it prints. It installs from the
// suite's registry, which has no TLS.
func helm(ctx context.Context, cluster *env.Cluster, args ...string) (string, error) {
	if args[0] == "install" || args[0] == "upgrade" {
		args = append(args, "--version="+number(), "--plain-http")
	}
	command := exec.CommandContext(ctx, filepath.Join(home, ".fleetgate", "bin", "helm"),
		append(args, "--namespace="+namespace, "--kubeconfig="+filepath.Join(cluster.Dir, env.BreakGlass+".kubeconfig"))...)
	// No file of the user's own decides what happens.
	command.Env = append(os.Environ(), "HOME="+cluster.Dir, "KUBECONFIG=")
	out, err := command.CombinedOutput()
	GinkgoWriter.Printf("helm %v\n%s\n", args, out)
	return string(out), err
}

// inBackground runs Helm while the suite does what it waits for. The channel gets its error.
func inBackground(ctx context.Context, cluster *env.Cluster, args ...string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		_, err := helm(ctx, cluster, args...)
		ended <- err
	}()
	return ended
}
