// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answers implements ProcessOptions.Ready for a process that serves HTTP: it returns nil if the URL
// answers 200. The client may be http.DefaultClient. The error has the response.
func Answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		const limit = 2 << 10
		body, err := io.ReadAll(io.LimitReader(response.Body, limit))
		return errors.Join(fmt.Errorf("%s answers %s: %s", request.URL.Path, response.Status, strings.TrimSpace(string(body))), err)
	}
}
