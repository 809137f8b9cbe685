// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// overrides looks at the others live: there are a hundred at most, and a cache that
// lags would let two of the same resource in. Its author has to be allowed to change on
// the hub what it changes on the way to members.
type overrides struct {
	live      client.Reader
	resources author.Resources
	authors   authors
	// trusting disables the author check.
	trusting bool
}

// cluster returns the errors of a ClusterResourceOverride. An update that
// leaves its spec as it was passes, so that an override that is older than a rule
// can still be labelled.
func (o overrides) cluster(ctx context.Context, older **placementv1beta1.ClusterResourceOverride, newer *placementv1beta1.ClusterResourceOverride) (field.ErrorList, error) {
	if older != nil && equality.Semantic.DeepEqual((*older).Spec, newer.Spec) {
		return nil, nil
	}
	var others placementv1beta1.ClusterResourceOverrideList
	if err := o.live.List(ctx, &others); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceOverrides: %w", err)
	}
	return o.refuseUnauthorized(ctx, validation.ValidateClusterResourceOverride(newer, others.Items), func() ([]author.Question, error) {
		return author.OfClusterOverride(&newer.Spec, o.resources)
	})
}

// namespaced is the same for a ResourceOverride and its namespace.
func (o overrides) namespaced(ctx context.Context, older **placementv1beta1.ResourceOverride, newer *placementv1beta1.ResourceOverride) (field.ErrorList, error) {
	if older != nil && equality.Semantic.DeepEqual((*older).Spec, newer.Spec) {
		return nil, nil
	}
	var others placementv1beta1.ResourceOverrideList
	if err := o.live.List(ctx, &others, client.InNamespace(newer.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ResourceOverrides of namespace %q: %w", newer.Namespace, err)
	}
	return o.refuseUnauthorized(ctx, validation.ValidateResourceOverride(newer, others.Items), func() ([]author.Question, error) {
		return author.OfOverride(newer.Namespace, &newer.Spec, o.resources)
	})
}

// refuseUnauthorized adds to the problems of an override the updates that its author cannot make. An
// override with problems is rejected without that check, with messages that clients compare.
func (o overrides) refuseUnauthorized(ctx context.Context, problems field.ErrorList, questionsOf func() ([]author.Question, error)) (field.ErrorList, error) {
	if o.trusting || len(problems) > 0 {
		return problems, nil
	}
	questions, err := questionsOf()
	if err != nil {
		return nil, err
	}
	return o.authors.refused(ctx, "an override", questions)
}
