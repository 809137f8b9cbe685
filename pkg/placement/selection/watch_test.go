// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
)

// A reconcile during the shutdown started another informer beside those that the shutdown waited for,
// and waited for it until its timeout.
func TestWatch_StartsNoInformerAfterTheEnd(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(nil, metadatafake.NewSimpleMetadataClient(scheme), nil, time.Millisecond)
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(running) }()
	<-w.started
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true}
	if err := w.watch(ctx, types.NamespacedName{Name: "shop"}, nil, []Kind{kind}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWatch_RunsWhileAPlacementSelectsTheType(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(nil, metadatafake.NewSimpleMetadataClient(scheme), nil, time.Millisecond)
	w.Forget(types.NamespacedName{Name: "gone"}) // Before the start.
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(running) }()
	configMaps := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true}
	secrets := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Namespaced: true}
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	watch := func(placement types.NamespacedName, kinds ...Kind) {
		t.Helper()
		if err := w.watch(t.Context(), placement, nil, kinds); err != nil {
			t.Fatal(err)
		}
	}
	watched := func(want ...Kind) {
		t.Helper()
		for _, kind := range []Kind{configMaps, secrets} {
			if is := w.watches.Of(kind.GVR()) != nil; is != slices.Contains(want, kind) {
				t.Errorf("watch of %s exists: %t", kind.Resource, is)
			}
		}
	}
	watch(one, configMaps, secrets)
	watch(two, secrets)
	watched(configMaps, secrets)
	watch(one, configMaps)
	watched(configMaps, secrets)
	w.Forget(two)
	watched(configMaps)
	w.Forget(one)
	w.Forget(one)
	watched()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
