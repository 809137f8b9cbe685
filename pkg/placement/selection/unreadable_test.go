// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var topicsGVR = schema.GroupVersionResource{Group: "r13.example.org", Version: "v1", Resource: "topics"}

// someHub is a hub that can fail in parts.
type someHub struct {
	*discoveryfake.FakeDiscovery
	// failed are the versions that discovery cannot read.
	failed map[schema.GroupVersion]error
	// lists and reads are the hub's errors for topics.
	lists, reads atomic.Pointer[error]
}

func (h *someHub) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := h.FakeDiscovery.ServerGroupsAndResources()
	if err != nil || len(h.failed) == 0 {
		return groups, lists, err
	}
	lists = slices.DeleteFunc(slices.Clone(lists), func(l *metav1.APIResourceList) bool {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)
		return h.failed[gv] != nil
	})
	return groups, lists, &discovery.ErrGroupDiscoveryFailed{Groups: h.failed}
}

func newSomeHub() *someHub {
	return &someHub{FakeDiscovery: &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		list("v1", metav1.APIResource{Name: "namespaces", Kind: "Namespace", Verbs: all}, metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all}),
		list("r13.example.org/v1", metav1.APIResource{Name: "topics", Kind: "Topic", Namespaced: true, Verbs: all}),
	}}}}
}

// started returns a Selector of the hub, whose Watcher stops with the test.
func (h *someHub) started(t *testing.T) (*Selector, *Watcher) {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var metadata, full []runtime.Object
	for _, kind := range []string{"v1 Namespace  shop", "v1 ConfigMap shop settings", "r13.example.org/v1 Topic shop orders"} {
		part := strings.Split(kind, " ")
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: part[0], Kind: part[1]}, ObjectMeta: metav1.ObjectMeta{Namespace: part[2], Name: part[3]}}
		metadata = append(metadata, object)
		full = append(full, parse(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {namespace: %q, name: %s}}", part[0], part[1], part[2], part[3])))
	}
	answer := func(with *atomic.Pointer[error]) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) {
			if err := with.Load(); err != nil {
				return true, nil, *err
			}
			return false, nil, nil
		}
	}
	watched := metadatafake.NewSimpleMetadataClient(scheme, metadata...)
	watched.PrependReactor("list", "topics", answer(&h.lists))
	read := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "namespaces"}: "NamespaceList", {Version: "v1", Resource: "configmaps"}: "ConfigMapList", topicsGVR: "TopicList"}, full...)
	read.PrependReactor("list", "topics", answer(&h.reads))
	kinds := NewKinds(h, Filter{})
	w := NewWatcher(kinds, watched, nil, time.Millisecond)
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Start(running) }()
	t.Cleanup(func() { stop(); <-ended })
	return NewSelector(kinds, w, read), w
}

func said(s Selected) string {
	var names []string
	for _, o := range s.Objects {
		names = append(names, o.GetName())
	}
	for _, u := range s.Unreadable {
		names = append(names, "unreadable "+u.String())
	}
	return strings.Join(names, ", ")
}

func TestSelect_UnreadableKindDoesNotBlockOthers(t *testing.T) {
	broken := error(apierrors.NewInternalError(errors.New("conversion webhook failed")))
	initializing := error(apierrors.NewTooManyRequests("storage is (re)initializing", 1))
	gone := error(&meta.NoResourceMatchError{PartialResource: topicsGVR})
	shop := []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	topic := []placementv1beta1.ResourceSelectorTerm{{Group: "r13.example.org", Version: "v1", Kind: "Topic", Name: "orders"}}
	tests := map[string]struct {
		reason    string
		spoil     func(*someHub)
		repair    func(*someHub)
		selectors []placementv1beta1.ResourceSelectorTerm
		namespace string
		want      string
		later     string
	}{
		"kind cannot be listed": {"unavailable conversion webhook", func(h *someHub) { h.lists.Store(&broken) }, func(h *someHub) { h.lists.Store(nil) }, shop, "",
			"shop, settings, unreadable topics.r13.example.org", "shop, settings, orders"},
		"kind is reported as initializing": {"its objects cannot be converted", func(h *someHub) { h.lists.Store(&initializing) }, func(h *someHub) { h.lists.Store(nil) }, shop, "",
			"shop, settings, unreadable topics.r13.example.org", "shop, settings, orders"},
		"kind can be listed but not read": {"a webhook became unavailable later", func(h *someHub) { h.reads.Store(&broken) }, func(h *someHub) { h.reads.Store(nil) }, shop, "",
			"shop, settings, unreadable topics.r13.example.org", "shop, settings, orders"},
		"kind is no longer served": {"discovery lags: its removal is not certain", func(h *someHub) { h.reads.Store(&gone) }, func(h *someHub) { h.reads.Store(nil) }, shop, "",
			"shop, settings, unreadable topics.r13.example.org", "shop, settings, orders"},
		"group was never discovered": {"an aggregated API is unavailable when the gateway starts",
			func(h *someHub) {
				h.failed = map[schema.GroupVersion]error{topicsGVR.GroupVersion(): errors.New("down")}
			}, nil, shop, "",
			"shop, settings, unreadable all kinds of r13.example.org/v1", ""},
		"named kind of such a group": {"its author made no mistake",
			func(h *someHub) {
				h.failed = map[schema.GroupVersion]error{topicsGVR.GroupVersion(): errors.New("down")}
			}, nil, topic, "shop",
			"unreadable Topic (r13.example.org/v1)", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := newSomeHub()
				tc.spoil(hub)
				selector, _ := hub.started(t)
				placement := types.NamespacedName{Namespace: tc.namespace, Name: "p"}
				got, err := selector.Select(t.Context(), placement, tc.selectors, nil)
				if err != nil {
					t.Fatal(err)
				}
				if said(got) != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, said(got), tc.want)
				}
				if tc.repair == nil {
					return
				}
				tc.repair(hub)
				time.Sleep(3 * time.Minute) // Of the fake clock: a watch waits up to one minute between two attempts.
				if got, err = selector.Select(t.Context(), placement, tc.selectors, nil); err != nil || said(got) != tc.later {
					t.Errorf("later: got %s, %v, want %s", said(got), err, tc.later)
				}
			})
		})
	}
}

func TestUndiscovered_IncludesAPIServicesUnknownToDiscovery(t *testing.T) {
	c := newCatalog(nil, []*metav1.APIResourceList{list("v1"), list("apps/v1")}, map[schema.GroupVersion]error{
		{Group: "down.example.com", Version: "v1"}: errors.New("down"), {Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("down")}, nil)
	got := c.undiscovered([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "late.example.com", Version: "v1"}, {Group: "down.example.com", Version: "v1"}})
	var names []string
	for _, u := range got {
		names = append(names, u.String())
	}
	if want := []string{"all kinds of down.example.com/v1", "all kinds of late.example.com/v1"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// An API server that restarted did not serve the group yet: the envelopes were gone from the next
// snapshot, and their contents from the members.
func TestUndiscovered_IncludesTheGroupOfEnvelopes(t *testing.T) {
	c := newCatalog(nil, []*metav1.APIResourceList{list("v1")}, nil, nil)
	envelopes := schema.GroupVersion{Group: "placement.kubernetes-fleet.io", Version: "v1"}
	got := c.undiscovered([]schema.GroupVersion{{Version: "v1"}, envelopes, {Group: "webhook.fleetgate.io", Version: "v1alpha1"}})
	if len(got) != 1 || !got[0].Covers(envelopes.Group, envelopes.Version, "ResourceEnvelope") {
		t.Errorf("got %v, want only the group of envelopes", got)
	}
}

func TestUnreadableCovers(t *testing.T) {
	kind := Unreadable{Kind: Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "K"}}}
	version := Unreadable{Kind: Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v2"}}}
	for _, tc := range []struct {
		u                    Unreadable
		group, version, kind string
		want                 bool
	}{
		{kind, "g", "v1", "K", true}, {kind, "g", "v2", "L", false}, {kind, "h", "v2", "K", false},
		{version, "g", "v2", "L", true}, {version, "g", "v1", "L", false},
	} {
		if got := tc.u.Covers(tc.group, tc.version, tc.kind); got != tc.want {
			t.Errorf("%s covers %s/%s %s: %t", tc.u, tc.group, tc.version, tc.kind, got)
		}
	}
}
