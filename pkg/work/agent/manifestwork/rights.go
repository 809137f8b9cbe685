// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/metainformer"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// gatherRights delays the reaction to a change of rights: more changes may follow, and the
// cluster's API servers have to observe it themselves first.
const gatherRights = time.Second

// rightsWatch watches roles and bindings on the cluster once an executor is used. If the agent
// lacks the right to watch them, it sends reviews more often instead.
type rightsWatch struct {
	client metadata.Interface
	// forget is called when rights have changed, before events.
	forget func()
	// events receives an event when rights have changed.
	events chan event.GenericEvent

	needed  chan struct{}
	changed chan struct{}
	// watches is nil until needed.
	watches atomic.Pointer[metainformer.Set]
}

func newRightsWatch(member *engine.Member) (*rightsWatch, error) {
	lasting := *member.Client
	lasting.Timeout = 0 // watches are long-running requests
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(member.Config), &lasting)
	if err != nil {
		return nil, fmt.Errorf("making the cluster's client: %w", err)
	}
	return &rightsWatch{
		client: client, events: make(chan event.GenericEvent), needed: make(chan struct{}, 1), changed: make(chan struct{}, 1)}, nil
}

func rightsResources() map[schema.GroupVersionResource]struct{} {
	all := map[schema.GroupVersionResource]struct{}{}
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		all[rbacv1.SchemeGroupVersion.WithResource(resource)] = struct{}{}
	}
	return all
}

// need starts the watch of rights.
func (w *rightsWatch) need() {
	if w != nil {
		signal(w.needed)
	}
}

// sees reports whether the watch delivers changes of rights. It reacts late if the right to watch
// is revoked.
func (w *rightsWatch) sees() bool {
	if w == nil {
		return false
	}
	watches := w.watches.Load()
	if watches == nil {
		return false
	}
	for resource := range rightsResources() {
		if watch := watches.Of(resource); watch == nil || !watch.HasSynced() {
			return false
		}
	}
	return true
}

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a signal is pending already
	}
}

// Run watches from the first need until the context ends.
func (w *rightsWatch) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.needed:
	}
	watches := metainformer.Begin(ctx, w.client, metainformer.Options{Keep: onlyVersion, Handler: w.handler, Failed: failed})
	defer watches.End()
	if watches.Need(rightsResources()) != nil {
		return nil // the context has ended
	}
	w.watches.Store(watches)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(gatherRights):
		}
		w.forget()
		select {
		case <-ctx.Done():
			return nil
		case w.events <- event.GenericEvent{Object: &workv1.ManifestWork{}}:
		}
	}
}

// handler signals every change except the initial list.
func (w *rightsWatch) handler(context.Context, schema.GroupVersionResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				signal(w.changed)
			}
		},
		UpdateFunc: func(before, after any) {
			if versionIn(before) != versionIn(after) {
				signal(w.changed)
			}
		},
		DeleteFunc: func(any) { signal(w.changed) },
	}
}

func versionIn(object any) string {
	if seen, is := object.(*metav1.PartialObjectMetadata); is {
		return seen.ResourceVersion
	}
	return ""
}

// onlyVersion keeps only the name and version of a role or binding.
func onlyVersion(object any) (any, error) {
	seen, is := object.(*metav1.PartialObjectMetadata)
	if !is {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name, ResourceVersion: seen.ResourceVersion}}, nil
}

// failed logs why rights are not watched. An agent with few rights does not need to watch them.
func failed(ctx context.Context, watch *metainformer.Watch, _ *cache.Reflector, err error) {
	klog.FromContext(ctx).V(1).Info("Watch of roles and bindings failed; retrying", "resource", watch.Resource, "err", err)
}
