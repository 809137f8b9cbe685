// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// envelopes keeps an envelope from being a way around RBAC: what is in it is not
// active on the hub, but the gateway makes it on members. So its author has to be
// allowed to make it on the hub.
type envelopes struct {
	resources author.Resources
	authors   authors
}

func (e envelopes) cluster(ctx context.Context, older **placementv1beta1.ClusterResourceEnvelope, newer *placementv1beta1.ClusterResourceEnvelope) (field.ErrorList, error) {
	var before map[string]placementv1beta1.EnvelopedObject
	if older != nil {
		before = (*older).Data
	}
	return e.check(ctx, "", before, newer.Data)
}

func (e envelopes) namespaced(ctx context.Context, older **placementv1beta1.ResourceEnvelope, newer *placementv1beta1.ResourceEnvelope) (field.ErrorList, error) {
	var before map[string]placementv1beta1.EnvelopedObject
	if older != nil {
		before = (*older).Data
	}
	return e.check(ctx, newer.Namespace, before, newer.Data)
}

func (e envelopes) check(ctx context.Context, namespace string, before, after map[string]placementv1beta1.EnvelopedObject) (field.ErrorList, error) {
	problems, questions, err := rules.ValidateEnvelope(namespace, after, rules.ChangedEntries(before, after), e.resources)
	if err != nil {
		return nil, err
	}
	refused, err := e.authors.refused(ctx, "an envelope", questions)
	return append(problems, refused...), err
}
