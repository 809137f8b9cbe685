// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// kindTimeout is how long a reconcile waits for the member to serve kinds that it has just
	// defined. After that the watch triggers the next reconcile.
	kindTimeout  = 5 * time.Second
	kindInterval = 50 * time.Millisecond

	// kindRenewal is the minimum interval between discovery runs. If a kind is removed, a thousand
	// works of it trigger one run, not a thousand.
	kindRenewal = 5 * time.Second
)

// kindFinder maps kinds to resources; apimeta.RESTMapper implements it.
type kindFinder interface {
	RESTMapping(schema.GroupKind, ...string) (*apimeta.RESTMapping, error)
}

// servedKinds caches the discovery of a member. A mapper discovers kinds that it does not know, but
// never refreshes those that it knows. The response to a write reveals that a kind was removed or
// has another scope or plural.
type servedKinds struct {
	fresh func() (kindFinder, error) // returns an empty finder
	clock clock.PassiveClock

	mu      sync.Mutex // guards what follows
	current kindFinder
	renewed time.Time
}

var _ kindFinder = (*servedKinds)(nil)

// RESTMapping maps a kind to its resource.
func (k *servedKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	k.mu.Lock()
	current := k.current
	k.mu.Unlock()
	return current.RESTMapping(kind, versions...)
}

// renew discards the cache, unless that was just done.
func (k *servedKinds) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if now.Sub(k.renewed) < kindRenewal {
		return
	}
	if current, err := k.fresh(); err == nil { // otherwise the next write of such a kind retries
		k.current, k.renewed = current, now
	}
}

// now maps a kind to the resource and version that the member prefers at this moment, past the cache.
func (k *servedKinds) now(kind schema.GroupKind) (*apimeta.RESTMapping, error) {
	finder, err := k.fresh()
	if err != nil {
		return nil, err
	}
	return finder.RESTMapping(kind)
}

// isUnserved distinguishes the 404 of a path that the API server does not serve from that of a
// missing object or namespace. Only the response to a write proves that a kind is not served: some
// kinds can be created but not read.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// noKind is the refusal of a manifest whose kind the member does not serve.
func noKind(kind schema.GroupVersionKind) *refusal.Refusal {
	return &refusal.Refusal{Reason: Unserved, Message: fmt.Sprintf(
		"The member has no kind %s in %s: install its CustomResourceDefinition; the manifest is then applied",
		kind.Kind, kind.GroupVersion())}
}

// inAnotherVersion is the refusal of a manifest whose kind the member serves in another version: a newer member has
// removed that of the manifest, or an older one lacks it. It returns nil if the member does not serve the kind.
func inAnotherVersion(kinds kindFinder, kind schema.GroupVersionKind) *refusal.Refusal {
	if served, err := kinds.RESTMapping(kind.GroupKind()); err == nil {
		return &refusal.Refusal{Reason: Unserved, Message: fmt.Sprintf("The member has no kind %s in %s, but in %s: write the manifest in that version",
			kind.Kind, kind.GroupVersion(), served.GroupVersionKind.GroupVersion())}
	}
	return nil
}

// ownKinds lists the kinds that items lack and that applied CustomResourceDefinitions of the same
// work define.
func ownKinds(items []Item, results []ManifestResult) []schema.GroupVersionKind {
	defined := map[schema.GroupKind]bool{}
	for place, it := range items {
		if it.object != nil && results != nil && results[place].Refused == nil && results[place].Err == nil {
			if kind := definedKind(it.object); kind.Kind != "" {
				defined[kind] = true
			}
		}
	}
	var missingNamespaces []schema.GroupVersionKind
	for _, it := range items {
		if it.UnknownKind && defined[it.object.GroupVersionKind().GroupKind()] {
			missingNamespaces = append(missingNamespaces, it.object.GroupVersionKind())
		}
	}
	return missingNamespaces
}

// definedKind returns the kind that a CustomResourceDefinition defines; empty for other objects.
func definedKind(object *unstructured.Unstructured) schema.GroupKind {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupKind{}
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// AwaitKinds waits until the member serves the kinds that items lack and that the same work has
// just defined. It reports whether there are such kinds and all of them are served. A definition
// becomes established shortly after the write, and served shortly after that.
func (e *Engine) AwaitKinds(ctx context.Context, items []Item, results []ManifestResult) bool {
	missingNamespaces := ownKinds(items, results)
	if len(missingNamespaces) == 0 {
		return false
	}
	err := wait.PollUntilContextTimeout(ctx, kindInterval, kindTimeout, true, func(ctx context.Context) (bool, error) {
		for _, kind := range missingNamespaces {
			mapping, err := e.kinds.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				//lint:ignore nilerr The kind is not served yet; the poll continues.
				return false, nil
			}
			if _, err := e.member.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
				return false, nil
			}
		}
		return true, nil
	})
	return err == nil
}
