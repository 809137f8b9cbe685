// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// source is a family of placements.
type source interface {
	// name is the controller's name.
	name() string
	group() string
	// kind is the kind of placements in a namespace, or of cluster-scoped ones.
	kind(namespace string) string
	// empty is a placement to read into.
	empty(namespace string) client.Object
	// publishes reports whether placements without a request are published.
	publishes() bool
	// chosen are the clusters of a placement's decision, in order, as parts that share no object; false
	// while the decision is incomplete.
	chosen(ctx context.Context, placement client.Object) (parts [][]string, done bool, err error)
	// watch adds watches for the input of decisions.
	watch(b *builder.Builder) *builder.Builder
}

// isPublished reports whether a placement should be published.
func isPublished(placement client.Object, byDefault bool) bool {
	switch placement.GetAnnotations()[multiclusterv1alpha1.AnnotationStandardDecisions] {
	case "true":
		return true
	case "false":
		return false
	default:
		return byDefault
	}
}

const (
	// maxKey is the maximum length of a label value.
	maxKey = 63
	// hashed is the number of characters that distinguish keys that would be longer.
	hashed = 10
)

// keyOf is the decision key of a placement: the name of its objects without their number. Placements of
// different kinds have different keys.
func keyOf(kind, name string) string {
	key := strings.ToLower(kind) + "-" + name
	if len(key) <= maxKey {
		return key
	}
	return strings.TrimRight(key[:maxKey-hashed-1], "-.") + "-" + hash.Of(key)[:hashed]
}

// namespaceOf is the namespace of a placement's decision: its own, or for a cluster-scoped placement
// that of the profiles.
func (r *Reconciler) namespaceOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return r.Namespace
	}
	return key.Namespace
}
