// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"fleetgate.io/fleetgate/test/fleet"
)

// BenchmarkProxy is one request after the other to a member's API server, by the
// ordinary user admin: through the hub, and direct with a client certificate of the
// member. Both keep their connections.
func BenchmarkProxy(b *testing.B) {
	f := startFleet(b, "proxy", "member-1")
	through, direct := throughHub(b, f), directly(b, f)
	for _, request := range []struct{ name, path string }{
		// 1.3 KiB.
		{"get", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"},
		// 70 objects, 86 KiB.
		{"list", "/apis/rbac.authorization.k8s.io/v1/clusterroles"},
	} {
		b.Run(request.name, func(b *testing.B) {
			awaitSame(b, through, direct, request.path)
			sideBySide(b,
				way{name: "fleetgate", do: timed(func(ctx context.Context) error { return through.discard(ctx, request.path) })},
				way{name: "direct", do: timed(func(ctx context.Context) error { return direct.discard(ctx, request.path) })})
		})
	}
}

// apiClient asks an API server without decoding what it says.
type apiClient struct {
	url  string
	http *http.Client
}

func newAPIClient(b *testing.B, config *rest.Config) apiClient {
	b.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.CloseIdleConnections)
	return apiClient{url: strings.TrimSuffix(config.Host, "/"), http: client}
}

func throughHub(b *testing.B, f *fleet.Fleet) apiClient {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.MemberKubeconfig(f.Members[0].Name))
	if err != nil {
		b.Fatal(err)
	}
	return newAPIClient(b, config)
}

// directly is what a user would have who reaches the member without the hub: the
// same name and group, which the member's own RBAC knows.
func directly(b *testing.B, f *fleet.Fleet) apiClient {
	b.Helper()
	config, err := f.Members[0].Cluster.ConfigFor("admin", "fleetgate:admins")
	if err != nil {
		b.Fatal(err)
	}
	return newAPIClient(b, config)
}

func (c apiClient) get(ctx context.Context, path string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		const limit = 2 << 10
		body, _ := io.ReadAll(io.LimitReader(response.Body, limit))
		return fmt.Errorf("getting %s: %s: %s", path, response.Status, strings.TrimSpace(string(body)))
	}
	_, err = io.Copy(into, response.Body)
	return err
}

func (c apiClient) discard(ctx context.Context, path string) error {
	return c.get(ctx, path, io.Discard)
}

// awaitSame returns when both give the same answer: the member has joined then, its
// tunnel is open, and the placement of RBAC rules has let the user in.
func awaitSame(b *testing.B, through, direct apiClient, path string) {
	b.Helper()
	last := fmt.Errorf("getting %s: the answers through the hub and direct differ", path)
	same := func(ctx context.Context) (bool, error) {
		var answers [2]bytes.Buffer
		for i, client := range []apiClient{through, direct} {
			if err := client.get(ctx, path, &answers[i]); err != nil {
				last = err
				return false, nil
			}
		}
		return bytes.Equal(answers[0].Bytes(), answers[1].Bytes()), nil
	}
	const interval = 200 * time.Millisecond
	if err := wait.PollUntilContextTimeout(b.Context(), interval, patience, true, same); err != nil {
		b.Fatalf("%v: %v", err, last)
	}
}
