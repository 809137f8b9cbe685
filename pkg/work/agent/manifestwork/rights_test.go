// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func role(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"},
	}
}

func TestRightsWatch_StartsWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := runtime.NewScheme()
		if err := metav1.AddMetaToScheme(known); err != nil {
			t.Fatal(err)
		}
		client := metadatafake.NewSimpleMetadataClient(known, role("there"))
		var forgotten atomic.Int32
		w := &rightsWatch{
			client: client, forget: func() { forgotten.Add(1) },
			events: make(chan event.GenericEvent), needed: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		if w.sees() || len(client.Actions()) > 0 {
			t.Errorf("nobody needs it, and it asked %v", client.Actions())
		}
		w.need()
		w.need()
		time.Sleep(time.Second) // of the bubble's clock: all is seen
		synctest.Wait()
		if !w.sees() || forgotten.Load() > 0 {
			t.Errorf("it sees: %v, and forgot %d times though nothing changed", w.sees(), forgotten.Load())
		}
		roles := rbacv1.SchemeGroupVersion.WithResource("roles")
		for _, name := range []string{"a", "b", "c"} {
			if err := client.Tracker().Create(roles, role(name), "ns"); err != nil {
				t.Fatal(err)
			}
		}
		<-w.events
		if forgotten.Load() != 1 {
			t.Errorf("three changes at a time are acted upon %d times", forgotten.Load())
		}
		if err := client.Tracker().Delete(roles, "ns", "there"); err != nil {
			t.Fatal(err)
		}
		<-w.events
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestExecutors_CacheBrieflyWithoutAWatch(t *testing.T) {
	var none *rightsWatch
	none.need()
	if none.sees() {
		t.Error("it sees")
	}
	e := &executors{}
	if got := e.ttl(cachedReview{allowed: true}); got != reviewTTL {
		t.Errorf("a yes lasts %s", got)
	}
}
