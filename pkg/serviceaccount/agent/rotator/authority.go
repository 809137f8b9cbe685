// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"bytes"
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// caInterval is the interval of checks whether the member's API server has another CA.
const caInterval = 30 * time.Second

// caChanges are signals that the CA has changed.
type caChanges chan event.TypedGenericEvent[struct{}]

// follow sends a signal whenever the CA has changed, until the context ends. The kubelet replaces the
// file in a running Pod, which no watch reports. Until the Secrets on the hub have the new CA, the
// gateway rejects the member's API server.
func (c caChanges) follow(ctx context.Context, current func() ([]byte, error)) error {
	known, _ := current()
	ticker := time.NewTicker(caInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		ca, err := current()
		if err != nil || bytes.Equal(ca, known) {
			continue // Each reconcile reports the error.
		}
		known = ca
		select {
		case c <- event.TypedGenericEvent[struct{}]{}:
		case <-ctx.Done():
		}
	}
}

// source enqueues all ManagedServiceAccounts for each signal.
func (c caChanges) source(r *Reconciler) source.Source {
	return source.Channel((chan event.TypedGenericEvent[struct{}])(c), handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ struct{}) []ctrl.Request {
		return enqueue.All(ctx, r.Hub, &authenticationv1beta1.ManagedServiceAccountList{}, client.InNamespace(r.HubNamespace))
	}))
}
