// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/expect"
)

// immutable is what most refusals say.
const immutable = "field is immutable"

// A row is a write of one field, as YAML, and what the hub says to it.
type row struct {
	// path is below spec, if it does not begin with metadata; an empty value removes.
	path, value string
	// says is in the refusal; empty if the write is taken.
	says string
	// field is what the refusal names, if not the path.
	field string
	// alongPath and alongValue are another field that is written too.
	alongPath, alongValue string
}

// writing is a row. Refusals name the path, if not something else with at.
func writing(path, value, says string) row { return row{path: path, value: value, says: says} }

// at is the row whose refusal names another field.
func (r row) at(field string) row {
	r.field = field
	return r
}

// beside is the row with another field written too.
func (r row) beside(path, value string) row {
	r.alongPath, r.alongValue = path, value
	return r
}

// change writes the row into an object that is there.
func (r row) change(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	r.expect(change(ctx, masters, object, r.write))
}

// create tries a new object with what the row writes.
func (r row) create(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	r.write(object)
	r.expect(masters.Create(ctx, object, client.DryRunAll))
}

// attempt is create for rows whose refusal names whatever part of the object.
func (r row) attempt(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	r.write(object)
	err := masters.Create(ctx, object, client.DryRunAll)
	if r.says == "" {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(err).To(MatchError(ContainSubstring(r.says)))
	Expect(expect.StatusOf(err).Details.Causes).NotTo(BeEmpty())
}

func (r row) write(object *unstructured.Unstructured) {
	GinkgoHelper()
	set(below("spec", r.path), r.value)(object)
	if r.alongPath != "" {
		set(below("spec", r.alongPath), r.alongValue)(object)
	}
}

func (r row) expect(err error) {
	GinkgoHelper()
	if r.says == "" {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	field := r.field
	if field == "" {
		field = r.path
	}
	Expect(err).To(beInvalid(below("spec", field), r.says))
}

// below completes a path that does not begin at an object's root.
func below(root, path string) string {
	if path == "spec" || strings.HasPrefix(path, "metadata.") {
		return path
	}
	return root + "." + path
}
