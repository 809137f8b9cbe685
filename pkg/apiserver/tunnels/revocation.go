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

// believed is how long the hub's API server may still accept a revoked token, because it caches
// token reviews for ten seconds. Agents that reconnected in that time are disconnected too.
const believed = 15 * time.Second

// Revocation disconnects a member when its agent's identity is deleted. The hub authenticates an
// agent only when it connects. Deleting the agent's account, or the Secret to which its tokens are
// bound, must therefore end its open tunnels too. Revocation reads only the metadata of objects
// with these two names.
type Revocation struct {
	Client metadata.Interface
	// Disconnect ends the tunnels of a member, if there are any. It must not block.
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

// handler handles deletions. After a gap in the watch it also detects a re-created object of the
// same name, because tokens are bound to the object and not to its name.
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
