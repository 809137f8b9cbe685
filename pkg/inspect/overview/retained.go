// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// Retained is an object that an agent retained on its member when it left a Work.
type Retained struct {
	Member    string `json:"member"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Placement adopts the object if it selects the member again. Empty: none does.
	Placement string `json:"placement,omitempty"`
	// Reason is the agent's.
	Reason string `json:"reason"`
}

// Retained lists the retained objects of members, and the error of each member that could not be
// listed.
func (h *Hub) Retained(ctx context.Context, members []string) (found []Retained, failures map[string]error) {
	var mu sync.Mutex
	failures = map[string]error{}
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, member := range members {
		group.Go(func() error {
			of, err := h.retainedOf(ctx, member)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, of...)
			if err != nil {
				failures[member] = err
			}
			return nil
		})
	}
	_ = group.Wait() // No function returns an error.
	slices.SortFunc(found, func(a, b Retained) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found, failures
}

func (h *Hub) retainedOf(ctx context.Context, member string) ([]Retained, error) {
	client, err := metadata.NewForConfig(h.MemberConfig(member))
	if err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", member, err)
	}
	var found []Retained
	for _, kind := range retention.Kinds() {
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(kind.Resource).List(ctx, options)
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			if of, is := retained(member, kind.Kind, object.(*metav1.PartialObjectMetadata)); is {
				found = append(found, of)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing the %s of member %q: %w", kind.Resource.Resource, member, err)
		}
	}
	return found, nil
}

func retained(member, kind string, object *metav1.PartialObjectMetadata) (Retained, bool) {
	annotations := object.GetAnnotations()
	reason := annotations[placementv1beta1.RetainedAnnotation]
	return Retained{
		Member: member, Kind: kind, Namespace: object.Namespace, Name: object.Name,
		Placement: annotations[placementv1beta1.RetainedFromAnnotation], Reason: reason,
	}, reason != ""
}

// Release removes the marks of a retained object: no placement adopts it any more. It returns an
// error if the object is not retained.
func (h *Hub) Release(ctx context.Context, member string, kind retention.Kind, namespace, name string) error {
	client, err := metadata.NewForConfig(h.MemberConfig(member))
	if err != nil {
		return fmt.Errorf("connecting to member %q: %w", member, err)
	}
	resource := client.Resource(kind.Resource).Namespace(namespace)
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading %s %s of member %q: %w", kind.Kind, name, member, err)
	}
	if _, is := retained(member, kind.Kind, object); !is {
		return fmt.Errorf("%s %s of member %q is not retained", kind.Kind, name, member)
	}
	// The version makes the request fail if a placement adopts the object meanwhile.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": object.ResourceVersion,
		"annotations":     map[string]any{placementv1beta1.RetainedAnnotation: nil, placementv1beta1.RetainedFromAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	if _, err := resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("releasing %s %s of member %q: %w", kind.Kind, name, member, err)
	}
	return nil
}
