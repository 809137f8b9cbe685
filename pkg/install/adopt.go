// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// mayAdopt returns a *ForeignObjectError if adoption is not enabled, or if the object's owner is still
// running.
func (i *Installer) mayAdopt(ctx context.Context, current *unstructured.Unstructured) error {
	foreign := &ForeignObjectError{Kind: current.GetKind(), Name: current.GetName(), Owner: ownerOf(current)}
	if !i.Adopt {
		return foreign
	}
	for _, key := range leasesOf(current.GetName()) {
		var lease coordinationv1.Lease
		err := i.Client.Get(ctx, key, &lease)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking whether %s still runs: %w", foreign.Owner, err)
		}
		if err == nil && isHeld(&lease, i.Clock.Now()) {
			foreign.Running = key.String()
			return foreign
		}
	}
	return nil
}

// adopt replaces a foreign object completely, if that is allowed. Applying it instead would keep fields
// that the other product set and we do not, such as a conversion webhook or a switch that disables the
// verification of certificates.
func (i *Installer) adopt(ctx context.Context, current, desired *unstructured.Unstructured) error {
	if err := i.mayAdopt(ctx, current); err != nil {
		return err
	}
	kind, name, owner := current.GetKind(), current.GetName(), ownerOf(current)
	patch, err := json.Marshal(replacement(current, desired))
	if err != nil {
		return fmt.Errorf("adopting %s %s: %w", kind, name, err)
	}
	if err := i.Client.Patch(ctx, current, client.RawPatch(types.JSONPatchType, patch), FieldOwner); err != nil {
		return fmt.Errorf("adopting %s %s: %w", kind, name, err)
	}
	log.FromContext(ctx).Info("Adopted an object of a product that is no longer running", "kind", kind, "name", name, "owner", owner)
	return nil
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// replacement turns the current object into the desired one. It fails with a conflict if the object has
// changed since. Finalizers stay, because the API server sets those of CustomResourceDefinitions. Owner
// references are removed: otherwise the garbage collector would delete the object with the other
// product.
func replacement(current, desired *unstructured.Unstructured) []operation {
	operations := []operation{
		{Op: "add", Path: "/metadata/resourceVersion", Value: current.GetResourceVersion()},
		{Op: "add", Path: "/metadata/labels", Value: desired.GetLabels()},
		{Op: "add", Path: "/metadata/annotations", Value: desired.GetAnnotations()},
	}
	if len(current.GetOwnerReferences()) > 0 {
		operations = append(operations, operation{Op: "remove", Path: "/metadata/ownerReferences"})
	}
	identity := []string{"apiVersion", "kind", "metadata", "status"}
	for _, field := range slices.Sorted(maps.Keys(current.Object)) {
		if _, wanted := desired.Object[field]; !wanted && !slices.Contains(identity, field) {
			operations = append(operations, operation{Op: "remove", Path: "/" + field})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(desired.Object)) {
		if !slices.Contains(identity, field) {
			operations = append(operations, operation{Op: "add", Path: "/" + field, Value: desired.Object[field]})
		}
	}
	return operations
}
