// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clientrest "k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
	"fleetgate.io/fleetgate/test/support/env"
)

// kube-apiserver reaches aggregated API servers through the gateway's frontend listener: HTTP
// CONNECT over TLS with a client certificate.
var _ = Describe("kube-apiserver's EgressSelector", func() {
	It("reaches a member through the gateway's frontend listener, and reports the cause when it cannot", func(ctx SpecContext) {
		const frontend, reached, away = "hub-apiserver", "member-1", "member-2"
		far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"far.example.org/v1","resources":[]}`)
		}))
		DeferCleanup(far.Close)
		registry := tunneltest.NewRegistry(GinkgoTB(), tunnel.Options{})
		tunneltest.Join(GinkgoTB(), registry, reached, map[string]tunnel.Target{tunnel.APIServer: tunnel.TCP(far.Listener.Addr().String())})
		dir := GinkgoT().TempDir()
		address := serveFrontends(dir, frontend, registry)

		hub, err := env.Start(ctx, env.Options{Name: "egress", APIServerFlags: []string{"--egress-selector-config-file=" + egressConfig(dir, address)}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(hub.Stop(ctx)).To(Succeed()) })
		api, err := hub.Client(scheme.AddToScheme, apiregistrationv1.AddToScheme)
		Expect(err).NotTo(HaveOccurred())
		services := map[string]*apiregistrationv1.APIService{}
		for version, member := range map[string]string{"v1": reached, "v2": away} {
			services[member] = aggregated(ctx, api, version, member)
		}

		raw, err := clientrest.HTTPClientFor(hub.Config())
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			response, err := raw.Get(hub.URL + "/apis/far.example.org/v1")
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body)).To(ContainSubstring(`"groupVersion":"far.example.org/v1"`))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(services[away]), services[away])).To(Succeed())
			g.Expect(services[away].Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("503"))))
		}).WithContext(ctx).Should(Succeed())
	})
})

// aggregated registers an API group whose Service has the member's name.
func aggregated(ctx context.Context, api client.Client, version, member string) *apiregistrationv1.APIService {
	GinkgoHelper()
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version + ".far.example.org"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "far.example.org", Version: version, InsecureSkipTLSVerify: true, GroupPriorityMinimum: 1000, VersionPriority: 10,
			Service: &apiregistrationv1.ServiceReference{Namespace: metav1.NamespaceDefault, Name: member},
		},
	}
	for _, object := range []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: member},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: member},
		},
		service,
	} {
		Expect(api.Create(ctx, object)).To(Succeed())
	}
	return service
}

// serveFrontends runs the listener and writes the files of one frontend as PEM.
func serveFrontends(dir, frontend string, registry *tunnel.Registry) (address string) {
	GinkgoHelper()
	server, client := selfSigned(filepath.Join(dir, "server"), "gateway"), selfSigned(filepath.Join(dir, "client"), frontend)
	clients := x509.NewCertPool()
	clients.AddCert(client.Leaf)
	frontends, err := konnectivity.NewFrontendServer(konnectivity.FrontendServerOptions{
		Credentials: konnectivity.Credentials{ClientCAs: func() (*x509.CertPool, error) { return clients, nil }},
		Authorize: func(_ context.Context, id konnectivity.Identity, _ string) (bool, error) {
			return id.Name == frontend, nil
		},
		Dialer:      registry,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &server, nil },
	})
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- frontends.Serve(ctx, listener, time.Second) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	return listener.Addr().String()
}

// egressConfig routes the aggregated API groups of the hub through the frontend listener.
func egressConfig(dir, address string) (path string) {
	GinkgoHelper()
	path = filepath.Join(dir, "egress.yaml")
	Expect(os.WriteFile(path, fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://%s
        tlsConfig:
          caBundle: %[2]s/server.crt
          clientCert: %[2]s/client.crt
          clientKey: %[2]s/client.key
`, address, dir), 0o600)).To(Succeed())
	return path
}

// selfSigned creates a self-signed certificate for a name and 127.0.0.1 in path.crt, with its key
// in path.key.
func selfSigned(path, name string) tls.Certificate {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	leaf, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	for file, block := range map[string]*pem.Block{
		path + ".crt": {Type: "CERTIFICATE", Bytes: der},
		path + ".key": {Type: "PRIVATE KEY", Bytes: encodedKey},
	} {
		Expect(os.WriteFile(file, pem.EncodeToMemory(block), 0o600)).To(Succeed())
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
