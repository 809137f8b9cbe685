// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/kube/readyourwrites"
)

var _ = Describe("A client that sees its own writes", func() {
	It("does not delete a re-created object of the same name, and continues to read", func(ctx SpecContext) {
		mgr, err := ctrl.NewManager(hubConf, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
		Expect(err).NotTo(HaveOccurred())
		own, err := readyourwrites.NewClient(mgr, hubConf)
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(running) }()
		DeferCleanup(func(ctx SpecContext) {
			stop()
			Eventually(ctx, ended).WithTimeout(soon).Should(Receive(Succeed()))
		})

		create := func() *corev1.ConfigMap {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "of-two-lives"}}
			Expect(hub.Create(ctx, made)).To(Succeed())
			return made
		}
		seen := func() (types.UID, error) {
			var found corev1.ConfigMap
			err := own.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "of-two-lives"}, &found)
			return found.UID, err
		}
		first := create()
		Eventually(seen).WithTimeout(soon).WithPolling(often).Should(Equal(first.UID))
		Expect(hub.Delete(ctx, first)).To(Succeed())
		second := create()
		DeferCleanup(func(ctx SpecContext) { Expect(hub.Delete(ctx, second)).To(Succeed()) })
		Eventually(seen).WithTimeout(soon).WithPolling(often).Should(Equal(second.UID))

		Expect(own.Delete(ctx, first)).To(Satisfy(apierrors.IsConflict))
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		Expect(own.List(short, &corev1.ConfigMapList{}, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		Expect(seen()).To(Equal(second.UID))
	})
})
