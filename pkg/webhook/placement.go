// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// scopesOf asks the hub's own discovery; the mapper looks again when it does not know a kind.
func scopesOf(mapper meta.RESTMapper) rules.Scopes {
	return func(kind schema.GroupVersionKind) (bool, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return false, err
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}

type placementDefaulter struct{}

// Default fills in what the placement leaves open.
func (placementDefaulter) Default(_ context.Context, placement *placementv1beta1.ClusterResourcePlacement) error {
	rules.DefaultPlacement(&placement.Spec)
	return nil
}

// placementValidator serves both kinds of placement with the same rules.
type placementValidator[P placementv1beta1.PlacementObject] struct {
	kind          string
	clusterScoped bool
	scopes        rules.Scopes
}

// ValidateCreate returns 422 with every error of a new placement.
func (v placementValidator[P]) ValidateCreate(_ context.Context, placement P) (admission.Warnings, error) {
	return nil, invalid(v.groupKind(), placement, v.problems(placement))
}

// ValidateUpdate returns 422 with every error of an update. One that leaves the
// spec as it was passes: a kind that the hub has stopped to serve must not keep
// controllers from their finalizers, nor users from their labels. So does one of
// a placement that is being deleted.
func (v placementValidator[P]) ValidateUpdate(_ context.Context, older, newer P) (admission.Warnings, error) {
	if newer.GetDeletionTimestamp() != nil || meansTheSame(older.GetSpec(), newer.GetSpec()) {
		return nil, nil
	}
	problems := rules.ValidatePlacementUpdate(older.GetSpec(), newer.GetSpec())
	return nil, invalid(v.groupKind(), newer, append(problems, v.problems(newer)...))
}

// meansTheSame takes defaults into account: they are filled in with the first
// update of a placement that is older than the webhook.
func meansTheSame(older, newer *placementv1beta1.PlacementSpec) bool {
	older, newer = older.DeepCopy(), newer.DeepCopy()
	rules.DefaultPlacement(older)
	rules.DefaultPlacement(newer)
	return equality.Semantic.DeepEqual(older, newer)
}

// ValidateDelete allows.
func (v placementValidator[P]) ValidateDelete(context.Context, P) (admission.Warnings, error) {
	return nil, nil
}

func (v placementValidator[P]) problems(placement P) field.ErrorList {
	meta := metav1.ObjectMeta{Name: placement.GetName(), Namespace: placement.GetNamespace()}
	return rules.ValidatePlacement(&meta, placement.GetSpec(), v.clusterScoped, v.scopes)
}

func (v placementValidator[P]) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: placementv1beta1.GroupVersion.Group, Kind: v.kind}
}
