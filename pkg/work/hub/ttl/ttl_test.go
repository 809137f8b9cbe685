// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ttl

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

func TestEndOf(t *testing.T) {
	finished := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	after := func(seconds int64) *time.Time { return ptr.To(finished.Add(time.Duration(seconds) * time.Second)) }
	for name, tc := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   *time.Time
	}{
		"so many seconds after it was done": {func(*workv1.ManifestWork) {}, after(60)},
		"at once":                           {func(w *workv1.ManifestWork) { w.Spec.DeleteOption.TTLSecondsAfterFinished = ptr.To[int64](0) }, after(0)},
		"a number that no time holds": {func(w *workv1.ManifestWork) {
			w.Spec.DeleteOption.TTLSecondsAfterFinished = ptr.To[int64](math.MaxInt64)
		}, after(maxSeconds)},
		"no TTL":                   {func(w *workv1.ManifestWork) { w.Spec.DeleteOption.TTLSecondsAfterFinished = nil }, nil},
		"there is no deleteOption": {func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil }, nil},
		"it is not done":           {func(w *workv1.ManifestWork) { w.Status.Conditions[0].Status = metav1.ConditionFalse }, nil},
		"no condition":             {func(w *workv1.ManifestWork) { w.Status.Conditions = nil }, nil},
		"it is being deleted":      {func(w *workv1.ManifestWork) { w.DeletionTimestamp = ptr.To(metav1.NewTime(finished)) }, nil},
		"created by a set":         {func(w *workv1.ManifestWork) { w.Labels = map[string]string{workv1alpha1.ReplicaSetLabel: "a.b"} }, nil},
	} {
		work := &workv1.ManifestWork{
			Spec: workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{TTLSecondsAfterFinished: ptr.To[int64](60)}},
			Status: workv1.ManifestWorkStatus{Conditions: []metav1.Condition{{
				Type: workv1.ConditionComplete, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(finished),
			}}},
		}
		tc.change(work)
		got, limited := endOf(work)
		if limited != (tc.want != nil) || limited && !got.Equal(*tc.want) {
			t.Errorf("%s: it ends at %v, %v, want %v", name, got, limited, tc.want)
		}
	}
}
