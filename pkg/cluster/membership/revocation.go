// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// believed is how long the hub's API server may still take a revoked token for good: it
// remembers its answers for ten seconds.
const believed = 15 * time.Second

// OnRevoked calls do with the name of each member whose credential was revoked, at once
// and again when nobody believes the credential any more: who came back in between goes
// too. It needs a cache that NewMemberCache made, and ends with ctx.
func OnRevoked(ctx context.Context, members cache.Cache, do func(member string)) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := members.GetInformer(ctx, secret)
	if err != nil {
		return fmt.Errorf("watching members' credentials: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		member, ok := memberOfDeleted(obj)
		if !ok {
			return
		}
		do(member)
		again := time.AfterFunc(believed, func() { do(member) })
		context.AfterFunc(ctx, func() { again.Stop() })
	}})
	if err != nil {
		return fmt.Errorf("watching members' credentials: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) })
	return nil
}

func memberOfDeleted(obj any) (string, bool) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	secret, ok := obj.(client.Object)
	if !ok || !isCredential(secret) {
		return "", false
	}
	return clusterv1beta1.MemberOfNamespace(secret.GetNamespace())
}
