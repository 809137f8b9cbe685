// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

// source is a family of placements.
type source interface {
	// name is the controller's.
	name() string
	// group is the placements' API group.
	group() string
	// kind is that of the placements in a namespace, or in none.
	kind(namespace string) string
	// empty is a placement to read into.
	empty(namespace string) client.Object
	// publishes reports whether a placement is published that does not say.
	publishes() bool
	// chosen are the clusters that a placement was decided for, in the order in which they are
	// told, as parts that share no object; false while it is being decided.
	chosen(ctx context.Context, placement client.Object) (parts [][]string, done bool, err error)
	// watch adds what decisions are made of.
	watch(b *builder.Builder) *builder.Builder
}

// asks reports whether a placement is to be published.
func asks(placement client.Object, unlessSaid bool) bool {
	switch placement.GetAnnotations()[multiclusterv1alpha1.AnnotationStandardDecisions] {
	case "true":
		return true
	case "false":
		return false
	default:
		return unlessSaid
	}
}

const (
	// maxKey is how long the value of a label may be.
	maxKey = 63
	// hashed is how many characters tell keys apart that would be longer.
	hashed = 10
)

// keyOf is the decision key of a placement: what the objects of its decision are called, but
// for their number. Placements of different kinds have different keys.
func keyOf(kind, name string) string {
	key := strings.ToLower(kind) + "-" + name
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return strings.TrimRight(key[:maxKey-hashed-1], "-.") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// namespaceOf is where the decision of a placement is published: beside it, or beside the
// profiles if it is in no namespace.
func (r *Reconciler) namespaceOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return r.Namespace
	}
	return key.Namespace
}
