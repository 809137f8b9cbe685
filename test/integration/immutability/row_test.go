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

	"fleetgate.io/fleetgate/test/support/expect"
)

// immutable is the text of most rejections.
const immutable = "field is immutable"

// A row is a write of one field as YAML, and the hub's answer.
type row struct {
	// path is below spec unless it begins with metadata. An empty value removes the field.
	path, value string
	// says is in the rejection; empty if the write is accepted.
	says string
	// field is the field that the rejection names, if it is not the path.
	field string
	// alongPath and alongValue are a second field of the write.
	alongPath, alongValue string
}

// writing returns a row whose rejection names the path; at changes that.
func writing(path, value, says string) row { return row{path: path, value: value, says: says} }

// at sets the field that the rejection names.
func (r row) at(field string) row {
	r.field = field
	return r
}

// beside adds a second field to the write.
func (r row) beside(path, value string) row {
	r.alongPath, r.alongValue = path, value
	return r
}

// change writes the row into an existing object.
func (r row) change(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	r.expect(change(ctx, masters, object, r.write))
}

// create creates a new object with the row's field.
func (r row) create(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	r.write(object)
	r.expect(masters.Create(ctx, object, client.DryRunAll))
}

// attempt is like create, for rows whose rejection can name any field.
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

// below returns the complete path of a field in the object.
func below(root, path string) string {
	if path == "spec" || strings.HasPrefix(path, "metadata.") {
		return path
	}
	return root + "." + path
}
