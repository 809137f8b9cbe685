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

	"fleetgate.io/fleetgate/test/env"
)

// placedKinds are those of which everything in the watched namespaces was placed.
func placedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	}
}

// followingKinds are made of what was placed: nothing of them comes or goes while that is as it
// was.
func followingKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Version: "v1", Kind: "Pod"}}
}

// steadiness watches what was placed on a member, change by change, and collects what must not
// be at any time, whichever hub the member belongs to: that an object goes, also if another of
// its name comes at once; that one has no owner or several; that a Pod goes or comes.
type steadiness struct {
	namespaces []string
	mu         sync.Mutex // guards what follows
	uids       map[string]types.UID
	changes    int
	faults     []string
}

// watchSteadiness begins when all that is to be placed in the namespaces is there, and ends with
// the spec or the container that calls it.
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
				s.fault("the watch on %ss has ended: what came after was not seen", kind.Kind)
			}
		})
	}
	return s
}

// isWatched leaves out what others make: a root CA in each namespace, and other namespaces.
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
		s.fault("the watch on %ss says %v", kind.Kind, event.Object)
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
		s.fault("%s has come", name)
	case before != object.UID:
		s.fault("%s is another one", name)
	case object.DeletionTimestamp != nil:
		s.fault("%s is being deleted", name)
	default:
		s.judge(kind, object)
	}
}

// judge looks at who owns what was placed.
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

// found are all faults so far, seen how many changes there were of how many objects.
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
