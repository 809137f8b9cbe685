// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// ledger is the ledger of one Work, in the status of its AppliedWork.
type ledger struct {
	*records
	record *placementv1beta1.AppliedWork
}

var _ engine.Ledger = ledger{}

// Entries returns the ledger as last read or written.
func (l ledger) Entries() []engine.Entry {
	entries := make([]engine.Entry, 0, len(l.record.Status.AppliedResources))
	for _, of := range l.record.Status.AppliedResources {
		entries = append(entries, engine.Entry{Ref: manifest.Ref(of.WorkResourceIdentifier), UID: of.UID, Run: engine.Run(of.Run)})
	}
	return entries
}

// Write writes the ledger if it differs.
func (l ledger) Write(ctx context.Context, entries []engine.Entry) error {
	resources := slices.Grow([]placementv1beta1.AppliedResourceMeta(nil), len(entries)) // nil if there are no entries
	for _, e := range entries {
		resources = append(resources, placementv1beta1.AppliedResourceMeta{
			WorkResourceIdentifier: placementv1beta1.WorkResourceIdentifier(e.Ref), UID: e.UID, Run: placementv1beta1.AppliedResourceRun(e.Run)})
	}
	if slices.Equal(l.record.Status.AppliedResources, resources) {
		return nil
	}
	l.record.Status.AppliedResources = resources
	if err := l.member.Status().Update(ctx, l.record, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("recording the objects of AppliedWork %q on the member: %w", l.record.Name, err)
	}
	l.kept.Keep(l.record.Spec.WorkName, l.record)
	return nil
}
