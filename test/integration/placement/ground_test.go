// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// ground is the state of members, by the contract between hub and agents. An agent applies a Work's
// manifests once the Work has its finalizer. It removes them, unless it should abandon them, before it
// removes the finalizer of a deleted Work.
type ground struct {
	leave func()

	// mu guards the fields below.
	mu sync.Mutex
	// The objects of each Work, by the Work's namespace and name, then by their own.
	objects map[client.ObjectKey]map[string]string
}

func newGround(members []string) *ground {
	ctx, cancel := context.WithCancel(context.Background())
	g := &ground{objects: map[client.ObjectKey]map[string]string{}}
	var running sync.WaitGroup
	g.leave = sync.OnceFunc(func() { cancel(); running.Wait() })
	DeferCleanup(g.leave)
	for _, name := range members {
		running.Go(func() {
			defer GinkgoRecover()
			for ctx.Err() == nil {
				namespace := clusterv1beta1.MemberNamespace(name)
				serve(ctx, namespace, g.apply, func(there map[client.ObjectKey]bool) { g.keep(namespace, there) })
			}
		})
	}
	return g
}

// apply simulates an agent's handling of a Work.
func (g *ground) apply(work *placementv1beta1.Work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := client.ObjectKeyFromObject(work)
	if work.DeletionTimestamp != nil {
		delete(g.objects, key)
		return
	}
	if !controllerutil.ContainsFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return
	}
	g.objects[key] = manifestsOf(work)
}

// keep removes the state of Works that no longer exist.
func (g *ground) keep(namespace string, there map[client.ObjectKey]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.objects, func(work client.ObjectKey, _ map[string]string) bool {
		return work.Namespace == namespace && !there[work]
	})
}

func manifestsOf(work *placementv1beta1.Work) map[string]string {
	objects := map[string]string{}
	for _, m := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(m.Raw, &object); err != nil {
			objects[err.Error()] = ""
			continue
		}
		objects[fmt.Sprintf("%s %s/%s", object.Kind, object.Namespace, object.Name)] = string(m.Raw)
	}
	return objects
}

// of is what a member has through a Work.
func (g *ground) of(work client.ObjectKey) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.objects[work]
}

// all are the Works through which members have objects.
func (g *ground) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for key := range g.objects {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}
