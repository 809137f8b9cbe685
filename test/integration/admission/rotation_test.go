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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

// serviceName is the TLS server name with which the API server calls the Service.
const serviceName = service + "." + clusterv1beta1.SystemNamespace + ".svc"

// replica serves the webhooks like a second process would, with its own certificates and a new
// connection per call. It returns its address.
func replica(ctx context.Context, certificates *serving.Certificates) string {
	GinkgoHelper()
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
	return listener.Addr().String()
}

// balance stands in for a Service: one port that distributes connections to the replicas
// round-robin.
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

// lead points the webhook configurations at a port with the current CA bundle, which it returns. A
// cleanup points them at the gateway again.
func lead(ctx context.Context, port int, certificates *serving.Certificates) []byte {
	GinkgoHelper()
	bundle, err := certificates.CABundle(ctx)
	Expect(err).NotTo(HaveOccurred())
	gateway.installer.Extra = webhook.Configurations(webhook.Endpoint{
		Namespace: clusterv1beta1.SystemNamespace, Service: service, Port: int32(port), CABundle: bundle,
	})
	Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
	return bundle
}

func leadToTheGatewayAgain() {
	DeferCleanup(func(ctx SpecContext) {
		gateway.want(ctx)
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		waitUntilAdmissionIsOn(ctx)
	})
}

// load writes objects continuously.
type load struct {
	calls    atomic.Int64
	stop     chan struct{}
	failures chan error
	writers  sync.WaitGroup
}

func startLoad(ctx context.Context) *load {
	GinkgoHelper()
	const writers = 4
	write := func() error {
		return masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")), client.DryRunAll)
	}
	Eventually(write).Should(Succeed())
	waitUntilAdmissionIsOn(ctx)
	l := &load{stop: make(chan struct{}), failures: make(chan error, writers)}
	for range writers {
		l.writers.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := write(); err != nil {
					l.failures <- err
					return
				}
				l.calls.Add(1)
			}
		})
	}
	return l
}

// more waits for n more calls.
func (l *load) more(n int64) {
	GinkgoHelper()
	before := l.calls.Load()
	Eventually(func() int64 { return l.calls.Load() + int64(len(l.failures))*n }).Should(BeNumerically(">", before+n))
}

// end stops the load and returns the errors.
func (l *load) end() error {
	close(l.stop)
	l.writers.Wait()
	close(l.failures)
	var all []error
	for err := range l.failures {
		all = append(all, err)
	}
	GinkgoWriter.Printf("%d calls\n", l.calls.Load())
	return errors.Join(all...)
}

var _ = Describe("The serving authority", Serial, func() {
	It("rotates under load, and no call to two replicas fails", func(ctx SpecContext) {
		own := func() *serving.Certificates {
			return serving.FromAuthority(gateway.client, clusterv1beta1.SystemNamespace, []string{serviceName})
		}
		one := own()
		port := balance(replica(ctx, one), replica(ctx, own()))
		leadToTheGatewayAgain()
		last := lead(ctx, port, one)
		calls := startLoad(ctx)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: serving.SecretName}}
		for range 2 {
			Expect(change(ctx, gateway.client, secret, func(s *corev1.Secret) { s.Data[corev1.TLSPrivateKeyKey] = []byte{} })).To(Succeed())
			Eventually(func() ([]byte, error) { return one.CABundle(ctx) }).ShouldNot(Equal(last))
			last = lead(ctx, port, one)
			calls.more(200)
		}
		Expect(calls.end()).To(Succeed())
	})
})
