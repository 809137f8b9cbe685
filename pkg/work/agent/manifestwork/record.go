// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// recordKeeper reads and writes the AppliedManifestWorks on the cluster.
type recordKeeper struct {
	options Options
	hash    string        // of the hub
	member  client.Client // not cached
	kinds   apimeta.RESTMapper
	// kept caches AppliedManifestWorks by name.
	kept *engine.RecordCache[*workv1.AppliedManifestWork]
}

// nameOf returns the name of a ManifestWork's AppliedManifestWork.
func (k *recordKeeper) nameOf(work string) string { return k.hash + "-" + work }

// find gets an AppliedManifestWork; nil if there is none.
func (k *recordKeeper) find(ctx context.Context, name string) (*workv1.AppliedManifestWork, error) {
	record := &workv1.AppliedManifestWork{}
	if found, err := reconcileutil.GetIfExists(ctx, k.member, client.ObjectKey{Name: name}, record, "getting AppliedManifestWork %q on the cluster", name); !found {
		return nil, err
	}
	k.kept.Keep(record.Name, record)
	return record, nil
}

// current is find without a request, if the watch confirms that the cached record is unchanged or
// that none exists.
func (k *recordKeeper) current(ctx context.Context, name string) (*workv1.AppliedManifestWork, error) {
	record, found, absent := k.kept.Current(name, memberwatch.Object{Resource: records(), Name: name})
	if found || absent {
		return record, nil
	}
	return k.find(ctx, name)
}

// ensure gets or creates the AppliedManifestWork of a ManifestWork and updates it.
func (k *recordKeeper) ensure(ctx context.Context, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	name := k.nameOf(work.Name)
	record, err := k.current(ctx, name)
	if record == nil && err == nil {
		record, err = k.create(ctx, name, work)
	}
	if err != nil || record.DeletionTimestamp != nil {
		return record, err
	}
	before := record.DeepCopy()
	k.fill(record, work)
	if sameRecord(before, record) {
		return record, k.stopEviction(ctx, record)
	}
	if err := k.member.Patch(ctx, record, reconcileutil.PatchFrom(before), client.FieldOwner(workv1.DefaultFieldManager)); err != nil {
		return nil, fmt.Errorf("updating AppliedManifestWork %q on the cluster: %w", name, err)
	}
	k.kept.Keep(record.Name, record)
	return record, k.stopEviction(ctx, record)
}

// create creates the record, or gets it if another client just created it.
func (k *recordKeeper) create(ctx context.Context, name string, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	record := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	k.fill(record, work)
	if err := k.beginEpoch(ctx, record, work); err != nil {
		return nil, err
	}
	err := k.member.Create(ctx, record, client.FieldOwner(workv1.DefaultFieldManager))
	if apierrors.IsAlreadyExists(err) {
		if there, findErr := k.find(ctx, name); there != nil || findErr != nil {
			return there, findErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating AppliedManifestWork %q on the cluster: %w", name, err)
	}
	k.kept.Keep(record.Name, record)
	return record, nil
}

// fill sets the labels, finalizer and spec of the record.
func (k *recordKeeper) fill(record *workv1.AppliedManifestWork, work *workv1.ManifestWork) {
	if len(work.Labels) > 0 {
		labels := maps.Clone(record.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, work.Labels)
		record.Labels = labels
	}
	controllerutil.AddFinalizer(record, workv1.AppliedManifestWorkFinalizer)
	record.Spec = workv1.AppliedManifestWorkSpec{HubHash: k.hash, AgentID: k.options.AgentID, ManifestWorkName: work.Name}
}

func sameRecord(a, b *workv1.AppliedManifestWork) bool {
	return a.Spec == b.Spec && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Finalizers, b.Finalizers)
}

// stopEviction clears the start time of an eviction, because the ManifestWork exists again.
func (k *recordKeeper) stopEviction(ctx context.Context, record *workv1.AppliedManifestWork) error {
	if record.Status.EvictionStartTime == nil {
		return nil
	}
	record.Status.EvictionStartTime = nil
	return k.writeStatus(ctx, record)
}

func (k *recordKeeper) writeStatus(ctx context.Context, record *workv1.AppliedManifestWork) error {
	if err := k.member.Status().Update(ctx, record, client.FieldOwner(workv1.DefaultFieldManager)); err != nil {
		return fmt.Errorf("writing the status of AppliedManifestWork %q on the cluster: %w", record.Name, err)
	}
	k.kept.Keep(record.Name, record)
	return nil
}

// ledger is the ledger of one ManifestWork, in the status of its AppliedManifestWork.
type ledger struct {
	*recordKeeper
	record  *workv1.AppliedManifestWork
	entries []engine.Entry
}

var _ engine.Ledger = (*ledger)(nil)

// ledgerOf reads the ledger of a record. The record stores resources but no kinds, which discovery
// provides.
func (k *recordKeeper) ledgerOf(record *workv1.AppliedManifestWork) (*ledger, error) {
	l := &ledger{recordKeeper: k, record: record}
	for _, of := range record.Status.AppliedResources {
		entry := engine.Entry{UID: of.UID, Run: engine.Run(of.Run), Ref: manifest.Ref{
			Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace, Name: of.Name}}
		kind, err := k.kinds.KindFor(entry.GroupVersionResource())
		switch {
		case apimeta.IsNoMatchError(err):
			entry.Kind = of.Resource // the kind and its objects are gone: any name will do
		case err != nil:
			return nil, fmt.Errorf("asking the cluster which kind %s are: %w", entry.GroupVersionResource(), err)
		default:
			entry.Kind = kind.Kind
		}
		l.entries = append(l.entries, entry)
	}
	return l, nil
}

// Entries returns the ledger as last read or written.
func (l *ledger) Entries() []engine.Entry { return l.entries }

// Write writes the ledger if it differs.
func (l *ledger) Write(ctx context.Context, entries []engine.Entry) error {
	resources := make([]workv1.AppliedManifestResourceMeta, 0, len(entries))
	for _, e := range entries {
		resources = append(resources, workv1.AppliedManifestResourceMeta{
			Group: e.Group, Version: e.Version, Resource: e.Resource, Namespace: e.Namespace, Name: e.Name, UID: e.UID,
			Run: workv1.AppliedManifestResourceRun(e.Run)})
	}
	slices.SortFunc(resources, inOrder)
	if slices.Equal(l.record.Status.AppliedResources, resources) {
		l.entries = entries
		return nil
	}
	l.record.Status.AppliedResources = resources
	if err := l.writeStatus(ctx, l.record); err != nil {
		return err
	}
	l.entries = entries
	return nil
}

func inOrder(a, b workv1.AppliedManifestResourceMeta) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
