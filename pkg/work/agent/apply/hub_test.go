// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Two hubs use the same name for the member and for Works.
func TestIsOurs_DistinguishesRecordsOfTwoHubs(t *testing.T) {
	const namespace = "fleet-member-m"
	record := func(name, work, hub string) *placementv1beta1.AppliedWork {
		r := &placementv1beta1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work, WorkNamespace: namespace},
		}
		membership{id: "id", hub: hub}.mark(r)
		return r
	}
	tests := map[string]struct {
		hubName string
		hub     string
		record  *placementv1beta1.AppliedWork
		want    bool
	}{
		"of the only hub":                         {"", "one", record("shop-work", "shop-work", "one"), true},
		"of another hub, none has a name":         {"", "two", record("shop-work", "shop-work", "one"), false},
		"of another hub, while ours is unknown":   {"", "", record("shop-work", "shop-work", "one"), false},
		"of an agent that did not record the hub": {"", "one", record("shop-work", "shop-work", ""), true},
		"of a hub with a name":                    {"two", "two", record("shop-work.two", "shop-work", "two"), true},
		"of one with a name, seen by the first":   {"", "one", record("shop-work.two", "shop-work", "two"), false},
		"of the first, seen by one with a name":   {"two", "two", record("shop-work", "shop-work", "one"), false},
		"of a Work whose name ends like a hub's":  {"two", "two", record("shop-work.two", "shop-work.two", "one"), false},
		"of another member's Work": {"", "one", func() *placementv1beta1.AppliedWork {
			r := record("shop-work", "shop-work", "one")
			r.Spec.WorkNamespace = "fleet-member-n"
			return r
		}(), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &records{options: Options{HubNamespace: namespace, HubName: tt.hubName}}
			if got := r.isOurs(tt.record, membership{id: "id", hub: tt.hub}); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestWorkOf_InvertsRecordName(t *testing.T) {
	for _, hub := range []string{"", "two"} {
		o := Options{HubName: hub}
		for _, work := range []string{"shop-work", "ns.shop-work", "x.two"} {
			if got, may := o.workOf(o.recordName(work)); !may || got != work {
				t.Errorf("hub %q, Work %q: got %q, %t", hub, work, got, may)
			}
		}
	}
	if work, may := (Options{HubName: "two"}).workOf("shop-work"); may {
		t.Errorf("the first hub's AppliedWork is taken for one of Work %q", work)
	}
}
