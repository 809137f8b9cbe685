// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func reported(status metav1.ConditionStatus) *placementv1beta1.Work {
	w := work("p-work")
	for _, kind := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable} {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: "Reported", ObservedGeneration: w.Generation})
	}
	return w
}

// A binding's status was written twice for each Work: when it was sent, and a moment later when it was
// applied.
func TestWriteStatus_OnceIfMemberReportsInTime(t *testing.T) {
	type step struct {
		after  time.Duration
		synced synced
		again  time.Duration
		writes int
	}
	sent := synced{works: []*placementv1beta1.Work{work("p-work")}}
	well, failed := synced{works: []*placementv1beta1.Work{reported(metav1.ConditionTrue)}}, synced{works: []*placementv1beta1.Work{reported(metav1.ConditionFalse)}}
	for name, steps := range map[string][]step{
		"early report":          {{0, sent, inFlightDelay, 0}, {300 * time.Millisecond, well, 0, 1}, {0, well, 0, 1}},
		"late report":           {{0, sent, inFlightDelay, 0}, {400 * time.Millisecond, sent, inFlightDelay - 400*time.Millisecond, 0}, {inFlightDelay - 400*time.Millisecond, sent, 0, 1}, {time.Minute, well, 0, 2}},
		"it refuses":            {{0, sent, inFlightDelay, 0}, {0, failed, 0, 1}},
		"Works cannot be sent":  {{0, synced{problem: "no"}, 0, 1}},
		"override does not fit": {{0, synced{misfit: "no"}, 0, 1}},
		"Works change": {
			{0, sent, inFlightDelay, 0}, {0, well, 0, 1}, {time.Hour, sent, inFlightDelay, 1}, {inFlightDelay, sent, 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b, writes := binding(), 0
			hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(b).WithStatusSubresource(b).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, of string, o client.Object, opts ...client.SubResourceUpdateOption) error {
					writes++
					return c.SubResource(of).Update(ctx, o, opts...)
				}}).Build()
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			r := &Reconciler{Client: hub, Live: hub, Clock: clock}
			for i, l := range steps {
				clock.SetTime(clock.Now().Add(l.after))
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
					t.Fatal(err)
				}
				again, err := r.writeStatus(t.Context(), b, l.synced)
				if err != nil || again != l.again || writes != l.writes {
					t.Fatalf("step %d: again = %s after %d writes, %v; want %s after %d", i, again, writes, err, l.again, l.writes)
				}
			}
		})
	}
}

// While a hub was busy with many Works, members reported after the delay, and each binding was written
// twice.
func TestInFlight_DelayGrowsWithBindingsInFlight(t *testing.T) {
	now := time.Unix(1000, 0)
	for bindings, want := range map[int]time.Duration{1: inFlightDelay, 50: inFlightDelay, 100: 3 * time.Second, 1000: 30 * time.Second, 10_000: 30 * time.Second} {
		var u inFlight
		for i := range bindings {
			u.wait(types.NamespacedName{Name: fmt.Sprint(i)}, now)
		}
		first := types.NamespacedName{Name: "0"}
		if got := u.wait(first, now.Add(time.Second)); got != want-time.Second {
			t.Errorf("with %d bindings, the first has to wait %v after a second, want %v", bindings, got, want-time.Second)
		}
		for i := 1; i < bindings; i++ {
			u.forget(types.NamespacedName{Name: fmt.Sprint(i)})
		}
		if got := u.wait(first, now.Add(inFlightDelay)); got != 0 {
			t.Errorf("after the other %d have reported, the last has to wait %v", bindings-1, got)
		}
	}
}
