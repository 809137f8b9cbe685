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
	// kindPatience is how long a look waits until kinds are served that it has just
	// defined. After that the watch tells.
	kindPatience = 5 * time.Second
	kindInterval = 50 * time.Millisecond

	// kindRenewal is how often what is known of a member's kinds is thrown away at most: a
	// thousand works of a kind that was removed ask the member anew once, not each.
	kindRenewal = 5 * time.Second
)

// kindFinder tells where objects of a kind are found; apimeta.RESTMapper is one.
type kindFinder interface {
	RESTMapping(schema.GroupKind, ...string) (*apimeta.RESTMapping, error)
}

// servedKinds finds kinds by what a member said of them. A mapper asks for kinds that it
// does not know, and never again for those that it knows: one that was removed, or has
// another scope or plural now, is found out by the member's answer to a write.
type servedKinds struct {
	fresh func() (kindFinder, error) // knows nothing yet
	clock clock.PassiveClock

	mu      sync.Mutex // guards what follows
	current kindFinder
	renewed time.Time
}

var _ kindFinder = (*servedKinds)(nil)

// RESTMapping says where objects of a kind are found.
func (k *servedKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	k.mu.Lock()
	current := k.current
	k.mu.Unlock()
	return current.RESTMapping(kind, versions...)
}

// renew has the member asked again, unless that was just done.
func (k *servedKinds) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if now.Sub(k.renewed) < kindRenewal {
		return
	}
	if current, err := k.fresh(); err == nil { // else the next write of such a kind tries again
		k.current, k.renewed = current, now
	}
}

// isUnserved tells the 404 of a path that a member's API server does not have from that
// of an object, or of its namespace. Only the answer to a write says that there is no such
// kind: some kinds can be created and not read.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// noKind is the refusal of a manifest whose kind the member has not.
func noKind(kind schema.GroupVersionKind) *refusal.Refusal {
	return &refusal.Refusal{Reason: Unserved, Message: fmt.Sprintf(
		"The member has no kind %s in %s: install its CustomResourceDefinition, the manifest is applied as soon as it is there",
		kind.Kind, kind.GroupVersion())}
}

// ownKinds lists the kinds that items lack and that CustomResourceDefinitions of
// the same Work define, which are applied.
func ownKinds(items []Item, outcomes []Outcome) []schema.GroupVersionKind {
	defined := map[schema.GroupKind]bool{}
	for place, it := range items {
		if it.object != nil && outcomes != nil && outcomes[place].Refused == nil && outcomes[place].Err == nil {
			if kind := definedKind(it.object); kind.Kind != "" {
				defined[kind] = true
			}
		}
	}
	var lacking []schema.GroupVersionKind
	for _, it := range items {
		if it.UnknownKind && defined[it.object.GroupVersionKind().GroupKind()] {
			lacking = append(lacking, it.object.GroupVersionKind())
		}
	}
	return lacking
}

// definedKind is the kind that an object defines, if it is a
// CustomResourceDefinition.
func definedKind(object *unstructured.Unstructured) schema.GroupKind {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupKind{}
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// AwaitKinds waits until objects of the kinds can be written that items lack and the
// same work has just defined, and reports whether there are any and they can. A
// definition is established a moment after it is written, and served another moment
// later.
func (e *Engine) AwaitKinds(ctx context.Context, items []Item, outcomes []Outcome) bool {
	lacking := ownKinds(items, outcomes)
	if len(lacking) == 0 {
		return false
	}
	err := wait.PollUntilContextTimeout(ctx, kindInterval, kindPatience, true, func(ctx context.Context) (bool, error) {
		for _, kind := range lacking {
			mapping, err := e.kinds.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				//lint:ignore nilerr It is not there yet: it is asked for again.
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
