// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// AnnotationReservations is on a guard's Lease. Its value is the deletions that the guard
	// allowed.
	AnnotationReservations = "fleetgate.io/guard-reservations"
	// LabelGuard is on the Lease of a guard. Its value is the policy's name, shortened to the
	// limit of a label.
	LabelGuard = "fleetgate.io/guard"

	// reservationLife is how long an object counts as deleted after a guard allowed its deletion,
	// to give the API server time to delete it.
	reservationLife = 30 * time.Second
	// maxReservations limits the reservations in one Lease.
	maxReservations = 256
)

// A reservation says that the deletion of one object was allowed.
type reservation struct {
	Name  string    `json:"name"`
	UID   types.UID `json:"uid"`
	Until time.Time `json:"until"`
}

// reservations stores those of all guards, in Leases of the gateway's namespace.
type reservations struct {
	// reader does not cache, because the write depends on the version that was read.
	reader    client.Reader
	writer    client.Writer
	namespace string
	clock     clock.PassiveClock
}

// guardLease is the Lease of one group of guarded objects, as it was read.
type guardLease struct {
	lease *coordinationv1.Lease
	held  []reservation
}

// leaseName is the same in every replica for the same group of objects.
func leaseName(policy, guard, namespace, label string) string {
	return "guard-" + hash.Of(strings.Join([]string{policy, guard, namespace, label}, "\x00"))[:32]
}

// read returns the objects that count as deleted now.
func (r *reservations) read(ctx context.Context, name string) (*guardLease, error) {
	l := &guardLease{lease: &coordinationv1.Lease{}}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, l.lease)
	if apierrors.IsNotFound(err) {
		l.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %s/%s: %w", r.namespace, name, err)
	}
	if text := l.lease.Annotations[AnnotationReservations]; text != "" {
		if err := untrusted.UnmarshalJSON([]byte(text), untrusted.Object, &l.held); err != nil {
			return nil, fmt.Errorf("reading Lease %s/%s: annotation %s: %w; delete the Lease", r.namespace, name, AnnotationReservations, err)
		}
	}
	now := r.clock.Now()
	l.held = slices.DeleteFunc(l.held, func(h reservation) bool { return !now.Before(h.Until) })
	return l, nil
}

// gone is true for an object whose deletion was allowed.
func (l *guardLease) gone(uid types.UID) bool {
	return slices.ContainsFunc(l.held, func(h reservation) bool { return h.UID == uid })
}

// reserve adds one more deletion. It fails with a conflict if the Lease was written since it was
// read.
func (r *reservations) reserve(ctx context.Context, l *guardLease, policy string, object client.Object) error {
	held := slices.DeleteFunc(slices.Clone(l.held), func(h reservation) bool { return h.UID == object.GetUID() })
	if len(held) >= maxReservations {
		return fmt.Errorf("%d were deleted in the last %s: %w", maxReservations, reservationLife, errBusy)
	}
	until := r.clock.Now().Add(reservationLife)
	held = append(held, reservation{Name: client.ObjectKeyFromObject(object).String(), UID: object.GetUID(), Until: until})
	text, err := json.Marshal(held)
	if err != nil {
		return fmt.Errorf("writing reservations: %w", err)
	}
	lease := l.lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AnnotationReservations, string(text))
	metav1.SetMetaDataLabel(&lease.ObjectMeta, LabelGuard, labelValue(policy))
	renewed := metav1.NewMicroTime(r.clock.Now())
	lease.Spec.RenewTime = &renewed
	if lease.ResourceVersion == "" {
		err = r.writer.Create(ctx, lease)
		if apierrors.IsAlreadyExists(err) {
			return apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, err)
		}
		return err
	}
	return r.writer.Update(ctx, lease)
}

// labelValue cuts a name to the length of a label value.
func labelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}
