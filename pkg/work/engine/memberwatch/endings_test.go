// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

var migrate = Object{Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Namespace: "ns", Name: "migrate"}

// jobAt is a Job in a version, with a condition if it is not empty.
func jobAt(uid, version, condition string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
	job.SetNamespace(migrate.Namespace)
	job.SetName(migrate.Name)
	job.SetUID(types.UID(uid))
	job.SetResourceVersion(version)
	if condition != "" {
		job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	}
	return job
}

func TestWatcher_KeepsTheLastStateOfAnObjectThatIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		events []apiwatch.Event
		want   string
	}{
		"complete and deleted": {[]apiwatch.Event{{Type: apiwatch.Modified, Object: jobAt("1", "8", "Complete")},
			{Type: apiwatch.Deleted, Object: jobAt("1", "9", "Complete")}}, "9 Complete"},
		"another object of the name": {[]apiwatch.Event{{Type: apiwatch.Modified, Object: jobAt("1", "8", "")},
			{Type: apiwatch.Added, Object: jobAt("2", "9", "Complete")}}, "8 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				objects := fake.NewSimpleDynamicClient(runtime.NewScheme())
				watch := apiwatch.NewFakeWithOptions(apiwatch.FakeOptions{ChannelSize: len(test.events)})
				var selected, from string
				objects.PrependWatchReactor("jobs", func(action clienttesting.Action) (bool, apiwatch.Interface, error) {
					options := action.(clienttesting.WatchActionImpl).ListOptions
					selected, from = options.FieldSelector, options.ResourceVersion
					return true, watch, nil
				})
				w := New(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), objects)
				notified := make(chan Event, 10)
				view := w.For(records, func(_ context.Context, e Event) { notified <- e })
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				view.Follow("work", []Object{migrate}, nil)
				w.FollowEnd(migrate, jobAt("1", "7", ""))
				w.FollowEnd(migrate, jobAt("1", "7", ""))
				for _, event := range test.events {
					watch.Action(event.Type, event.Object)
				}
				synctest.Wait()
				if selected != "metadata.name=migrate" || from != "7" {
					t.Errorf("watched %q from %q", selected, from)
				}
				if last := w.LastState("1"); last == nil || last.GetResourceVersion()+" "+conditionOf(last) != test.want {
					t.Errorf("last state is %v, want %q", last, test.want)
				}
				if len(notified) != 1 || (<-notified).Object != migrate {
					t.Errorf("notified %d times", len(notified))
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func conditionOf(job *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	return fmt.Sprint(conditions[0].(map[string]any)["type"])
}

func TestEndings_AreLimited(t *testing.T) {
	w := New(nil, nil)
	for i := range maxEndings + 1 {
		w.FollowEnd(migrate, jobAt(fmt.Sprint(i), "1", ""))
	}
	started := w.endings.unstarted()
	if len(started) != maxEndings || len(w.endings.unstarted()) > 0 {
		t.Fatalf("%d watches", len(started))
	}
	started[1].ended = true
	w.FollowEnd(migrate, jobAt("new", "1", ""))
	if again := w.endings.unstarted(); len(again) != 1 || again[0].uid != "new" {
		t.Errorf("the ended one did not make room: %v", again)
	}
}
