// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

const healthTimeout = 5 * time.Second

// healthREST checks whether a member responds now. It reads readyz of the member's API server with
// the gateway's own account.
type healthREST struct{ handler *Handler }

func (r *healthREST) New() runtime.Object { return &gatewayv1alpha1.ClusterGateway{} }

func (r *healthREST) Destroy() {}

func (r *healthREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	found, ok := r.handler.config.Members.get(name)
	if !ok {
		return nil, notFound(name)
	}
	_, err := r.handler.config.Credentials.Credential(name)
	found.credential.present = err == nil
	gateway := view(found)
	gateway.Status = gatewayv1alpha1.ClusterGatewayStatus{}
	if err != nil {
		gateway.Status.HealthyReason = gatewayv1alpha1.HealthyReasonNoCredential
		//lint:ignore nilerr The missing credential is the result.
		return gateway, nil
	}
	ready, err := r.handler.ready(ctx, name)
	switch {
	case err != nil && errors.Is(err, r.handler.config.NotConnected):
		gateway.Status.HealthyReason = gatewayv1alpha1.HealthyReasonNotConnected
	case err != nil || !ready:
		gateway.Status.HealthyReason = gatewayv1alpha1.HealthyReasonUnhealthy
	default:
		gateway.Status.Healthy = true
	}
	return gateway, nil
}

func (h *Handler) ready(ctx context.Context, member string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+h.config.MemberServerName+"/readyz", nil)
	if err != nil {
		return false, err
	}
	res, err := h.routes.of(member).send(req, false)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	return res.StatusCode == http.StatusOK, nil
}
