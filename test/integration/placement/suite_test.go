// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement tests the hub's part of a placement on a real API server: from a
// ClusterResourcePlacement to Works in the members' namespaces, and from the Works' status back. The
// tests simulate the members.
package placement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
)

var (
	scheme = runtime.NewScheme()
	// hubConf is break-glass access; with gatewayConf, the gateway has only the rights of an
	// installation.
	hubConf, gatewayConf *rest.Config
	cluster              *env.Cluster
	hub                  client.WithWatch
	gateway              *process
)

// renderChart turns this test binary into the process that renders a chart for the gateway.
const renderChart = "render-chart"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == renderChart {
		if err := engine.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestPlacement(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyPollingInterval(often)
	RunSpecs(t, "Placement on the hub", Label("placement"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{cluster} })

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	klog.SetLogger(GinkgoLogr)
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	ours, err := crds.ForHub(placementv1beta1.GroupName, clusterv1beta1.GroupName)
	Expect(err).NotTo(HaveOccurred())

	cluster, err = env.Start(ctx, env.Options{Name: "hub"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(cluster.Stop(ctx)).To(Succeed()) })
	hubConf = cluster.Config()
	hubConf.QPS = -1
	_, err = envtest.InstallCRDs(hubConf, envtest.CRDInstallOptions{CRDs: ours})
	Expect(err).NotTo(HaveOccurred())

	hub, err = client.NewWithWatch(hubConf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	gatewayConf, err = cluster.ConfigFor("fleetgate:gateway")
	Expect(err).NotTo(HaveOccurred())
	gatewayConf.QPS = -1
	applyRole(ctx, "gateway-rbac.yaml")
	if withOCM() {
		serveOCM(ctx)
	}
	gateway = startGateway()
	DeferCleanup(func() { gateway.stop() })
})

// applyRole gives the gateway the rights in a file of the installation.
func applyRole(ctx context.Context, file string) {
	GinkgoHelper()
	manifest, err := os.ReadFile("../../support/fleet/" + file)
	Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.Create(ctx, object)).To(Succeed())
	}
}

// process is a gateway with only the placement controllers.
type process struct{ stop func() }

func startGateway(alter ...func(*placement.Options)) *process {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(gatewayConf, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{ByObject: dispatch.CacheOptions()},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	charts := &helmchart.Process{Path: self, Args: []string{renderChart}}
	options := placement.Options{Charts: charts}
	if withOCM() {
		showMembers(mgr)
		options.Marks = membermirror.Marks
	}
	for _, change := range alter {
		change(&options)
	}
	Expect(placement.SetupWithManager(ctx, mgr, options)).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	return &process{stop: func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Expect(<-done).To(Succeed())
	}}
}
