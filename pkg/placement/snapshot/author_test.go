// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestReportAuthor_ReplacesConditionOfPreviousVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		check bool
		want  []string
	}{
		"author check enabled":  {true, []string{placementv1beta1.ConditionAuthorCheckSkipped}},
		"author check disabled": {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			meta.SetStatusCondition(&placement.Status.Conditions, metav1.Condition{
				Type: placementv1beta1.PreviousAuthorCheckSkipped, Status: metav1.ConditionTrue, Reason: "NoAnswer"})
			hub := fake.NewClientBuilder().WithScheme(hubWith(t).Scheme()).WithObjects(placement).WithStatusSubresource(placement).Build()
			r := &Reconciler{Client: hub, CheckAuthors: tc.check}
			if err := r.reportAuthor(t.Context(), placement, nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range placement.Status.Conditions {
				got = append(got, c.Type)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
