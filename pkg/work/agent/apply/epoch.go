// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// hasEpoch reports whether the Work has this epoch or a later one. Agents of earlier versions
// recorded no epoch.
func hasEpoch(work *placementv1beta1.Work, epoch string) bool {
	there := work.Annotations[placementv1beta1.EpochAnnotation]
	return epoch == "" || there == epoch || generationIn(there) > generationIn(epoch)
}

// generationIn returns the generation of an epoch; 0 if it is invalid.
func generationIn(epoch string) int64 {
	number, _, _ := strings.Cut(epoch, "/")
	generation, _ := strconv.ParseInt(number, 10, 64)
	return generation
}

// noteGrowth records the generation of a Work that contains an object without a ledger entry, first
// on the hub and then on the member. An earlier generation lacks that object. Other changes cost no
// request.
func (r *Reconciler) noteGrowth(ctx context.Context, p *planned) error {
	s := stateOn(p.record)
	if p.mode.Method == engine.Compare || s.work == mark(p.work) && (!needsEpoch(p.work) || generationIn(s.epoch) == p.work.Generation) {
		return nil
	}
	entered := map[manifest.Key]bool{}
	for _, of := range p.record.Status.AppliedResources {
		entered[manifest.KeyOf(manifest.Ref(of.WorkResourceIdentifier))] = true
	}
	if !slices.ContainsFunc(p.items, func(it engine.Item) bool { return it.Refused == nil && !entered[manifest.KeyOf(it.Ref)] }) {
		return nil
	}
	if err := r.ensureEpoch(ctx, p.work); err != nil {
		return err
	}
	s.work, s.epoch = mark(p.work), p.work.Annotations[placementv1beta1.EpochAnnotation]
	if s.isMarkedOn(p.record) {
		return nil
	}
	return r.records.annotate(ctx, p.record, func() { s.mark(p.record) })
}

// needsEpoch reports whether a Work had an earlier generation.
func needsEpoch(work *placementv1beta1.Work) bool { return work.Generation > 1 }

// ensureEpoch writes an epoch for the present generation of a Work to the hub. A gateway of an
// earlier version does not allow agents to write it; then only the generation is recorded.
func (r *Reconciler) ensureEpoch(ctx context.Context, work *placementv1beta1.Work) error {
	if !needsEpoch(work) || generationIn(work.Annotations[placementv1beta1.EpochAnnotation]) == work.Generation {
		return nil
	}
	before := work.DeepCopy()
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placementv1beta1.EpochAnnotation, strconv.FormatInt(work.Generation, 10)+"/"+work.ResourceVersion)
	err := r.hub.Patch(ctx, work, reconcileutil.PatchFrom(before))
	if apierrors.IsForbidden(err) {
		before.DeepCopyInto(work)
		return nil
	}
	if err != nil {
		return fmt.Errorf("beginning an epoch of Work %q on the hub: %w", work.Name, err)
	}
	r.throttle.wrote(work)
	return nil
}
