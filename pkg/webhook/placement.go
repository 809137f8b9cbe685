// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// Paths on the webhook server: the group with its dots, the version and the kind.
const (
	pathDefaultClusterResourcePlacement  = "/mutate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacement"
	pathValidateClusterResourcePlacement = "/validate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacement"
	pathValidateResourcePlacement        = "/validate-placement.kubernetes-fleet.io-v1beta1-resourceplacement"
)

// Register adds every handler to the manager's webhook server.
func Register(mgr ctrl.Manager) {
	scopes := scopesOf(mgr.GetRESTMapper())
	server, scheme := mgr.GetWebhookServer(), mgr.GetScheme()
	server.Register(pathDefaultClusterResourcePlacement,
		admission.WithDefaulter[*placementv1beta1.ClusterResourcePlacement](scheme, placementDefaulter{}))
	server.Register(pathValidateClusterResourcePlacement,
		admission.WithValidator[*placementv1beta1.ClusterResourcePlacement](scheme, placementValidator[*placementv1beta1.ClusterResourcePlacement]{
			kind: "ClusterResourcePlacement", clusterScoped: true, scopes: scopes,
		}))
	server.Register(pathValidateResourcePlacement,
		admission.WithValidator[*placementv1beta1.ResourcePlacement](scheme, placementValidator[*placementv1beta1.ResourcePlacement]{
			kind: "ResourcePlacement", scopes: scopes,
		}))
}

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
	return nil, v.invalid(placement, v.problems(placement))
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
	return nil, v.invalid(newer, append(problems, v.problems(newer)...))
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

func (v placementValidator[P]) invalid(placement P, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: placementv1beta1.GroupVersion.Group, Kind: v.kind}
	if placement.GetName() == "" {
		return apierrors.NewInvalid(kind, fmt.Sprintf("(generated from %q)", placement.GetGenerateName()), problems)
	}
	return apierrors.NewInvalid(kind, placement.GetName(), problems)
}
