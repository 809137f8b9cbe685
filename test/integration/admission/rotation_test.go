// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

// replica serves the webhooks as another process would, with a certificate of its
// own, and a new connection for each call.
func replica(ctx context.Context) (*serving.Certificates, string) {
	GinkgoHelper()
	certificates := serving.FromAuthority(gateway.client, clusterv1beta1.SystemNamespace, []string{service + "." + clusterv1beta1.SystemNamespace + ".svc"})
	done := make(chan error, 1)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { done <- certificates.Start(running) }()
	Expect(certificates.WaitForFirst(ctx)).To(Succeed())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: certificates.GetCertificate})
	Expect(err).NotTo(HaveOccurred())
	mux := http.NewServeMux()
	for path, handler := range webhook.Handlers(webhook.Hub{Scheme: scheme, Live: gateway.client, Reviews: gateway.client, Mapper: gateway.client.RESTMapper()}) {
		mux.Handle(path, handler)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	server.SetKeepAlivesEnabled(false)
	go func() { done <- server.Serve(listener) }()
	DeferCleanup(func() {
		cancel()
		Expect(server.Close()).To(Succeed())
		Eventually(done).Should(Receive())
		Eventually(done).Should(Receive())
	})
	return certificates, listener.Addr().String()
}

// balance is a Service: one port, and connections to the replicas in turn.
func balance(addresses ...string) int {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	var connections sync.WaitGroup
	connections.Go(func() {
		for turn := 0; ; turn++ {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { splice(from, addresses[turn%len(addresses)]) })
		}
	})
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		connections.Wait()
	})
	return listener.Addr().(*net.TCPAddr).Port
}

func splice(from net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		_ = from.Close()
		return
	}
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = from.Close(), to.Close()
		})
	}
	both.Wait()
}

var _ = Describe("The serving authority", Serial, func() {
	It("rotates under load, and two replicas lose no call", func(ctx SpecContext) {
		one, first := replica(ctx)
		_, second := replica(ctx)
		port := balance(first, second)
		lead := func() []byte {
			GinkgoHelper()
			bundle, err := one.CABundle(ctx)
			Expect(err).NotTo(HaveOccurred())
			gateway.installer.Extra = webhook.Configurations(webhook.Endpoint{
				Namespace: clusterv1beta1.SystemNamespace, Service: service, Port: int32(port), CABundle: bundle,
			})
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			return bundle
		}
		DeferCleanup(func(ctx SpecContext) {
			gateway.want(ctx)
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			waitUntilAdmissionIsOn(ctx)
		})
		last := lead()
		leads := func() int32 {
			var configuration k8sadmissionv1.ValidatingWebhookConfiguration
			Expect(masters.Get(ctx, client.ObjectKey{Name: webhook.ValidatingConfiguration}, &configuration)).To(Succeed())
			return *configuration.Webhooks[0].ClientConfig.Service.Port
		}
		Expect(leads()).To(BeEquivalentTo(port))
		write := func() error {
			return masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")), client.DryRunAll)
		}
		Eventually(write).Should(Succeed())
		waitUntilAdmissionIsOn(ctx)

		var calls atomic.Int64
		stop, failures := make(chan struct{}), make(chan error, 4)
		var load sync.WaitGroup
		for range cap(failures) {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := write(); err != nil {
						failures <- err
						return
					}
					calls.Add(1)
				}
			})
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: serving.SecretName}}
		for range 2 {
			Expect(change(ctx, gateway.client, secret, func(s *corev1.Secret) { delete(s.Data, corev1.TLSPrivateKeyKey) })).To(Succeed())
			Eventually(func() ([]byte, error) { return one.CABundle(ctx) }).ShouldNot(Equal(last))
			last = lead()
			before := calls.Load()
			Eventually(calls.Load).Should(BeNumerically(">", before+200))
		}
		close(stop)
		load.Wait()
		Expect(errors.Join(drain(failures)...)).NotTo(HaveOccurred())
		GinkgoWriter.Printf("%d calls during two rotations\n", calls.Load())
	})
})

func drain(failures chan error) []error {
	var all []error
	for {
		select {
		case err := <-failures:
			all = append(all, err)
		default:
			return all
		}
	}
}
