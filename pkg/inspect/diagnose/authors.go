// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// authors lists the placements whose author was not checked, and those with resources that were left
// out because the author or the gateway has no access to them.
func (r *Reporter) authors(ctx context.Context) (section, error) {
	s := section{title: "Placements without a complete author check", head: []string{"PLACEMENT", "CONDITION", "REASON"}}
	all, more, err := r.allPlacements(ctx)
	if err != nil {
		return s, err
	}
	for _, placement := range all {
		s.rows = append(s.rows, authorRows(placement)...)
	}
	mode, err := r.authorCheck(ctx)
	if err != nil {
		return s, err
	}
	s.note = joined(more, mode)
	return s, nil
}

func authorRows(placement placementv1beta1.PlacementObject) []row {
	name := placement.GetName()
	if placement.GetNamespace() != "" {
		name = placement.GetNamespace() + "/" + name
	}
	var rows []row
	for rank, kind := range []string{placementv1beta1.ConditionResourcesWithheld, placementv1beta1.ConditionResourcesUnreadable, placementv1beta1.ConditionResourcesTooLarge,
		placementv1beta1.ConditionAuthorCheckSkipped, placementv1beta1.PreviousAuthorCheckSkipped} {
		if c := meta.FindStatusCondition(placement.GetStatus().Conditions, kind); c != nil {
			rows = append(rows, row{rank: rank, cells: []string{name, c.Type, c.Message}})
		}
	}
	return rows
}

// authorCheck reports whether the gateway checks the permissions of authors.
func (r *Reporter) authorCheck(ctx context.Context) (string, error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Hub.Get(ctx, client.ObjectKey{Name: policies.ValidatingConfiguration}, configuration)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("author check disabled: ValidatingWebhookConfiguration %s does not exist", policies.ValidatingConfiguration), nil
	case err != nil:
		return "", err
	case policies.AuthorizesAuthors(configuration):
		return "author check enabled", nil
	}
	return "author check disabled: the gateway runs with placement.authorizeAuthors: false, or does not support the check", nil
}
