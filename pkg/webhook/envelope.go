// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// envelopes keeps an envelope from being a way around RBAC: what is in it is not
// active on the hub, but the gateway makes it on members. So its author has to be
// allowed to make it on the hub.
type envelopes struct {
	resources author.Resources
	authors   authors
	// strict refuses what cannot be placed from the envelope it is in; else its author is
	// warned, and the placement tells.
	strict bool
}

// entries is what the two kinds of envelopes have in common; the older one's are nil for
// a creation.
type entries struct {
	namespace     string
	before, after map[string]placementv1beta1.EnvelopedObject
}

func entriesOfCluster(older **placementv1beta1.ClusterResourceEnvelope, newer *placementv1beta1.ClusterResourceEnvelope) entries {
	e := entries{after: newer.Data}
	if older != nil {
		e.before = (*older).Data
	}
	return e
}

func entriesOfNamespaced(older **placementv1beta1.ResourceEnvelope, newer *placementv1beta1.ResourceEnvelope) entries {
	e := entries{namespace: newer.Namespace, after: newer.Data}
	if older != nil {
		e.before = (*older).Data
	}
	return e
}

func (e entries) misfits() field.ErrorList {
	return validation.EnvelopeMisfits(e.namespace, e.after, validation.ChangedEntries(e.before, e.after))
}

func (e envelopes) check(ctx context.Context, written entries) (field.ErrorList, error) {
	problems, questions, err := validation.ValidateEnvelope(written.namespace, written.after, validation.ChangedEntries(written.before, written.after), e.resources)
	if err != nil {
		return nil, err
	}
	if e.strict {
		problems = append(problems, written.misfits()...)
	}
	refused, err := e.authors.refused(ctx, "an envelope", questions)
	return append(problems, refused...), err
}

// warnings say in the same sentences what strictness would refuse.
func (e envelopes) warnings(written entries) admission.Warnings {
	if e.strict {
		return nil
	}
	var warnings admission.Warnings
	for _, misfit := range written.misfits() {
		warnings = append(warnings, misfit.Error()+". It will not be placed like that")
	}
	return warnings
}

// enveloping serves the rules of one kind of envelope.
func enveloping[T client.Object](hub Hub, kind string, envelopes envelopes, of func(older *T, newer T) entries) http.Handler {
	return admission.WithValidator[T](hub.Scheme, validator[T]{
		kind: schema.GroupKind{Group: placementv1beta1.GroupName, Kind: kind},
		rules: func(ctx context.Context, older *T, newer T) (field.ErrorList, error) {
			return envelopes.check(ctx, of(older, newer))
		},
		warnings: func(older *T, newer T) admission.Warnings { return envelopes.warnings(of(older, newer)) },
	})
}
