// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// apiClient reads from an API server without decoding the response.
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

func (c apiClient) get(ctx context.Context, path string, into io.Writer) error {
	return c.getAs(ctx, path, "application/json", into)
}

// getAs reads a response of this content type.
func (c apiClient) getAs(ctx context.Context, path, accept string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
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
