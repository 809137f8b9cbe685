// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(early.Add(time.Hour))
)

// ours returns a dialect for tests.
func ours() Dialect {
	return Dialect{
		Manager:            "us",
		HashAnnotation:     "kubernetes-fleet.io/spec-hash",
		AppliedAnnotation:  "kubernetes-fleet.io/last-applied-configuration",
		RecreateAnnotation: "fleetgate.io/immutable-change",
		Waves:              manifest.DependencyWaves(),
		Remedies:           Remedies{FieldConflict: "Set force", DuplicateKeys: "Keep one", Immutable: "annotate it with fleetgate.io/immutable-change=Recreate", Contested: "stop it there"},
	}
}

// testFamily reserves the namespaces with this reason, if it is not empty.
type testFamily string

var _ Family = testFamily("")

func (testFamily) Reserved(*unstructured.Unstructured) string { return "" }

func (f testFamily) ReservedNamespace(metav1.Object) string { return string(f) }

func (testFamily) WorkOf(memberwatch.Event) (client.Object, bool) { return nil, true }

// testOwner decides as its fields say; without them as DefaultOwner.
type testOwner struct {
	DefaultOwner
	mayWrite func(Ownership) *refusal.Refusal
	next     *metav1.OwnerReference
	claim    Claim
}

func (o testOwner) MayWrite(_ context.Context, s Ownership, _ *unstructured.Unstructured) *refusal.Refusal {
	if o.mayWrite == nil {
		return nil
	}
	return o.mayWrite(s)
}

func (o testOwner) NextOwner(context.Context, Entry) (*metav1.OwnerReference, error) {
	return o.next, nil
}

func (o testOwner) Claim(context.Context, string, manifest.Key) (Claim, error) { return o.claim, nil }

func recordRef(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "AppliedWork", Name: name, UID: uid, BlockOwnerDeletion: ptr.To(true)}
}

func done(name string, state availability.State) ManifestResult {
	return ManifestResult{Ref: id(name), Generation: 2, Availability: availability.Finding{State: state, Message: "text"}}
}

// plan plans manifests on a member with these kinds.
func plan(manifests [][]byte, kinds kindFinder) ([]Item, error) {
	e := &Engine{Dialect: ours(), family: testFamily(""), kinds: &servedKinds{current: kinds}}
	return e.plan(manifests)
}

func inWaves(items []Item) [][]int { return (&Engine{Dialect: ours()}).inWaves(items) }

var _ kindFinder = (apimeta.RESTMapper)(nil)
