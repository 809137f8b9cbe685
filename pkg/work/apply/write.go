// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/merge"
)

const (
	// FieldManager is under which name the agent writes objects on the member.
	FieldManager = "work-api-agent"

	// beforeFirstApply is the manager to whom the API server gives the fields of
	// an object that was never applied on the server's side.
	beforeFirstApply = "before-first-apply"

	// maxAnnotations is how many bytes the annotations of one object may have
	// together; the API server refuses more.
	maxAnnotations = 256 << 10
)

// write sends what is needed to bring live, nil if there is no object, to what
// the manifest asks for. It returns the object as it is afterwards.
func (e *engine) write(ctx context.Context, t task, it item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	desired, merging := desire(t, it, live)
	if !merging {
		return e.serverSide(ctx, t, it, desired, live)
	}
	if live == nil {
		return e.at(it).Create(ctx, desired, metav1.CreateOptions{FieldManager: FieldManager})
	}
	patch, err := e.merge(it, desired, live)
	if err != nil || patch.IsEmpty() {
		return live, err
	}
	return e.at(it).Patch(ctx, it.id.Name, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: FieldManager})
}

// differs reports whether write would change live. It writes nothing.
func (e *engine) differs(ctx context.Context, t task, it item, live *unstructured.Unstructured) (bool, error) {
	desired, merging := desire(t, it, live)
	if merging {
		patch, err := e.merge(it, desired, live)
		return !patch.IsEmpty(), err
	}
	found, err := e.rehearse(ctx, it, live)
	return len(found.fields) > 0, err
}

// desire is the object to merge into live, or to apply on the server's side.
func desire(t task, it item, live *unstructured.Unstructured) (desired *unstructured.Unstructured, merging bool) {
	desired, merging = it.object.DeepCopy(), merges(t, it, live)
	desired.SetAnnotations(annotations(it, merging))
	desired.SetOwnerReferences([]metav1.OwnerReference{t.owner})
	if merging && live != nil {
		desired.SetOwnerReferences(withOwner(live.GetOwnerReferences(), t.owner))
	}
	return desired, merging
}

// merges reports whether the manifest is merged into live on the client's side. One
// that is too large has no place where the merge could remember what was applied: a
// server-side apply needs none, and like the merge it overrides.
func merges(t task, it item, live *unstructured.Unstructured) bool {
	return t.strategy.Type != placementv1beta1.ServerSideApply && annotationBytes(annotations(it, true), live) <= maxAnnotations
}

// annotations are those of the manifest and ours; a merge remembers what it applied.
func annotations(it item, merging bool) map[string]string {
	all := it.object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[placementv1beta1.ManifestHashAnnotation] = it.hash
	if merging {
		all[placementv1beta1.LastAppliedConfigAnnotation] = string(merge.Base(it.object.GroupVersionKind(), it.text))
	}
	return all
}

// merge computes the patch of a client-side apply.
func (e *engine) merge(it item, desired, live *unstructured.Unstructured) (merge.Patch, error) {
	modified, err := desired.MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the wanted object: %w", err)
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the object of the member: %w", err)
	}
	patch, err := e.merger.ThreeWay(it.object.GroupVersionKind(), lastApplied(live), modified, current)
	if err != nil {
		return merge.Patch{}, unmergeable{err}
	}
	return patch, nil
}

func (e *engine) serverSide(ctx context.Context, t task, it item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	force := forced(t.strategy)
	if live != nil {
		if err := e.moveFields(ctx, it, live); err != nil {
			return nil, err
		}
		force = force || onlyOurs(live.GetManagedFields())
	}
	if live != nil && t.strategy.WhenToApply == placementv1beta1.ApplyIfNotDrifted {
		desired.SetResourceVersion(live.GetResourceVersion()) // a drift since the comparison is not overwritten
	}
	return e.at(it).Apply(ctx, it.id.Name, desired, metav1.ApplyOptions{FieldManager: FieldManager, Force: force})
}

// moveFields hands what we own by client-side writes to our server-side self.
// Without it a field that left the manifest would stay on the object.
func (e *engine) moveFields(ctx context.Context, it item, live *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil {
		return unmergeable{err}
	}
	if len(patch) == 0 {
		return nil
	}
	_, err = e.at(it).Patch(ctx, it.id.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// forced reports whether fields of others are taken. A client-side apply always
// does, also when it is too large to be one.
func forced(strategy placementv1beta1.ApplyStrategy) bool {
	return strategy.Type == placementv1beta1.ClientSideApply ||
		strategy.ServerSideApplyConfig != nil && strategy.ServerSideApplyConfig.ForceConflicts
}

// onlyOurs reports whether nobody but us, and whoever made the object before
// anybody applied it, owns fields outside of subresources.
func onlyOurs(entries []metav1.ManagedFieldsEntry) bool {
	for _, entry := range entries {
		if entry.Subresource == "" && entry.Manager != FieldManager && entry.Manager != beforeFirstApply {
			return false
		}
	}
	return true
}

// lastApplied is the manifest as we applied it last on the client's side.
func lastApplied(live *unstructured.Unstructured) []byte {
	text := live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]
	if !json.Valid([]byte(text)) {
		return nil // somebody wrote over it: as if never applied
	}
	return []byte(text)
}

// annotationBytes is the size of the annotations that live would have with those
// that are wanted, as the API server counts it.
func annotationBytes(wanted map[string]string, live *unstructured.Unstructured) int {
	size := 0
	for key, value := range wanted {
		size += len(key) + len(value)
	}
	if live == nil {
		return size
	}
	for key, value := range live.GetAnnotations() {
		if _, replaced := wanted[key]; !replaced {
			size += len(key) + len(value)
		}
	}
	return size
}
