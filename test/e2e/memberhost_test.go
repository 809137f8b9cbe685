// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// memberDomain does not resolve. Clients of hosts below it connect to the gateway instead.
const memberDomain = "members.example.org"

// atMemberHost requests a path from the gateway's own endpoint by the member's own host, as the
// user of the hub's kubeconfig, and returns the response.
func (l *launched) atMemberHost(ctx context.Context, member, path string) string {
	GinkgoHelper()
	user, err := clientcmd.BuildConfigFromFlags("", l.fleet.HubKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	tls, err := rest.TLSConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	authority, err := base64.StdEncoding.DecodeString(l.hub(ctx, "get", "secret", "gateway-serving-ca", "--namespace=fleet-system", `--output=jsonpath={.data.ca\.crt}`))
	Expect(err).NotTo(HaveOccurred())
	tls.RootCAs = x509.NewCertPool()
	Expect(tls.RootCAs.AppendCertsFromPEM(authority)).To(BeTrue())
	var port string
	arguments, err := argumentsOf(l.process("gateway").PID())
	Expect(err).NotTo(HaveOccurred())
	for _, argument := range arguments {
		if value, ok := strings.CutPrefix(argument, "--secure-port="); ok {
			port = value
		}
	}
	transport := &http.Transport{TLSClientConfig: tls, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("localhost", port))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s.%s%s", member, memberDomain, path), nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := transport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	return string(body)
}
