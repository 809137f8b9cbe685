// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxForbidden is how much of a 403 is looked at; those of impersonation have a few
// hundred bytes.
const maxForbidden = 8 << 10

// notGranted is in what every Kubernetes API server says to who may not impersonate.
var notGranted = []byte("cannot impersonate")

// send gives the member the request. If the member knows nothing of a grant that is still
// believed here, since its agent has forgotten the oldest of too many or somebody has
// changed its role, the agent is asked anew. The member has done nothing so far, so a
// request without a body is then sent once more, and the caller of another is told to.
func (x *exchange) send(out *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := x.route.send(out, x.request.Upgrade)
	if err != nil || x.own {
		return res, err
	}
	lost, err := lacksGrant(res)
	if err != nil || !lost {
		return res, err
	}
	_ = res.Body.Close() // It was read to its end.
	refusal, err := x.route.grants.within(out.Context(), x.as, time.Since(began))
	if err != nil {
		return nil, err
	}
	if refusal != "" {
		return nil, x.refused(refusal)
	}
	if hasBody(out) {
		return nil, unavailable(x.request.Member, fmt.Sprintf("member %q had not let the gateway act as user %q, and does now: ask again", x.request.Member, x.as.User))
	}
	return x.route.send(out, x.request.Upgrade)
}

// refused says that the agent has not granted the caller.
func (x *exchange) refused(refusal string) error {
	return apierrors.NewForbidden(proxyResource, x.request.Member, fmt.Errorf(
		"the agent of the member does not let the gateway act as user %q: %s", x.as.User, refusal))
}

// lacksGrant reports whether a reply says that the gateway may not act as its caller. Its
// body is as before.
func lacksGrant(res *http.Response) (bool, error) {
	if res.StatusCode != http.StatusForbidden || res.ContentLength <= 0 || res.ContentLength > maxForbidden {
		return false, nil
	}
	body := res.Body
	said, err := io.ReadAll(io.LimitReader(body, maxForbidden))
	if err != nil {
		_ = body.Close()
		return false, fmt.Errorf("reading why the member refuses: %w", err)
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(said), body}
	return bytes.Contains(said, notGranted), nil
}
