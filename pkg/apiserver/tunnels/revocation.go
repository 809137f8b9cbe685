// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// believed is how long the hub's API server may still take a revoked token for good: it
// remembers its answers for ten seconds. Who came back in between goes too.
const believed = 15 * time.Second

// Revocation ends the tunnels of a member whose agent's identity was taken away. The
// hub authenticates an agent when it connects and never again, but deleting the
// agent's account, or the Secret to which its tokens are bound, is meant to end what
// they opened. Only metadata of objects of these two names is read.
type Revocation struct {
	Client metadata.Interface
	// Disconnect ends the tunnels of a member; one without is no matter. It must not
	// block.
	Disconnect func(member string)
}

// Run watches until ctx ends.
func (r *Revocation) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for resource, name := range map[string]string{
		"serviceaccounts": clusterv1beta1.AgentAccount,
		"secrets":         clusterv1beta1.AgentCredentialSecret,
	} {
		informer := metadatainformer.NewFilteredMetadataInformer(r.Client,
			schema.GroupVersionResource{Version: corev1.SchemeGroupVersion.Version, Resource: resource},
			metav1.NamespaceAll, 0, cache.Indexers{},
			func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
			},
		).Informer()
		if _, err := informer.AddEventHandler(r.handler(ctx)); err != nil {
			return fmt.Errorf("watching %s %s: %w", resource, name, err)
		}
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	<-ctx.Done()
	return nil
}

// handler sees deletions, and, after a gap in the watch, that another object has the
// name: tokens are bound to the object, not to its name.
func (r *Revocation) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, _ := before.(metav1.Object)
			current, ok := after.(metav1.Object)
			if ok && old != nil && old.GetUID() != current.GetUID() {
				r.revoked(ctx, current.GetNamespace())
			}
		},
		DeleteFunc: func(deleted any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(deleted)
			if err != nil {
				return
			}
			namespace, _, err := cache.SplitMetaNamespaceKey(key)
			if err == nil {
				r.revoked(ctx, namespace)
			}
		},
	}
}

func (r *Revocation) revoked(ctx context.Context, namespace string) {
	member, ok := clusterv1beta1.MemberOfNamespace(namespace)
	if !ok {
		return
	}
	r.Disconnect(member)
	again := time.AfterFunc(believed, func() { r.Disconnect(member) })
	context.AfterFunc(ctx, func() { again.Stop() })
}
