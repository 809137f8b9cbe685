// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// A member can store nothing of a write and still give the object a new generation. It does so if the manifest
// has a field that its API version has and the version in which the member stores the kind lacks. Each retry would
// make the controllers of the kind reconcile for nothing. The engine therefore retries such a write as a dry run,
// and writes only what would change the object: after the kind or a webhook changed, for example.

// skipFutile returns the result of a write that would not change the object. It writes nothing.
func (e *Engine) skipFutile(ctx context.Context, t task, it Item, live *unstructured.Unstructured) (ManifestResult, bool) {
	if live == nil || !t.cache.isFutile(it) {
		return ManifestResult{}, false
	}
	if written, err := e.rehearsing().write(ctx, t, it, live); err != nil || !hasSameContent(live, written) {
		return ManifestResult{}, false
	}
	return e.verified(ctx, t, it, live, live), true
}

// hasSameContent reports whether two states of an object differ at most in their status and in what each write of
// an API server changes.
func hasSameContent(a, b *unstructured.Unstructured) bool {
	return a == b || apiequality.Semantic.DeepEqual(contentOf(a), contentOf(b))
}

func contentOf(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "status")
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "resourceVersion")
	delete(metadata, "generation")
	managers := map[string]any{} // API servers sort the entries by the times of the writes.
	for _, entry := range items(metadata["managedFields"]) {
		managers[fmt.Sprint(entry["manager"], entry["operation"], entry["subresource"], entry["apiVersion"])] = entry["fieldsV1"]
	}
	metadata["managedFields"] = managers
	content["metadata"] = metadata
	return content
}

// rehearsing returns an engine that makes each write a dry run.
func (e *Engine) rehearsing() *Engine {
	with := *e
	with.rehearses = true
	return &with
}

// rehearsal makes each write a dry run.
type rehearsal struct{ dynamic.ResourceInterface }

func (r rehearsal) Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error) {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.Create(ctx, object, options, subresources...)
}

func (r rehearsal) Update(ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions, subresources ...string) (*unstructured.Unstructured, error) {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.Update(ctx, object, options, subresources...)
}

func (r rehearsal) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error) {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.Patch(ctx, name, kind, data, options, subresources...)
}

func (r rehearsal) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string) (*unstructured.Unstructured, error) {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.Apply(ctx, name, object, options, subresources...)
}

func (r rehearsal) Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.Delete(ctx, name, options, subresources...)
}

func (r rehearsal) DeleteCollection(ctx context.Context, options metav1.DeleteOptions, list metav1.ListOptions) error {
	options.DryRun = []string{metav1.DryRunAll}
	return r.ResourceInterface.DeleteCollection(ctx, options, list)
}
