// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// transformed are the representations of an object, besides itself, from which lists can be
// spliced.
var transformed = []string{"", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"}

// memberHeader returns the header of requests to members: of the formats that the caller accepts,
// those in JSON. Members must not compress replies, because compressed bytes cannot be cut into
// items.
func memberHeader(r *http.Request) (http.Header, error) {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	var kept []string
	for _, clause := range strings.Split(accepted, ",") {
		if clause = strings.TrimSpace(clause); clause == "" {
			continue
		}
		kind, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		switch kind {
		case "*/*", "application/*":
			kept = append(kept, "application/json")
		case "application/json":
			if slices.Contains(transformed, parameters["as"]) {
				kept = append(kept, clause)
			}
		}
	}
	if len(kept) == 0 && strings.TrimSpace(accepted) != "" {
		return nil, failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"a view of the fleet responds with application/json, as objects or tables: the request accepts neither")
	}
	if len(kept) == 0 {
		kept = []string{"application/json"}
	}
	header := http.Header{"Accept": {strings.Join(kept, ",")}}
	if agent := r.Header.Get("User-Agent"); agent != "" {
		header.Set("User-Agent", agent)
	}
	return header, nil
}

// wantsTable is true if the caller prefers a table.
func wantsTable(header http.Header) bool {
	first, _, _ := strings.Cut(header.Get("Accept"), ",")
	return strings.Contains(first, "as=Table")
}
