// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// setsValidator serves the rules of ManifestWorkReplicaSets: those of the ManifestWorks that
// will be made of them. It keeps a set from being a way around RBAC, as an envelope is kept
// from it: what is in the template clusters will have, by the gateway and their agents.
type setsValidator struct {
	limit     int
	resources author.Resources
	authors   authors
	// trusting disables the author check.
	trusting bool
}

// ValidateCreate returns 400 with the first error of a new set, or 422 with
// everything in it that its author cannot create.
func (v setsValidator) ValidateCreate(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (admission.Warnings, error) {
	return nil, v.refuse(ctx, nil, set)
}

// ValidateUpdate does so for an update. An unchanged spec is not authorized again.
func (v setsValidator) ValidateUpdate(ctx context.Context, older, newer *workv1alpha1.ManifestWorkReplicaSet) (admission.Warnings, error) {
	if newer.DeletionTimestamp != nil {
		return nil, nil
	}
	return nil, v.refuse(ctx, older, newer)
}

// ValidateDelete allows.
func (v setsValidator) ValidateDelete(context.Context, *workv1alpha1.ManifestWorkReplicaSet) (admission.Warnings, error) {
	return nil, nil
}

func (v setsValidator) refuse(ctx context.Context, older, set *workv1alpha1.ManifestWorkReplicaSet) error {
	manifests := set.Spec.ManifestWorkTemplate.Workload.Manifests
	if len(manifests) == 0 {
		return apierrors.NewBadRequest("Workload manifests should not be empty")
	}
	if err := validation.ValidateManifests(manifests, v.limit); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if v.trusting || older != nil && equality.Semantic.DeepEqual(older.Spec, set.Spec) {
		return nil
	}
	questions, err := v.questions(set)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	refused, err := v.authors.refused(ctx, "a ManifestWorkReplicaSet", questions)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(workv1alpha1.GroupVersion.WithKind("ManifestWorkReplicaSet").GroupKind(), set, refused)
}

// questions are whether the author may make on the hub what the template holds, or, where
// an executor bounds that on each cluster, may have it brought in the executor's name
// wherever that is.
func (v setsValidator) questions(set *workv1alpha1.ManifestWorkReplicaSet) ([]author.Question, error) {
	path := field.NewPath("spec", "manifestWorkTemplate")
	template := &set.Spec.ManifestWorkTemplate
	if template.Executor != nil && template.Executor.Subject.ServiceAccount != nil {
		return []author.Question{{Path: path.Child("executor"), Any: []author.Access{executing("", template.Executor.Subject.ServiceAccount)}}}, nil
	}
	var all []author.Question
	for i, manifest := range template.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest.Raw); err != nil {
			return nil, fmt.Errorf("reading manifest %d: %w", i, err)
		}
		kind := object.GroupVersionKind()
		resource, served, err := v.resources(kind)
		if err != nil {
			return nil, fmt.Errorf("looking %s up: %w", kind, err)
		}
		at := path.Child("workload", "manifests").Index(i)
		if !served {
			all = append(all, author.OfEnveloped(at, object, nil)...)
			continue
		}
		all = append(all, author.OfEnveloped(at, object, &resource)...)
	}
	return all, nil
}
