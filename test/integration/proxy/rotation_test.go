// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/test/support/env"
)

var _ = Describe("A download", func() {
	DescribeTable("continues while the gateway's token rotates ten times", func(ctx SpecContext, mebibytes int64) {
		pod := fmt.Sprintf("download-%d", mebibytes)
		startNode(ctx, pod)
		size := mebibytes << 20
		stream, err := clientsetFor(configFor(memberName, editor, team)).CoreV1().Pods(namespace).
			GetLogs(pod, &corev1.PodLogOptions{LimitBytes: ptr.To(size)}).Stream(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(stream.Close)
		var got int64
		for range 10 {
			n, err := io.CopyN(io.Discard, stream, size/11)
			Expect(err).NotTo(HaveOccurred())
			got += n
			rotate(ctx)
		}
		n, err := io.Copy(io.Discard, stream)
		Expect(err).NotTo(HaveOccurred())
		Expect(got + n).To(Equal(size))
	},
		Entry("of 128 MiB", int64(128)),
		Entry("of 1 GiB", Label("matrix"), int64(1024)),
	)
})

// another is a CA that signs one serving certificate for a member's API server.
func another() (ca, cert, key []byte) {
	GinkgoHelper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	issued, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	Expect(err).NotTo(HaveOccurred())
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: template.NotBefore, NotAfter: template.NotAfter,
		DNSNames: []string{"kubernetes.default.svc", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	signed, err := x509.CreateCertificate(rand.Reader, leaf, template, private.Public(), signer)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	block := func(kind string, content []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	}
	return block("CERTIFICATE", issued), block("CERTIFICATE", signed), block("PRIVATE KEY", encoded)
}

// serve gives the member's API server another serving certificate and returns once the server
// presents it.
func serve(ctx context.Context, ca, cert, key []byte) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(member.Dir, "pki", "apiserver.crt"), cert, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(member.Dir, "pki", "apiserver.key"), key, 0o600)).To(Succeed())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(ca)).To(BeTrue())
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "kubernetes.default.svc"}}
	Eventually(func() error {
		conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(member.URL, "https://"))
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(3 * time.Minute).Should(Succeed()) // It reloads its files at least once a minute.
}

var _ = Describe("The CA of a member", func() {
	It("is picked up without a restart when it is replaced with the serving certificate", func(ctx SpecContext) {
		startNode(ctx, "authority")
		config := configFor(memberName, editor, team)
		api := clientsetFor(config).CoreV1().ConfigMaps(namespace)
		w, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "spec=authority"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)

		token := rotate(ctx)
		program, err := env.Kubectl()
		Expect(err).NotTo(HaveOccurred())
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(env.WriteKubeconfig(kubeconfig, config)).To(Succeed())
		// An upgrade has its own connection; other requests share one from before the change.
		upgraded := func() string {
			out, _ := exec.Command(program, "--kubeconfig", kubeconfig, "-n", namespace, "exec", "authority", "--", "echo", "done").CombinedOutput()
			return string(out)
		}
		pki := filepath.Join(member.Dir, "pki")
		oldCert, err := os.ReadFile(filepath.Join(pki, "apiserver.crt"))
		Expect(err).NotTo(HaveOccurred())
		oldKey, err := os.ReadFile(filepath.Join(pki, "apiserver.key"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			serve(ctx, member.CABundle, oldCert, oldKey)
			report(ctx, memberName, token, member.CABundle)
			Eventually(upgraded).Should(Equal("done\n"), "the member is restored for other specs")
		})
		newCA, newCert, newKey := another()
		serve(ctx, newCA, newCert, newKey)
		Expect(upgraded()).To(ContainSubstring("does not match the CA that came with the gateway's token"))

		report(ctx, memberName, token, newCA)
		Eventually(upgraded).Should(Equal("done\n"))
		_, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "after-the-ca", Labels: map[string]string{"spec": "authority"},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.ResultChan()).Should(Receive(HaveField("Object.ObjectMeta.Name", "after-the-ca")), "the existing watch continues")
		Expect(api.Delete(ctx, "after-the-ca", metav1.DeleteOptions{})).To(Succeed())
	})
})
