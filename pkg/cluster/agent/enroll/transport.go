// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// bearer adds the current token to each request and detects whether the hub rejects it.
type bearer struct {
	enroller *Enroller
	next     http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*bearer)(nil)

// RoundTrip implements http.RoundTripper. A request with its own token keeps it.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	own := request.Header.Get("Authorization") != ""
	if current := b.enroller.current.Load(); current != nil && !own {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+current.token)
	}
	response, err := b.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized && !own {
		b.enroller.doubt()
	}
	if err != nil && request.Context().Err() == nil && b.enroller.isUnproven() {
		b.enroller.doubt()
	}
	return response, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
