// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// PathAuthor is the path of the webhook that validates policies.
const PathAuthor = "/validate-admission.fleetgate.io-v1alpha1-immutabilitypolicy"

// AuthorWebhook sends writes of policies to PathAuthor. It fails closed: a policy whose author was
// not checked would read with the gateway's permissions.
func AuthorWebhook(config admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "author.policies." + admissionv1alpha1.GroupName,
		ClientConfig: config,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{admissionv1alpha1.GroupName}, APIVersions: []string{"*"},
				Resources: []string{policyResource}, Scope: ptr.To(admissionregistrationv1.ClusterScope),
			},
		}},
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// Author validates policies when they are written: all expressions must compile, and the author
// must have permission to read what the lookups name.
type Author struct {
	Compiler *Compiler
	Writer   client.Writer
	Mapper   meta.RESTMapper
}

// Handle answers one review of a policy.
func (a *Author) Handle(ctx context.Context, review admission.Request) admission.Response {
	policy := &admissionv1alpha1.ImmutabilityPolicy{}
	if err := json.Unmarshal(review.Object.Raw, policy); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the policy: %w", err))
	}
	if review.Operation == admissionv1.Update {
		old := &admissionv1alpha1.ImmutabilityPolicy{}
		if err := json.Unmarshal(review.OldObject.Raw, old); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old policy: %w", err))
		}
		if equality.Semantic.DeepEqual(old.Spec, policy.Spec) {
			return admission.Allowed("")
		}
	}
	_, problems := a.Compiler.Compile(policy, true)
	if len(policy.Name) > maxName {
		problems = append(problems, field.TooLong(field.NewPath("metadata", "name"), policy.Name, maxName))
	}
	forbidden, err := a.forbidden(ctx, policy, &review.UserInfo)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if problems = append(problems, forbidden...); len(problems) == 0 {
		return admission.Allowed("")
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: admissionv1alpha1.GroupName, Kind: "ImmutabilityPolicy"}, policy.Name, problems).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// forbidden checks for each lookup whether the author may read it in every namespace, because the
// objects under admission decide where it is read. Every change of a policy with lookups is
// checked, because a message can contain what they found.
func (a *Author) forbidden(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy, author *authenticationv1.UserInfo) (field.ErrorList, error) {
	var problems field.ErrorList
	for i, lookup := range policy.Spec.Lookups {
		attributes, ok := readOf(lookup, a.Mapper)
		if !ok {
			continue
		}
		question := accessReview(author, attributes)
		if err := a.Writer.Create(ctx, question); err != nil {
			return nil, fmt.Errorf("asking whether %s may make lookup %s: %w", author.Username, lookup.Name, err)
		}
		if !question.Status.Allowed {
			problems = append(problems, field.Forbidden(field.NewPath("spec", "lookups").Index(i),
				fmt.Sprintf("you cannot %s %s.%s in every namespace", attributes.Verb, attributes.Resource, attributes.Group)))
		}
	}
	return problems, nil
}

// readOf is the permission that a lookup needs. The resource of a kind that the hub does not serve
// yet is unknown, so it needs permission to read its whole group.
func readOf(lookup admissionv1alpha1.Lookup, mapper meta.RESTMapper) (authorizationv1.ResourceAttributes, bool) {
	var kind schema.GroupVersionKind
	attributes := authorizationv1.ResourceAttributes{Resource: "*"}
	switch {
	case lookup.Get != nil:
		kind, attributes.Verb = schema.FromAPIVersionAndKind(lookup.Get.APIVersion, lookup.Get.Kind), "get"
	case lookup.List != nil:
		kind, attributes.Verb = schema.FromAPIVersionAndKind(lookup.List.APIVersion, lookup.List.Kind), "list"
	default:
		return attributes, false
	}
	attributes.Group = kind.Group
	if mapping, err := mapper.RESTMapping(kind.GroupKind(), versionsOf(kind)...); err == nil {
		attributes.Resource = mapping.Resource.Resource
	}
	return attributes, true
}
