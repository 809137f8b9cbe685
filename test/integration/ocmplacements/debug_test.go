// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// curious is an account of a hub that queries a gateway's own endpoint.
type curious struct {
	token string
	port  int
}

func newCurious(ctx context.Context, hub client.Client, port int) *curious {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: build.In("default", "curious")}
	expect.Created(ctx, hub, account)
	request := &authenticationv1.TokenRequest{}
	Expect(hub.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return &curious{token: request.Status.Token, port: port}
}

// asks returns the status code and text of a response about Placements.
func (c *curious) asks(ctx context.Context, method, path, body string) func(Gomega) string {
	return func(g Gomega) string {
		// The identity of the server does not matter here.
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		request, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://127.0.0.1:%d/debug/placements/%s", c.port, path), strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+c.token)
		response, err := transport.RoundTrip(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return fmt.Sprint(response.StatusCode, " ", string(text))
	}
}

// learnsWhy queries why Placement p has cluster c1, without the right and with it.
func (c *curious) learnsWhy(ctx context.Context, at *env.Cluster) {
	GinkgoHelper()
	const sent = `{"metadata": {"namespace": "default", "name": "sent"}, "spec": {"numberOfClusters": 1}}`
	Eventually(c.asks(ctx, http.MethodGet, "default/p", "")).Should(HavePrefix("403 "))
	Expect(c.asks(ctx, http.MethodPost, "", sent)(Default)).To(HavePrefix("403 "))
	out, err := program.Kubectl(ctx, at, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: default, name: curious}
rules:
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements]
  verbs: [get, create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: default, name: curious}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: curious}
subjects:
- {kind: ServiceAccount, namespace: default, name: curious}
`, "apply", "--filename=-")
	Expect(err).NotTo(HaveOccurred(), out)
	because := And(HavePrefix("200 "), ContainSubstring(`"filteredClusters":["c1"]`), ContainSubstring(`"aggregatedScores":[{"clusterName":"c1","score":`))
	Eventually(c.asks(ctx, http.MethodGet, "default/p", "")).Should(because)
	Eventually(c.asks(ctx, http.MethodPost, "", sent)).Should(because)
	Expect(c.asks(ctx, http.MethodGet, "kube-system/p", "")(Default)).To(HavePrefix("403 "))
}
