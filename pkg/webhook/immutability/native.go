// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// notNative returns why the API server cannot enforce a policy, so that the gateway enforces it
// whatever it asks for: the policy needs features or permissions of the gateway, or a policy of
// that name belongs to somebody else and must not be overwritten. The second error means that this
// could not be determined.
func notNative(ctx context.Context, hub client.Client, policy *admissionv1alpha1.ImmutabilityPolicy) (reason, failure error) {
	if _, _, err := Export(policy); err != nil {
		return err, nil
	}
	name := ExportName(policy.Name)
	for _, object := range []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}} {
		err := hub.Get(ctx, client.ObjectKey{Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for the exported policy of %s: %w", policy.Name, err)
		}
		if err == nil && !metav1.IsControlledBy(object, policy) {
			return fmt.Errorf("enforced by the gateway: ValidatingAdmissionPolicy or binding %s exists and was not created for this policy; rename the policy", name), nil
		}
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "patch", Group: admissionregistrationv1.GroupName, Resource: "validatingadmissionpolicies", Name: name,
	}}}
	if err := hub.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("asking whether the gateway may write the exported policy of %s: %w", policy.Name, err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("enforced by the gateway, which cannot write ValidatingAdmissionPolicy %s: rbac.nativePolicies of its chart allows that, and docs/reference/security.md says at what price", name), nil
	}
	return nil, nil
}
