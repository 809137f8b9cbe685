// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enqueue_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// A change of a namespace requeues all Secrets in it except Kubernetes' own.
func ExampleThose() {
	setUp := func(mgr ctrl.Manager, r reconcile.Reconciler) error {
		secretsIn := func(ctx context.Context, namespace client.Object) []reconcile.Request {
			ours := func(secret *corev1.Secret) bool { return secret.Type == corev1.SecretTypeOpaque }
			return enqueue.Those(ctx, mgr.GetCache(), &corev1.SecretList{}, ours, client.InNamespace(namespace.GetName()))
		}
		return ctrl.NewControllerManagedBy(mgr).
			For(&corev1.Secret{}).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(secretsIn)).
			Complete(r)
	}
	_ = setUp // in main, with a manager
}
