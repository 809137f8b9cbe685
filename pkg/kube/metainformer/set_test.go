// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package metainformer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func object(kind, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"large": "text"}},
	}
}

// ear records the events of a Set.
type ear struct {
	mu    sync.Mutex
	heard []string
	ctx   map[schema.GroupVersionResource]context.Context
}

func (e *ear) handler(ctx context.Context, resource schema.GroupVersionResource) cache.ResourceEventHandler {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx[resource] = ctx
	return cache.ResourceEventHandlerFuncs{AddFunc: func(added any) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, resource.Resource+"/"+added.(metav1.Object).GetName())
	}}
}

func (e *ear) has() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.heard))
}

func begin(t *testing.T, objects ...runtime.Object) (*Set, *ear, *metadatafake.FakeMetadataClient) {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, e := metadatafake.NewSimpleMetadataClient(scheme, objects...), &ear{ctx: map[schema.GroupVersionResource]context.Context{}}
	set := Begin(t.Context(), client, Options{Keep: withoutLabels, Handler: e.handler, Failed: stopForbidden})
	return set, e, client
}

func withoutLabels(object any) (any, error) {
	object.(metav1.Object).SetLabels(nil)
	return object, nil
}

func stopForbidden(_ context.Context, watch *Watch, _ *cache.Reflector, err error) {
	if apierrors.IsForbidden(err) {
		watch.GiveUp()
	}
}

func need(t *testing.T, set *Set, resources ...schema.GroupVersionResource) {
	t.Helper()
	needed := map[schema.GroupVersionResource]struct{}{}
	for _, resource := range resources {
		needed[resource] = struct{}{}
	}
	if err := set.Need(needed); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestNeed_StartsAndStopsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, e, _ := begin(t, object("ConfigMap", "x"), object("Secret", "y"))
		need(t, set, configMaps)
		if heard := e.has(); !slices.Equal(heard, []string{"configmaps/x"}) || set.Of(secrets) != nil {
			t.Errorf("heard %v", heard)
		}
		first := set.Of(configMaps)
		if kept := first.GetStore().List(); len(kept) != 1 || kept[0].(metav1.Object).GetLabels() != nil {
			t.Errorf("kept %v", kept)
		}
		need(t, set, configMaps, secrets)
		if heard := e.has(); !slices.Equal(heard, []string{"configmaps/x", "secrets/y"}) || set.Of(configMaps) != first {
			t.Errorf("heard %v, and the first watch is another: %t", heard, set.Of(configMaps) != first)
		}
		need(t, set, secrets)
		if set.Of(configMaps) != nil || !first.GivenUp() || e.ctx[configMaps].Err() == nil || e.ctx[secrets].Err() != nil {
			t.Error("a watch without users continues, or another one ended with it")
		}
		set.End()
		if e.ctx[secrets].Err() == nil {
			t.Error("a watch continues after End")
		}
	}) // It fails if a goroutine is left.
}

func TestEnd_NoWatchStartsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, e, _ := begin(t)
		set.End()
		if err := set.Need(map[schema.GroupVersionResource]struct{}{configMaps: {}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if set.Of(configMaps) != nil || len(e.ctx) != 0 {
			t.Error("a watch has started")
		}
	})
}

func TestGiveUp_WatchStaysUntilForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, _, client := begin(t)
		defer set.End()
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(secrets.GroupResource(), "", errors.New("no"))
		})
		need(t, set, configMaps, secrets)
		refused := set.Of(secrets)
		if given := set.GivenUp(); len(given) != 1 || given[0] != refused || refused.GiveUp() {
			t.Fatalf("given up are %v", given)
		}
		need(t, set, configMaps, secrets)
		if set.Of(secrets) != refused {
			t.Error("it was started again by itself")
		}
		if !set.Forget(refused) || set.Forget(refused) {
			t.Error("it is not forgotten just once")
		}
		need(t, set, configMaps, secrets)
		if set.Of(secrets) == refused || set.Of(secrets) == nil {
			t.Error("it was not started again")
		}
	})
}
