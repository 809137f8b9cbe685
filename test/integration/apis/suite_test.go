// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apis shows, on a real API server, that the CRDs do what the types
// promise: every served version keeps every field, and every rule that the
// schema can check is checked, with the message that users' tools match.
package apis

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
)

// namespace is where namespaced objects are made.
const namespace = "apis"

var (
	hub *env.Cluster
	// wire sees objects as they are on the wire, in any version.
	wire dynamic.Interface
	// hubClient speaks our Go types, and JSON in the version that is stored.
	hubClient client.Client
)

func TestAPIs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real API server")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "APIs", Label("integration", "apis"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub} })

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	hub, err = env.Start(ctx, env.Options{
		Name: "apis", Dir: GinkgoT().TempDir(), Progress: func(line string) { GinkgoWriter.Println(line) },
	})
	Expect(err).NotTo(HaveOccurred())

	all, err := crds.All()
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: all, MaxTime: time.Minute})
	Expect(err).NotTo(HaveOccurred())

	wire, err = dynamic.NewForConfig(hub.Config())
	Expect(err).NotTo(HaveOccurred())
	hubClient, err = hub.Client(corev1.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme,
		authenticationv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme)
	Expect(err).NotTo(HaveOccurred())

	Expect(hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
})

var _ = AfterSuite(func(ctx SpecContext) {
	if hub != nil {
		Expect(hub.Stop(ctx)).To(Succeed())
	}
})
