// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// partly selects one ConfigMap, and reports some kinds as unreadable.
type partly struct {
	chosen
	unreadable []selection.Unreadable
}

func (p *partly) Select(ctx context.Context, key types.NamespacedName, terms []placementv1beta1.ResourceSelectorTerm, bound *selection.Bound) (selection.Selected, error) {
	selected, err := p.chosen.Select(ctx, key, terms, bound)
	selected.Unreadable = p.unreadable
	return selected, err
}

func unreadableKind(group, kind, resource, fault string) selection.Unreadable {
	return selection.Unreadable{Kind: selection.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Resource: resource}, Fault: fault}
}

func TestTake_KeepsSnapshotIfItsKindIsUnreadable(t *testing.T) {
	tests := map[string]struct {
		unreadable []selection.Unreadable
		stays      bool
		says       []string
	}{
		"kind of the latest snapshot": {[]selection.Unreadable{unreadableKind("", "ConfigMap", "configmaps", "webhook is down")}, true,
			[]string{placementv1beta1.ReasonKindUnavailable, "configmaps (webhook is down)", "members keep what they have"}},
		"another kind": {[]selection.Unreadable{unreadableKind("example.org", "Topic", "topics", "webhook is down")}, false,
			[]string{placementv1beta1.ReasonKindUnavailable, "topics.example.org (webhook is down)", "None of these are placed"}},
		"all kinds of a version": {[]selection.Unreadable{unreadableKind("", "", "", "no answer")}, true,
			[]string{placementv1beta1.ReasonKindUnavailable, "all kinds of v1 (no answer)"}},
		"kind without rights": {[]selection.Unreadable{unreadableKind("apps", "Deployment", "deployments", "")}, false,
			[]string{placementv1beta1.ReasonGatewayForbidden, "is not allowed to list and watch deployments.apps. None of these are placed. To place them"}},
		"both": {[]selection.Unreadable{unreadableKind("apps", "Deployment", "deployments", ""), unreadableKind("", "ConfigMap", "configmaps", "50% down")}, true,
			[]string{placementv1beta1.ReasonKindUnavailable, "configmaps (50% down)", "deployments.apps. Some of these are placed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "now"}}
			hub := hubWith(t)
			hub = fake.NewClientBuilder().WithScheme(hub.Scheme()).WithObjects(placement).WithStatusSubresource(placement).
				WithIndex(&placementv1beta1.ClusterResourceSnapshot{}, "placement", func(o client.Object) []string {
					return []string{o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
				}).Build()
			selector := &partly{chosen: chosen{says: "a"}}
			r := &Reconciler{Client: hub, Live: hub, Selector: selector, Users: nothing{}, Snapshots: NewContents(hub, hub, Envelopes{}),
				Clock: testingclock.NewFakePassiveClock(time.Now())}
			first, err := r.Take(t.Context(), placement)
			if err != nil {
				t.Fatal(err)
			}
			selector.unreadable, selector.says = tc.unreadable, "b"
			second, err := r.Take(t.Context(), placement)
			if err != nil {
				t.Fatal(err)
			}
			if stays := second.Name == first.Name; stays != tc.stays {
				t.Errorf("latest snapshot stays = %t", stays)
			}
			c := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionResourcesUnreadable)
			for _, text := range tc.says {
				if c == nil || !strings.Contains(c.Reason+": "+c.Message, text) {
					t.Errorf("condition without %q: %v", text, c)
				}
			}
			selector.unreadable = nil
			if third, err := r.Take(t.Context(), placement); err != nil || third.Name == first.Name || len(placement.Status.Conditions) != 0 {
				t.Errorf("when all can be read: %s, %v, %v", third.Name, err, placement.Status.Conditions)
			}
		})
	}
}
