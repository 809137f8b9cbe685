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

// maxForbidden limits how much of a 403 is inspected. Those about impersonation have a few hundred
// bytes.
const maxForbidden = 8 << 10

// notGranted is part of the message of every Kubernetes API server for a forbidden impersonation.
var notGranted = []byte("cannot impersonate")

// send sends the request to the member. The member may lack a grant that is still cached here,
// because its agent dropped the oldest of too many or somebody changed its role. Then the grant is
// requested again. The member has not executed the request, so it is repeated. If its body is gone, the
// response asks the caller to retry.
func (x *exchange) send(out *http.Request) (*http.Response, error) {
	began := time.Now()
	res, err := x.route.send(out, x.request.Upgrade)
	if err != nil || x.ownAccount {
		return res, err
	}
	lost, err := lacksGrant(res)
	if err != nil || !lost {
		return res, err
	}
	_ = res.Body.Close() // The body was read to its end.
	refusal, err := x.route.grants.within(out.Context(), x.as, time.Since(began))
	if err != nil {
		return nil, err
	}
	if refusal != "" {
		return nil, x.refused(refusal)
	}
	second, ok := again(out)
	if !ok {
		return nil, unavailable(x.request.Member, fmt.Sprintf("the agent of member %q has just granted the gateway to act as user %q: retry", x.request.Member, x.as.User))
	}
	return x.route.send(second, x.request.Upgrade)
}

// refused says that the agent has not granted the caller.
func (x *exchange) refused(refusal string) error {
	return apierrors.NewForbidden(proxyResource, x.request.Member, fmt.Errorf(
		"the agent of the member does not let the gateway act as user %q: %s", x.as.User, refusal))
}

// lacksGrant reports whether a reply says that the gateway is forbidden to impersonate its caller.
// It leaves the body readable.
func lacksGrant(res *http.Response) (bool, error) {
	if res.StatusCode != http.StatusForbidden || res.ContentLength <= 0 || res.ContentLength > maxForbidden {
		return false, nil
	}
	body := res.Body
	content, err := io.ReadAll(io.LimitReader(body, maxForbidden))
	if err != nil {
		_ = body.Close()
		return false, fmt.Errorf("reading the refusal of the member: %w", err)
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(content), body}
	return bytes.Contains(content, notGranted), nil
}
