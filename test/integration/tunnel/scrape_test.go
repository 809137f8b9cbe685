// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// scrape reads the metrics of a process: values by name and labels as printed.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: %s", url, response.Status)
	}
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if value, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
			values[lines.Text()[:at]] = value
		}
	}
	return values, lines.Err()
}

// holdings are the resources of a process that can leak.
type holdings struct{ goroutines, descriptors, heapMiB float64 }

func held(ctx context.Context, url string) (holdings, error) {
	metrics, err := scrape(ctx, url)
	return holdings{
		goroutines: metrics["go_goroutines"], descriptors: metrics["process_open_fds"], heapMiB: metrics["go_memstats_heap_alloc_bytes"] / (1 << 20),
	}, err
}
