// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// The member deleted a resource that moved into a Work whose name was still terminating, because the
// Work that it left was written first.
func TestMayWrite_RejectsWhileDesiredWorkTerminates(t *testing.T) {
	going := func(w *placementv1beta1.Work) *placementv1beta1.Work {
		w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{placementv1beta1.WorkCleanupFinalizer}
		return w
	}
	of := func(name string) *placementv1beta1.Work {
		w := work(name)
		w.Namespace = clusterv1beta1.MemberNamespace("m")
		w.Labels = map[string]string{placementv1beta1.ParentBindingLabel: "p-m-0"}
		return w
	}
	cases := map[string]struct {
		have, live []*placementv1beta1.Work
		refused    bool // rejected until something changes
		behind     bool // retried until the cache is up to date
	}{
		"both exist":            {[]*placementv1beta1.Work{of("p-work"), of("p-0")}, []*placementv1beta1.Work{of("p-work"), of("p-0")}, false, false},
		"second is terminating": {[]*placementv1beta1.Work{of("p-work"), going(of("p-0"))}, nil, true, false},
		"second is terminating, unknown to the cache": {[]*placementv1beta1.Work{of("p-work"), of("p-0")}, []*placementv1beta1.Work{of("p-work"), going(of("p-0"))}, false, true},
		"stale Work is terminating":                   {[]*placementv1beta1.Work{of("p-work"), of("p-0"), going(of("p-7"))}, []*placementv1beta1.Work{of("p-work"), of("p-0"), going(of("p-7"))}, false, false},
		"no Works yet":                                {nil, nil, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(hubScheme(t))
			for _, w := range tc.live {
				hub.WithObjects(client.Object(w))
			}
			changes, err := compare(tc.have, built(t, binding(), plain("{}"), plain("[]")))
			if err != nil {
				t.Fatal(err)
			}
			in := input{binding: binding(), works: tc.have}
			err = (&Reconciler{Live: hub.Build()}).mayWrite(t.Context(), in, changes, true)
			if refused := refusal.Of(err) != nil; refused != tc.refused {
				t.Errorf("refused = %t, %v", refused, err)
			}
			if behind := apierrors.IsConflict(err); behind != tc.behind {
				t.Errorf("behind = %t, %v", behind, err)
			}
		})
	}
}
