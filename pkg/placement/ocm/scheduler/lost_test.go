// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// The response of a write was lost. Its event arrived after the gateway had decided differently
// from its older state and had nothing to write, so the wrong decision stayed.
func TestDecisionIndex_HandlesEventOfUncertainWrite(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := ocmclusterv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	placement := placed(nil)
	lost := errors.New("the answer is lost")
	losing := true
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(placement).WithStatusSubresource(&ocmclusterv1beta1.Placement{}, &ocmclusterv1beta1.PlacementDecision{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			object.(*ocmclusterv1beta1.PlacementDecision).Status = ocmclusterv1beta1.PlacementDecisionStatus{}
			return c.Create(ctx, object, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			if err := c.SubResource(name).Patch(ctx, object, p, o...); err != nil || !losing {
				return err
			}
			return lost
		},
	}).Build()
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: hub, Live: hub, Recorder: events.NewFakeRecorder(100), Clock: testingclock.NewFakePassiveClock(noon), compiler: compiler,
		cache: cacheOf(managed("c1", nil)), decisions: newDecisionIndex(), statuses: map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus{}}
	if r.metrics, err = newMetrics(nil); err != nil {
		t.Fatal(err)
	}
	decide := func() error {
		w := parsePlacement(placement, compiler)
		existing, err := r.existing(t.Context(), client.ObjectKeyFromObject(placement))
		if err != nil {
			t.Fatal(err)
		}
		return r.write(t.Context(), placement, r.decide(placement, w, existing), existing)
	}
	decision := &ocmclusterv1beta1.PlacementDecision{}
	decision.Namespace, decision.Name = "team", "p-decision-1"
	if err := decide(); !errors.Is(err, lost) {
		t.Fatalf("writing decisions: %v, want the error", err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(decision), decision); err != nil {
		t.Fatal(err)
	}
	if got := namesIn(r.decisions.see(decision, false)); got != "p" {
		t.Errorf("the decision is news to %q, want p", got)
	}
	if got := namesIn(r.decisions.see(decision, false)); got != "" {
		t.Errorf("the decision is news to %q a second time", got)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(placement), placement); err != nil {
		t.Fatal(err)
	}
	if err := decide(); !errors.Is(err, lost) {
		t.Fatalf("writing the status: %v, want the error", err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(placement), placement); err != nil {
		t.Fatal(err)
	}
	if len(placement.Status.Conditions) == 0 || r.isWritten(placement) {
		t.Errorf("status %v is no news", placement.Status)
	}
	losing = false
	if err := decide(); err != nil || !r.isWritten(placement) {
		t.Errorf("what was written is news still: %v", err)
	}
}
