// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

const clockFormat = "15:04:05.000"

// kinds are those of the objects that are placed.
var kinds = map[string]schema.GroupVersionResource{
	"Namespace":             {Version: "v1", Resource: "namespaces"},
	"ConfigMap":             {Version: "v1", Resource: "configmaps"},
	"Secret":                {Version: "v1", Resource: "secrets"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"Widget":                {Group: widgetGroup, Version: "v2", Resource: "widgets"},
}

// deletion is an entry of the ledger.
type deletion struct {
	spot
	uid types.UID
	at  time.Time
}

// ledger watches the objects on the members and records each deletion, also of objects that are
// re-created at once.
type ledger struct {
	mu        sync.Mutex
	deletions []deletion
	live      map[types.UID]spot
}

// openLedger watches the members until the spec ends.
func openLedger(ctx context.Context) *ledger {
	GinkgoHelper()
	l := &ledger{live: map[types.UID]spot{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	for _, m := range running.Members {
		watching, err := metadata.NewForConfig(m.Cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		informers := metadatainformer.NewSharedInformerFactory(watching, 0)
		for kind, resource := range kinds {
			_, err := informers.ForResource(resource).Informer().AddEventHandler(l.recorder(m.Name, kind))
			Expect(err).NotTo(HaveOccurred())
		}
		informers.Start(ctx.Done())
		for resource, synced := range informers.WaitForCacheSync(ctx.Done()) {
			Expect(synced).To(BeTrue(), resource.String())
		}
		DeferCleanup(func() {
			stop()
			informers.Shutdown()
		})
	}
	return l
}

// recorder records events of one kind. A watch that was interrupted lists again, and its informer
// then reports the difference: an object with another UID, or an object that is gone.
func (l *ledger) recorder(member, kind string) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) { l.appeared(member, kind, added) },
		UpdateFunc: func(before, after any) {
			if before.(metav1.Object).GetUID() != after.(metav1.Object).GetUID() {
				l.disappeared(member, kind, before)
			}
			l.appeared(member, kind, after)
		},
		DeleteFunc: func(deleted any) {
			if missed, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
				deleted = missed.Obj
			}
			l.disappeared(member, kind, deleted)
		},
	}
}

func (l *ledger) appeared(member, kind string, of any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ours := spotOf(member, kind, of.(metav1.Object)); ours {
		l.live[of.(metav1.Object).GetUID()] = s
	}
}

func (l *ledger) disappeared(member, kind string, of any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ours := spotOf(member, kind, of.(metav1.Object)); ours {
		l.deletions = append(l.deletions, deletion{spot: s, uid: of.(metav1.Object).GetUID(), at: time.Now()})
		delete(l.live, of.(metav1.Object).GetUID())
	}
}

// spotOf returns false for objects of other namespaces and of Kubernetes' controllers.
func spotOf(member, kind string, of metav1.Object) (spot, bool) {
	s := spot{member, object{kind, of.GetNamespace(), of.GetName()}}
	namespace := s.namespace
	if kind == "Namespace" {
		namespace = s.name
	}
	return s, strings.HasPrefix(namespace, namespacePrefix) && s.name != "kube-root-ca.crt"
}

// catchesUp returns an error until the ledger has seen the end of each object that does not exist.
func (l *ledger) catchesUp(found map[spot]instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, s := range l.live {
		if found[s].uid != uid {
			return fmt.Errorf("the ledger has not seen the deletion of %s (%s) yet", s, uid)
		}
	}
	for s, has := range found {
		if _, known := l.live[has.uid]; !known {
			return fmt.Errorf("the ledger has not seen %s (%s) yet", s, has.uid)
		}
	}
	return nil
}

// since returns the deletions after the first n.
func (l *ledger) since(n int) []deletion {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.deletions[n:])
}

// judge finds the cause of each deletion, and describes those that have none.
func (m *model) judge(deletions []deletion) (causes map[string]int, without []string) {
	needed := m.needed()
	causes = map[string]int{}
	for _, d := range deletions {
		var last *cause
		for _, c := range m.causes[d.spot] {
			if !c.at.After(d.at) {
				last = &c
			}
		}
		_, still := needed[d.spot]
		switch {
		case last != nil:
			causes[last.why]++
		case still || len(m.causes[d.spot]) > 0:
			without = append(without, fmt.Sprintf("%s %s (%s) was deleted without a cause", d.at.Format(clockFormat), d.spot, d.uid))
		default:
			causes["was not needed"]++
		}
	}
	return causes, without
}

// instance is an object that a member has.
type instance struct {
	uid      types.UID
	value    string
	retained bool
	ending   bool
}

// valueLabel has the value of an object.
const valueLabel = "chaos.example.org/value"

// look lists what the members have.
func look(ctx context.Context) (map[spot]instance, error) {
	found := map[spot]instance{}
	for member, on := range members {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kinds[kind].GroupVersion().WithKind(kind + "List"))
			if err := on.List(ctx, list); err != nil {
				return nil, fmt.Errorf("listing %s on %s: %w", kind, member, err)
			}
			for i := range list.Items {
				of := &list.Items[i]
				if s, ours := spotOf(member, kind, of); ours {
					_, retained := of.Annotations[retainedAnnotation]
					found[s] = instance{uid: of.UID, value: of.Labels[valueLabel], retained: retained, ending: of.DeletionTimestamp != nil}
				}
			}
		}
	}
	return found, nil
}
