// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestRenewals_UseTheHubsClock(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	lease := func(namespace string, written time.Duration) coordinationv1.Lease {
		made, when, wrong := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(written)), metav1.NewMicroTime(noon.Add(-24*time.Hour))
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "gateway", Time: &made}, {Manager: "agent", Time: &when}}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &wrong},
		}
	}
	neverRenewed := lease("fleet-member-new", 0)
	neverRenewed.Spec.RenewTime = nil
	reads := func(err error, leases ...coordinationv1.Lease) client.Reader {
		return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				if given := (&client.ListOptions{}).ApplyOptions(options); given.FieldSelector.String() != "metadata.name=agent" {
					t.Errorf("lists Leases with %s", given.FieldSelector)
				}
				into.(*coordinationv1.LeaseList).Items = leases
				return err
			},
		})
	}
	got, err := FleetSeats().Renewals(t.Context(), reads(nil, lease("fleet-member-a", 4*time.Minute), neverRenewed, lease("other", time.Minute)))
	if want := map[string]metav1.Time{"a": metav1.NewTime(noon.Add(4 * time.Minute))}; err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	if got, err := FleetSeats().Renewals(t.Context(), reads(apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil))); got != nil || !apierrors.IsForbidden(err) {
		t.Errorf("without rights: %v (%v)", got, err)
	}
}
