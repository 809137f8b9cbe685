// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(early.Add(time.Hour))
)

// ours returns a dialect for tests.
func ours() Dialect {
	return Dialect{
		Manager:           "us",
		HashAnnotation:    "kubernetes-fleet.io/spec-hash",
		AppliedAnnotation: "kubernetes-fleet.io/last-applied-configuration",
		Wave:              manifest.Wave,
		LastWave:          manifest.LastWave,
		Recreates: func(object *unstructured.Unstructured) bool {
			return object.GetAnnotations()["fleetgate.io/immutable-change"] == "Recreate"
		},
		Reserved: func(*unstructured.Unstructured) string { return "" },
		Remedies: Remedies{FieldsHeld: "Set force", Immutable: "annotate it with fleetgate.io/immutable-change=Recreate", Contested: "stop it there"},
	}
}

func recordRef(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "AppliedWork", Name: name, UID: uid, BlockOwnerDeletion: ptr.To(true)}
}

func done(name string, state availability.State) Outcome {
	return Outcome{Ref: id(name), Generation: 2, Availability: availability.Finding{State: state, Message: "text"}}
}

// plan plans manifests on a member with these kinds.
func plan(manifests [][]byte, kinds kindFinder) ([]Item, error) {
	e := &Engine{Dialect: ours(), kinds: &servedKinds{current: kinds}}
	return e.plan(manifests)
}

func inWaves(items []Item) [][]int { return (&Engine{Dialect: ours()}).inWaves(items) }

var _ kindFinder = (apimeta.RESTMapper)(nil)
