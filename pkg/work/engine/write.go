// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// maxAnnotations is the limit of API servers for the total size of an object's annotations.
const maxAnnotations = 256 << 10

// write changes live (nil if there is no object) to the desired state and returns the object
// afterwards.
func (e *Engine) write(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch it.Mode.Method {
	case Replace:
		return e.replace(ctx, t, it, live)
	case CreateOnly:
		return e.createOnly(ctx, t, it, live)
	}
	if it.Mode.Leave.isApplied(live) {
		return e.setOwners(ctx, t.Record, it, live)
	}
	if err := e.keepsRemoved(it, live); err != nil {
		return nil, err
	}
	desired, merging := e.desire(t.Record, it, live)
	if !merging {
		return e.serverSide(ctx, t, it, desired, live)
	}
	if live == nil {
		return e.at(it).Create(ctx, desired, metav1.CreateOptions{FieldManager: e.Manager})
	}
	written, err := e.mergeInto(ctx, it, desired, live)
	if errors.As(err, &unmergeable{}) {
		it.unmerged = true // A newer member can have fields that the agent does not know.
		return e.write(ctx, t, it, live)
	}
	return written, err
}

// mergeInto merges the manifest into the object, and merges again if fields that are beside those of the
// manifest exclude them.
func (e *Engine) mergeInto(ctx context.Context, it Item, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	base := e.lastApplied(it, live)
	if live.GetAnnotations()[e.HashAnnotation] != it.hash {
		base = withDerived(base, desired, live)
	}
	written, err := e.patch(ctx, it, base, desired, live)
	if !apierrors.IsInvalid(err) && !duplicatesNodePort(err) {
		return written, err
	}
	bySchema := !e.merger.Known.Recognizes(it.object.GroupVersionKind())
	if base = withExcluded(base, desired, live, err, bySchema); base == nil {
		return nil, err
	}
	again, failure := e.patch(ctx, it, base, desired, live)
	if apierrors.IsInvalid(failure) {
		return nil, err // The first error is that of the manifest.
	}
	return again, failure
}

// patch returns live if it needs no change.
func (e *Engine) patch(ctx context.Context, it Item, base []byte, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := e.merge(it, base, desired, live)
	if err != nil || patch.IsEmpty() {
		return live, err
	}
	return e.at(it).Patch(ctx, it.Ref.Name, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: e.managerOf(it)})
}

// differs reports whether write would change live. It changes nothing.
func (e *Engine) differs(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (bool, error) {
	switch it.Mode.Method {
	case Replace:
		return needsReplacing(t, it, replacement(it, live, t.Record), live), nil
	case CreateOnly:
		return len(live.GetOwnerReferences()) != len(ownersOf(it, live, t.Record)), nil
	}
	if it.Mode.Leave.isApplied(live) {
		return false, nil
	}
	desired, merging := e.desire(t.Record, it, live)
	if merging {
		patch, err := e.merge(it, e.lastApplied(it, live), desired, live)
		return !patch.IsEmpty(), err
	}
	found, err := e.rehearse(ctx, it, live)
	return len(found.Fields) > 0, err
}

// desire returns the object to merge into live, or to apply server-side.
func (e *Engine) desire(owner metav1.OwnerReference, it Item, live *unstructured.Unstructured) (desired *unstructured.Unstructured, merging bool) {
	desired, merging = it.object.DeepCopy(), e.merges(it, live)
	if !merging && it.Mode.Leave != nil {
		it.object = it.Mode.Leave.of(it.object, live)
		desired = it.object.DeepCopy()
	}
	if !merging {
		manifest.DropUnsetTimes(desired.Object)
		e.deriveAgain(it, desired, live)
	}
	if annotations := e.annotations(it, merging); len(annotations) > 0 {
		desired.SetAnnotations(annotations)
	}
	if !merging && !it.Mode.OwnTogether {
		live = nil
	}
	desired.SetOwnerReferences(ownersOf(it, live, owner))
	return desired, merging
}

// merges reports whether the manifest is merged on the client side. A manifest that is too large
// for the last-applied annotation, or that the agent cannot merge, is applied server-side instead,
// with force, since a merge overrides other managers too.
func (e *Engine) merges(it Item, live *unstructured.Unstructured) bool {
	return it.Mode.Method != ServerSide && !it.unmerged && annotationBytes(e.annotations(it, true), live) <= maxAnnotations
}

// annotations returns the annotations of the manifest and of the engine. A merge records what it
// applied.
func (e *Engine) annotations(it Item, merging bool) map[string]string {
	all := it.object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	if e.HashAnnotation != "" {
		all[e.HashAnnotation] = it.hash
	}
	if it.takenOver {
		all[e.TakenOverAnnotation] = takenOverValue
	}
	if merging {
		all[e.AppliedAnnotation] = string(merge.Base(it.object.GroupVersionKind(), it.text))
	}
	return all
}

// merge computes the patch of a client-side apply.
func (e *Engine) merge(it Item, base []byte, desired, live *unstructured.Unstructured) (merge.Patch, error) {
	modified, err := desired.MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the wanted object: %w", err)
	}
	current, err := withoutManagers(live).MarshalJSON()
	if err != nil {
		return merge.Patch{}, fmt.Errorf("encoding the object of the member: %w", err)
	}
	patch, err := e.merger.ThreeWay(it.object.GroupVersionKind(), base, modified, current)
	if err != nil {
		return merge.Patch{}, unmergeable{err}
	}
	return patch, nil
}

// withoutManagers returns an object without managedFields, which no manifest has. The rest is
// shared.
func withoutManagers(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	less := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	less.Object["metadata"] = metadata
	return less
}

// annotationBytes returns the size, as API servers count it, of live's annotations after adding the
// wanted ones.
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

// writeIfDue writes the object, unless a correction has to wait. An object that ran to completion and is
// deleted is not re-created.
func (e *Engine) writeIfDue(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	if live == nil {
		if out, ran := t.ran(ctx, it); ran {
			return out, true
		}
	}
	if wait := t.cache.wait(it, e.clock.Now()); wait > 0 {
		return e.postpone(ctx, t, it, live, wait), true
	}
	if out, futile := e.skipFutile(ctx, t, it, live); futile {
		return out, true
	}
	return e.writeOnce(ctx, t, it, live)
}

// writeOnce writes the object and returns the result.
func (e *Engine) writeOnce(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	written, err := e.write(ctx, t, it, live)
	switch {
	case err == nil && written.GetUID() == "":
		return ManifestResult{Ref: it.Ref, Final: true, Refused: &refusal.Refusal{Reason: NotWritten,
			Message: "The member accepts objects of this kind and does not store them: " + e.Remedies.KeptNone}}, true
	case err == nil:
		return e.verified(ctx, t, it, live, written), true
	case changedSince(err, live):
		return ManifestResult{}, false
	case isUnserved(err):
		return e.unserved(it, err), true
	}
	out := e.failed(it, live, NotWritten, err)
	out.Owned = out.Err != nil || live != nil && OwnershipOf(live.GetOwnerReferences(), t.Record).Ours
	if live == nil || !isImmutable(err) {
		return out, true
	}
	if against := e.mayRecreate(it, live, t.Record); against != "" {
		out.Refused.Message = Shorten(out.Refused.Message + ". " + against)
		return out, true
	}
	err = deleteExactly(ctx, e.at(it), live, metav1.DeletePropagationBackground)
	if err == nil || changedSince(err, live) {
		return ManifestResult{}, false // the next attempt re-creates it
	}
	out = e.failed(it, live, NotWritten, err)
	out.Owned = true
	return out, true
}

// unserved returns the result of a write to a path that the member does not serve: the kind was
// removed, or it is a built-in kind that does not support the request.
func (e *Engine) unserved(it Item, err error) ManifestResult {
	out := e.failed(it, nil, NotWritten, err)
	out.unserved, out.Owned = true, false
	if kind := it.object.GroupVersionKind(); !e.merger.Known.Recognizes(kind) {
		out.Refused = noKind(kind)
	}
	return out
}

// keepsRemoved returns an error if the member would accept the manifest, and keep a field that the manifest before
// set. The object would differ from that of members which get this manifest first. The error is that of an
// immutable field.
func (e *Engine) keepsRemoved(it Item, live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	switch it.object.GroupVersionKind().GroupKind() {
	case service:
		return e.staysHeadless(it, live)
	case claim:
		return e.keepsSource(it, live)
	case replicationController:
		return keepsSelector(it, live)
	}
	return nil
}

// staysHeadless returns the error of a Service whose manifest no longer has the clusterIP None. If the manifest has an
// address instead, API servers report its IP families.
func (e *Engine) staysHeadless(it Item, live *unstructured.Unstructured) error {
	wanted := clusterIP(it.object.Object)
	if clusterIP(live.Object) != corev1.ClusterIPNone || wanted == corev1.ClusterIPNone {
		return nil
	}
	if wanted == "" && clusterIP(e.lastManifest(it, live)) != corev1.ClusterIPNone {
		return nil // Another client set it.
	}
	switch kind, _, _ := unstructured.NestedString(it.object.Object, "spec", "type"); corev1.ServiceType(kind) {
	case "", corev1.ServiceTypeClusterIP:
	default:
		return nil // The API server changes it, or refuses it.
	}
	return keeps(it, "clusterIP", corev1.ClusterIPNone, "an API server keeps a headless Service headless")
}

func clusterIP(service map[string]any) string {
	ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP")
	return ip
}

// keepsSource returns the error of a PersistentVolumeClaim whose manifest no longer has the source of its data. API
// servers copy it from dataSource to dataSourceRef, or back, and restore the one from the other.
func (e *Engine) keepsSource(it Item, live *unstructured.Unstructured) error {
	t := trio{e.lastManifest(it, live), it.object.Object, live.Object}.below("spec")
	for _, field := range []string{"dataSource", "dataSourceRef"} {
		if t.before[field] != nil && t.live[field] != nil && t.wanted["dataSource"] == nil && t.wanted["dataSourceRef"] == nil {
			return keeps(it, field, t.live[field], "an API server keeps the source of a claim")
		}
	}
	return nil
}

// keepsSelector returns the error of a ReplicationController without a selector, whose template has other labels now.
// An API server sets the selector from the template when it creates the object, and rejects other labels.
func keepsSelector(it Item, live *unstructured.Unstructured) error {
	selector, _, _ := unstructured.NestedStringMap(live.Object, "spec", "selector")
	labels, _, _ := unstructured.NestedStringMap(it.object.Object, "spec", "template", "metadata", "labels")
	if given, _, _ := unstructured.NestedMap(it.object.Object, "spec", "selector"); len(given) > 0 {
		return nil
	}
	for key, value := range selector {
		if labels[key] != value {
			return keeps(it, "selector", selector, "an API server has set it from the labels of the template; set it in the manifest to replace the Pods yourself")
		}
	}
	return nil
}

// keeps returns the error of a field of the spec that cannot be removed.
func keeps(it Item, name string, value any, because string) error {
	return apierrors.NewInvalid(it.object.GroupVersionKind().GroupKind(), it.Ref.Name,
		field.ErrorList{field.Invalid(field.NewPath("spec", name), value, "cannot be changed: "+because)})
}
