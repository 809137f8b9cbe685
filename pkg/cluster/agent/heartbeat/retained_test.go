// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func TestRetained_ReportsAStableStateAndItsEnd(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	retained := NewRetained("member-1", clock)
	woken := func() bool {
		select {
		case <-retained.changed:
			return true
		default:
			return false
		}
	}
	imc := &clusterv1beta1.InternalMemberCluster{}
	released := ""
	says := func() string {
		imc.Status = joinedReport(imc, facts{retained: retained.condition(released)}, clock.Now())
		for _, c := range imc.Status.Conditions {
			if c.Type == clusterv1beta1.ConditionPlacementsRetained {
				return string(c.Status) + " " + c.Reason + " " + c.Message
			}
		}
		return ""
	}
	if got := says(); got != "" || retained.condition("") != nil {
		t.Errorf("before anything is known: %q", got)
	}
	retained.Set(retention.Summary{Works: 2, Objects: 3, Kinds: "Works", Example: "shop-work", IDs: "1f3a,9c2e", HubRestored: true})
	if woken() {
		t.Error("it is reported before it is stable")
	}
	clock.Step(retainedSettles)
	if !woken() {
		t.Error("it is not reported")
	}
	if got := says(); !strings.HasPrefix(got, "True HubRestored") || !strings.Contains(got, `3 objects of 2 Works, one of them "shop-work"`) ||
		!strings.Contains(got, "kubectl annotate membercluster member-1 --overwrite fleetgate.io/release=1f3a,9c2e") {
		t.Errorf("while objects are retained: %q", got)
	}
	for value, isTold := range map[string]bool{"": false, "0000": true, "2026-01-01T12:00:00Z": true, "0000,9c2e": false} {
		released = value
		if got := says(); strings.HasSuffix(got, "(its present value contains none of these ids)") != isTold {
			t.Errorf("while %q is released: %q", value, got)
		}
	}
	released = ""
	retained.Set(retention.Summary{Works: 2, Objects: 3, Kinds: "Works", Example: "shop-work", IDs: "1f3a"})
	if got := says(); !strings.HasPrefix(got, "True WorkReplaced Works replaced others") {
		t.Errorf("while Works have replaced others: %q", got)
	}
	retained.Set(retention.Summary{})
	if got := says(); !strings.HasPrefix(got, "False NothingRetained") {
		t.Errorf("afterwards: %q", got)
	}
	imc.Status.Conditions = nil
	if got := says(); got != "" {
		t.Errorf("without retained objects: %q", got)
	}
}

func TestReportRetained_ReplacesTheConditionOfThePreviousVersion(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	conditions := []metav1.Condition{{Type: clusterv1beta1.PreviousPlacementsRetained, Status: metav1.ConditionTrue, Reason: clusterv1beta1.PreviousHubRestored}}
	reportRetained(&conditions, 1, nil, now)
	if len(conditions) != 1 || conditions[0].Type != clusterv1beta1.PreviousPlacementsRetained {
		t.Errorf("before the agent has processed all Works: %v", conditions)
	}
	none := retainedCondition("member-1", retention.Summary{}, "")
	reportRetained(&conditions, 1, none, now)
	if len(conditions) != 1 || conditions[0].Type != clusterv1beta1.ConditionPlacementsRetained || conditions[0].Status != metav1.ConditionFalse {
		t.Errorf("got %v, want one condition PlacementsRetained False", conditions)
	}
}

func TestRetained_ReportsFalseIfNothingIsRetainedAfterAStart(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	retained := NewRetained("member-1", clock)
	clock.Step(retainedUnknown)
	if c := retained.condition(""); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("after a while it says %v", c)
	}
}

func TestReconciler_DetectsARestoredHubByTheLostRenewal(t *testing.T) {
	known := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 5000, time.UTC))
	back := 0
	r := &Reconciler{Name: "m", Clock: clock, HubRestored: func() { back++ }}
	empty := r.lease()
	lost := errors.New("no answer came")
	var unheard bool // the write is made, and nobody hears of it
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(known).WithObjects(empty).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			err := c.Patch(ctx, object, patch, options...)
			if err != nil && patch.Type() == types.JSONPatchType {
				// The response of an API server to a failed test operation.
				return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "agent", err.Error(), 0, false)
			}
			if unheard {
				return lost
			}
			return err
		}})
	r.Hub = hub
	renew := func(want error) {
		t.Helper()
		clock.Step(time.Minute)
		if _, err := r.renewLease(t.Context(), 60); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	renew(nil)
	renew(nil)
	unheard = true
	renew(lost)
	unheard = false
	renew(nil)
	if back != 0 {
		t.Fatalf("a hub that lost nothing counts as restored %d times", back)
	}
	backup := r.lease()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(backup), backup); err != nil {
		t.Fatal(err)
	}
	renew(nil)
	restored := r.lease()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(restored), restored); err != nil {
		t.Fatal(err)
	}
	restored.Spec = backup.Spec
	if err := hub.Update(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	renew(nil)
	renew(nil)
	if back != 1 {
		t.Errorf("a hub that lost the last renewal counts as restored %d times", back)
	}
}
