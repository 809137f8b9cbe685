// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
)

// askedWith returns the status code of the webhooks' port for a client that presents a certificate
// and claims to forward a request: the extension API's discovery document.
func askedWith(ctx context.Context, proof tls.Certificate) (int, error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{proof}}}
	address := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(gateway.port)) + "/apis/" + intake.GroupVersion.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Remote-User", "system:apiserver")
	request.Header.Set("X-Remote-Group", "system:masters")
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

var _ = Describe("The hub's front proxy", Serial, func() {
	It("can change CA and certificate, and the gateway reloads both without a restart", func(ctx SpecContext) {
		pki := func(name string) string { return filepath.Join(hub.Dir, "pki", name) }
		const ca, shown, key = "front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key"
		reviewed := func(ctx context.Context) error {
			return masters.Create(ctx, envelope(map[string]any{"kind": "Nothing"}), client.DryRunAll)
		}
		// become restarts the API server with these files.
		become := func(ctx context.Context, files map[string][]byte) {
			GinkgoHelper()
			for name, content := range files {
				Expect(os.WriteFile(pki(name), content, 0o600)).To(Succeed())
			}
			Expect(hub.APIServer.Restart(ctx)).To(Succeed())
			Eventually(reviewed).WithArguments(ctx).Should(MatchError(ContainSubstring("denied the request")))
		}
		before := map[string][]byte{}
		for _, name := range []string{ca, shown, key} {
			content, err := os.ReadFile(pki(name))
			Expect(err).NotTo(HaveOccurred())
			before[name] = content
		}
		old, err := tls.X509KeyPair(before[shown], before[key])
		Expect(err).NotTo(HaveOccurred())
		certificate, private := callerProof("front-proxy-client")
		next, err := tls.X509KeyPair(certificate, private)
		Expect(err).NotTo(HaveOccurred())
		Expect(askedWith(ctx, old)).To(Equal(http.StatusOK))
		Expect(askedWith(ctx, next)).To(Equal(http.StatusUnauthorized))
		DeferCleanup(func(ctx SpecContext) { become(ctx, before) })

		By("trusting both CAs")
		become(ctx, map[string][]byte{ca: slices.Concat(before[ca], certificate)})
		Eventually(askedWith).WithArguments(ctx, next).Should(Equal(http.StatusOK))
		Expect(askedWith(ctx, old)).To(Equal(http.StatusOK))

		By("presenting the new certificate")
		become(ctx, map[string][]byte{shown: certificate, key: private})

		By("trusting the new CA alone, and re-creating the ConfigMap, in which the API server keeps the previous CAs")
		become(ctx, map[string][]byte{ca: certificate})
		Expect(masters.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: frontproxy.Namespace, Name: frontproxy.ConfigMap}})).To(Succeed())
		Eventually(askedWith).WithArguments(ctx, old).Should(Equal(http.StatusUnauthorized))
		Expect(reviewed(ctx)).To(MatchError(ContainSubstring("denied the request")))
	})
})
