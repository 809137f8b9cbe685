// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shelf is a cache of ConfigMaps.
type shelf struct {
	client.Reader
	names []string
	err   error
	asked client.ListOptions
}

// List implements client.Reader.
func (s *shelf) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.asked.ApplyOptions(options)
	for _, name := range s.names {
		into := list.(*corev1.ConfigMapList)
		into.Items = append(into.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}})
	}
	return s.err
}

func TestThose(t *testing.T) {
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}}
	}
	notX := func(c *corev1.ConfigMap) bool { return c.Name != "x" }
	for name, tc := range map[string]struct {
		shelf  shelf
		wanted func(*corev1.ConfigMap) bool
		want   []reconcile.Request
	}{
		"nothing there":               {shelf{}, notX, []reconcile.Request{}},
		"those that are wanted":       {shelf{names: []string{"w", "x", "y"}}, notX, []reconcile.Request{request("w"), request("y")}},
		"a cache that does not start": {shelf{names: []string{"w"}, err: errors.New("stopped")}, notX, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Those(t.Context(), &tc.shelf, &corev1.ConfigMapList{}, tc.wanted, client.InNamespace("a"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if tc.shelf.asked.Namespace != "a" || tc.shelf.asked.UnsafeDisableDeepCopy == nil {
				t.Errorf("asked for %+v", tc.shelf.asked)
			}
		})
	}
}

func TestAll(t *testing.T) {
	got := All(t.Context(), &shelf{names: []string{"w", "x"}}, &corev1.ConfigMapList{})
	if len(got) != 2 || got[1].Name != "x" {
		t.Errorf("got %v", got)
	}
}

func TestAfter_QueuesObjectsOfPreviousState(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	ownerOf := func(object client.Object) []types.NamespacedName {
		return []types.NamespacedName{{Namespace: "a", Name: object.GetLabels()["owner"]}}
	}
	ownedBy := func(owner string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"owner": owner}}}
	}
	events := After(0, ownerOf)
	events.Create(t.Context(), event.CreateEvent{Object: ownedBy("created")}, queue)
	events.Update(t.Context(), event.UpdateEvent{ObjectOld: ownedBy("before"), ObjectNew: ownedBy("after")}, queue)
	events.Update(t.Context(), event.UpdateEvent{ObjectOld: ownedBy("before"), ObjectNew: ownedBy("after")}, queue)
	events.Delete(t.Context(), event.DeleteEvent{Object: ownedBy("deleted")}, queue)

	var got []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		got = append(got, request.Name)
	}
	if diff := cmp.Diff([]string{"created", "before", "after", "deleted"}, got); diff != "" {
		t.Errorf("queued (-want +got)\n%s", diff)
	}
}

func TestUpdates_FilterUnchanged(t *testing.T) {
	of := func(key string) client.Object { return &corev1.ConfigMap{Data: map[string]string{"key": key}} }
	changed := func(before, after *corev1.ConfigMap) bool { return before.Data["key"] != after.Data["key"] }
	for name, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"it is news":        {of("a"), of("b"), true},
		"it is not":         {of("a"), of("a"), false},
		"of another type":   {&corev1.Secret{}, &corev1.Secret{}, false},
		"of no type at all": {nil, nil, false},
	} {
		update := event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}
		if got := Updates(changed).Update(update); got != tc.want {
			t.Errorf("%s: Updates lets it through: %t", name, got)
		}
		if got := OnUpdate(changed).Update(update); got != tc.want {
			t.Errorf("%s: OnUpdate lets it through: %t", name, got)
		}
	}
	if !Updates(changed).Create(event.CreateEvent{}) || !Updates(changed).Delete(event.DeleteEvent{}) {
		t.Error("Updates keeps back what comes or goes")
	}
	if OnUpdate(changed).Create(event.CreateEvent{}) || OnUpdate(changed).Delete(event.DeleteEvent{}) || OnUpdate(changed).Generic(event.GenericEvent{}) {
		t.Error("OnUpdate lets through what comes or goes")
	}
}
