// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package onehub is what suites have in common that need a hub, with kinds of its own choice, and
// no member: the gateway's part that they are about runs in their process.
package onehub

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"fleetgate.io/fleetgate/test/support/env"
)

// Run runs the specs of a package under that title; name is its label beside "integration".
func Run(t *testing.T, title, name string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real API server")
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(60 * time.Second)
	gomega.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	gomega.SetDefaultConsistentlyDuration(time.Second)
	ginkgo.RunSpecs(t, title, ginkgo.Label("integration", name))
}

// Start starts the hub, for as long as the suite runs, and has everything in this process log
// to Ginkgo.
func Start(ctx context.Context) *env.Cluster {
	ginkgo.GinkgoHelper()
	ctrl.SetLogger(ginkgo.GinkgoLogr)
	klog.SetLogger(ginkgo.GinkgoLogr)
	hub, err := env.Start(ctx, env.Options{Name: "hub"})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { gomega.Expect(hub.Stop(ctx)).To(gomega.Succeed()) })
	return hub
}

// Serve has a hub serve kinds, of which the error says that they could not be read.
func Serve(at *env.Cluster, definitions []*apiextensionsv1.CustomResourceDefinition, err error) {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = envtest.InstallCRDs(at.Config(), envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}
