// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/webhook/author"
)

// authors reviews the access of the user who writes the object under review.
type authors struct{ reviews client.Writer }

// checker returns a Checker for the user of the admission request in the context.
func (a authors) checker(ctx context.Context) (*author.Checker, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("determining the author: %w", err)
	}
	return author.NewChecker(request.UserInfo, a.reviews), nil
}

// refused returns an error for each access that the hub denies.
func (a authors) refused(ctx context.Context, what string, questions []author.Question) (field.ErrorList, error) {
	checker, err := a.checker(ctx)
	if err != nil {
		return nil, err
	}
	return checker.Refused(ctx, what, questions)
}

// resourcesOf uses the hub's discovery. A kind that the hub serves only in another version
// is the same kind: a member may serve both.
func resourcesOf(mapper meta.RESTMapper) author.Resources {
	return func(kind schema.GroupVersionKind) (author.Resource, bool, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			mapping, err = mapper.RESTMapping(kind.GroupKind())
		}
		if meta.IsNoMatchError(err) {
			return author.Resource{}, false, nil
		}
		if err != nil {
			return author.Resource{}, false, err
		}
		return author.Resource{Name: mapping.Resource.Resource, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, true, nil
	}
}

// kindsAge is how long the kinds of the hub are cached. A newer kind is not reviewed, and is
// withheld until the next review.
const kindsAge = 5 * time.Second

// page is how many objects are listed at a time.
const page = 500

// contents reads namespaces of the hub, live.
type contents struct {
	kinds *selection.Kinds
	live  client.Reader

	// mu guards discovered, the time of the last discovery of the hub's kinds.
	mu         sync.Mutex
	discovered time.Time
}

// Kinds are those that a namespace carries with it.
func (c *contents) Kinds() ([]selection.Kind, error) {
	c.mu.Lock()
	if now := time.Now(); now.Sub(c.discovered) > kindsAge {
		c.kinds.Invalidate()
		c.discovered = now
	}
	c.mu.Unlock()
	return c.kinds.Contents()
}

// Holds looks at metadata only, page by page until something is found. Endpoints do not
// count: most are a controller's, and the API server warns of every look at them.
func (c *contents) Holds(ctx context.Context, namespace string, kind selection.Kind) (bool, error) {
	if kind.GroupKind() == (schema.GroupKind{Kind: "Endpoints"}) {
		return false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		err := c.live.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(list.Continue))
		if apierrors.IsForbidden(err) {
			return false, nil // The gateway places nothing that it cannot list.
		}
		if selection.OfTheKind(err) {
			return false, nil // Nothing of it is in the bound, and a kind that the hub cannot list must not stop others.
		}
		if err != nil {
			return false, fmt.Errorf("looking for %s in namespace %q: %w", kind.GVR().GroupResource(), namespace, err)
		}
		for i := range list.Items {
			if selection.Propagates(kind.GroupKind(), &list.Items[i]) {
				return true, nil
			}
		}
		if list.Continue == "" {
			return false, nil
		}
	}
}
