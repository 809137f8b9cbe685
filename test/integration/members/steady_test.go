// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/env"
)

// placedKinds are the kinds of which every object in the watched namespaces was placed.
func placedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	}
}

// followingKinds are kinds that controllers create from placed objects. Their objects neither
// appear nor disappear while the placed ones are unchanged.
func followingKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Version: "v1", Kind: "Pod"}}
}

// steadiness watches every change of placed objects on a member and collects violations, whichever
// hub the member belongs to: an object is deleted or re-created, has no owner or several, or a Pod
// appears or disappears.
type steadiness struct {
	namespaces []string
	mu         sync.Mutex // guards what follows
	uids       map[string]types.UID
	changes    int
	faults     []string
}

// watchSteadiness starts when all placed objects are in the namespaces. It ends with the calling
// spec or container.
func watchSteadiness(ctx context.Context, on *env.Cluster, namespaces ...string) *steadiness {
	GinkgoHelper()
	s := &steadiness{namespaces: namespaces, uids: map[string]types.UID{}}
	member, err := client.NewWithWatch(on.Config(), client.Options{})
	Expect(err).NotTo(HaveOccurred())
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	DeferCleanup(func() {
		cancel()
		group.Wait()
	})
	for _, kind := range append(placedKinds(), followingKinds()...) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		Expect(member.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			s.begin(kind, &list.Items[i])
		}
		events, err := member.Watch(watched, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		Expect(err).NotTo(HaveOccurred())
		group.Go(func() {
			for event := range events.ResultChan() {
				s.note(kind, event)
			}
			if watched.Err() == nil {
				s.fault("the watch on %ss has ended; later changes were missed", kind.Kind)
			}
		})
	}
	return s
}

// isWatched excludes objects of others: the root CA ConfigMap of each namespace, and other
// namespaces.
func (s *steadiness) isWatched(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) bool {
	if kind.Kind == "Namespace" {
		return slices.Contains(s.namespaces, object.Name)
	}
	return slices.Contains(s.namespaces, object.Namespace) && object.Name != "kube-root-ca.crt"
}

func (s *steadiness) begin(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) {
	if !s.isWatched(kind, object) {
		return
	}
	s.mu.Lock()
	s.uids[nameOf(kind, object)] = object.UID
	s.mu.Unlock()
	s.judge(kind, object)
}

func (s *steadiness) note(kind schema.GroupVersionKind, event watch.Event) {
	object, is := event.Object.(*metav1.PartialObjectMetadata)
	if !is {
		s.fault("the watch on %ss returned %v", kind.Kind, event.Object)
		return
	}
	if !s.isWatched(kind, object) {
		return
	}
	name := nameOf(kind, object)
	s.mu.Lock()
	s.changes++
	before, known := s.uids[name]
	s.mu.Unlock()
	switch {
	case event.Type == watch.Deleted:
		s.fault("%s was deleted", name)
	case !known:
		s.fault("%s was created", name)
	case before != object.UID:
		s.fault("%s was re-created", name)
	case object.DeletionTimestamp != nil:
		s.fault("%s is being deleted", name)
	default:
		s.judge(kind, object)
	}
}

// judge checks the owners of a placed object.
func (s *steadiness) judge(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) {
	if !slices.Contains(placedKinds(), kind) {
		return
	}
	var owners []string
	for _, owner := range object.OwnerReferences {
		owners = append(owners, owner.Kind+" "+owner.Name)
	}
	if len(owners) != 1 || object.OwnerReferences[0].Kind != "AppliedWork" {
		s.fault("%s has %d owners: %s", nameOf(kind, object), len(owners), strings.Join(owners, ", "))
	}
}

func (s *steadiness) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// found returns all violations so far, seen the number of changes and objects.
func (s *steadiness) found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

func (s *steadiness) seen() (objects, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uids), s.changes
}

func nameOf(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) string {
	return strings.TrimSpace(strings.Join([]string{kind.Kind, object.Namespace, object.Name}, " "))
}
