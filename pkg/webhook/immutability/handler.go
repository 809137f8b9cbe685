// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// PathPrefix is the path prefix of all policies; the policy's name follows.
	PathPrefix = "/policies/"

	// BypassVerb on resource immutabilitypolicies lets a user bypass the policy of that name, if it
	// was granted by that word and not by "*".
	BypassVerb = "bypass"
	// anyVerb is granted only by "*".
	anyVerb = "bypass-by-wildcard"
	// policyResource is the resource of BypassVerb.
	policyResource = "immutabilitypolicies"

	// Keys of audit annotations; the API server prefixes them with the webhook's name.
	auditViolation = "violation"
	auditBypass    = "bypassed"
	auditError     = "error"
	auditSkipped   = "skipped"

	// answerWithin ends a second before the API server's timeout, so that it gets the gateway's
	// respond.
	answerWithin = (timeoutSeconds - 1) * time.Second
	// maxWarnings and maxWarning limit a caller's warnings. The API server would cut them at 4 KiB
	// in total.
	maxWarnings = 16
	maxWarning  = 256
	// maxAudit limits an annotation in the audit log.
	maxAudit = 4096
)

// Handler answers reviews of the hub's API server for policies.
type Handler struct {
	Policies *Policies
	// Live reads the hub without a cache, because lookups and guards need the current state.
	Live client.Reader
	// Mapper knows which kinds the hub serves.
	Mapper meta.RESTMapper
	// Namespaces reads namespaces for expressions that use them.
	Namespaces client.Reader
	// Writer writes Leases and creates reviews of who may bypass.
	Writer client.Writer
	// FailClosed are the API groups for which policies may fail closed.
	FailClosed sets.Set[string]
	// Namespace is the gateway's, where the Leases of guards are.
	Namespace string
	Clock     clock.PassiveClock

	guards          *guardkeeper
	absent, refused *absences
}

type policyName struct{}

// Serving returns the handler for all paths below PathPrefix. Until the policies have been read it
// answers 503. An API server treats that as a failure of the webhook and applies its failure
// policy.
func (h *Handler) Serving() http.Handler {
	webhook := h.webhook()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Policies.Synced() {
			http.Error(w, "ImmutabilityPolicies are not read yet", http.StatusServiceUnavailable)
			return
		}
		webhook.ServeHTTP(w, r)
	})
}

func (h *Handler) webhook() *admission.Webhook {
	h.absent, h.refused = newAbsences(h.Clock), newAbsences(h.Clock)
	h.guards = newGuardkeeper(h.Live, &reservations{reader: h.Live, writer: h.Writer, namespace: h.Namespace, clock: h.Clock})
	return &admission.Webhook{
		Handler: h,
		// Nothing is logged per request, so no logger is constructed either.
		LogConstructor: func(base logr.Logger, _ *admission.Request) logr.Logger { return base },
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, policyName{}, strings.TrimPrefix(r.URL.Path, PathPrefix))
		},
	}
}

// Handle answers one review for one policy.
func (h *Handler) Handle(ctx context.Context, review admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	name, _ := ctx.Value(policyName{}).(string)
	served, known := h.Policies.get(name)
	if !known {
		return noted(auditSkipped, "there is no policy "+name)
	}
	policy := served.compiled.policy
	if len(served.problems) > 0 {
		return h.failed(policy, errors.New("the policy does not compile: see its status"))
	}
	request, err := NewRequest(&review.AdmissionRequest)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	found := h.evaluate(ctx, served.compiled, request)
	response := h.respond(ctx, policy, &review.AdmissionRequest, found)
	if len(found.missing) > 0 {
		note(&response, auditSkipped, "not checked, since not found: "+strings.Join(found.missing, ", "))
	}
	return response
}

// findings are all problems of a request: missing objects, fields, conditions, guards.
type findings struct {
	violations []Violation
	// missing are the missing objects whose rules were skipped.
	missing []string
	// err says what could not be determined.
	err error
}

func (h *Handler) evaluate(ctx context.Context, c *Compiled, request *Request) findings {
	namespace, err := h.namespaceOf(ctx, c, request)
	if err != nil {
		return findings{err: err}
	}
	around := surroundings{namespace: namespace}
	seen, err := c.lookUp(ctx, finder{h.Live, h.Mapper, h.absent, h.refused}, request, around)
	if err != nil {
		return findings{violations: seen.violations, err: err}
	}
	broken, err := c.Evaluate(ctx, request, seen.found, namespace)
	violations := append(seen.violations, broken...)
	around.params = c.params(seen.found)
	reserve := len(violations) == 0 && err == nil && !request.dryRun && denies(c.policy)
	stopped, guardErr := h.guards.check(ctx, c, request, around, reserve)
	return findings{violations: append(violations, stopped...), missing: seen.missing, err: errors.Join(err, guardErr)}
}

func denies(policy *admissionv1alpha1.ImmutabilityPolicy) bool {
	return policy.Spec.Enforcement == "" || policy.Spec.Enforcement == admissionv1alpha1.EnforcementDeny || policy.Spec.Enforcement == admissionv1alpha1.EnforcementNative
}

func (h *Handler) namespaceOf(ctx context.Context, c *Compiled, request *Request) (*corev1.Namespace, error) {
	if !c.readsNamespace || request.namespace == "" {
		return nil, nil
	}
	var namespace corev1.Namespace
	if err := h.Namespaces.Get(ctx, client.ObjectKey{Name: request.namespace}, &namespace); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", request.namespace, err)
	}
	return &namespace, nil
}

// respond applies the policy's enforcement to violations and errors.
func (h *Handler) respond(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy, review *admissionv1.AdmissionRequest, found findings) admission.Response {
	switch {
	case !denies(policy):
		return warned(policy, found)
	case len(found.violations) > 0 && h.mayBypass(ctx, policy.Name, review):
		return noted(auditBypass, joinViolations(found.violations))
	case len(found.violations) > 0:
		return refused(policy.Name, review, found.violations)
	case errors.Is(found.err, errBusy):
		return busy(found.err)
	case found.err != nil:
		return h.failed(policy, found.err)
	}
	return admission.Allowed("")
}

// warned is the response of a policy that does not deny.
func warned(policy *admissionv1alpha1.ImmutabilityPolicy, found findings) admission.Response {
	response := admission.Allowed("")
	if len(found.violations) > 0 {
		note(&response, auditViolation, joinViolations(found.violations))
	}
	if found.err != nil {
		note(&response, auditError, found.err.Error())
	}
	if policy.Spec.Enforcement == admissionv1alpha1.EnforcementWarn {
		response.Warnings = warnings(policy.Name, found.violations)
	}
	return response
}

// mayBypass is checked only for requests that would be denied. A grant of all verbs does not count:
// administrators, and controllers with their permissions, would bypass every policy without
// knowing.
func (h *Handler) mayBypass(ctx context.Context, policy string, review *admissionv1.AdmissionRequest) bool {
	may := func(verb string) (bool, error) {
		question := accessReview(&review.UserInfo, authorizationv1.ResourceAttributes{
			Group: admissionv1alpha1.GroupName, Resource: policyResource, Name: policy, Verb: verb,
		})
		err := h.Writer.Create(ctx, question)
		return question.Status.Allowed, err
	}
	granted, err := may(BypassVerb)
	if err != nil || !granted {
		return false
	}
	everything, err := may(anyVerb)
	return err == nil && !everything
}

func accessReview(caller *authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range caller.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: caller.Username, UID: caller.UID, Groups: caller.Groups, Extra: extra, ResourceAttributes: &attributes,
	}}
}

// refused is 422 with a cause for each violation, in the API server's own form.
func refused(policy string, review *admissionv1.AdmissionRequest, violations []Violation) admission.Response {
	var all field.ErrorList
	for _, v := range violations {
		all = append(all, &field.Error{Type: field.ErrorTypeInvalid, Field: v.Path, BadValue: field.OmitValueType{}, Detail: v.Message})
	}
	name := review.Name
	if name == "" {
		name = "(generated)"
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: review.Kind.Group, Kind: review.Kind.Kind}, name, all).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// busy is 429: clients of the API server retry automatically.
func busy(err error) admission.Response {
	status := apierrors.NewTooManyRequests(err.Error(), 1).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// failed is the response for a request whose policy cannot be evaluated.
func (h *Handler) failed(policy *admissionv1alpha1.ImmutabilityPolicy, err error) admission.Response {
	if !FailsClosed(policy, h.FailClosed) {
		return noted(auditError, err.Error())
	}
	status := apierrors.NewInternalError(fmt.Errorf("policy %s cannot be evaluated: %w", policy.Name, err)).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// noted allows the request with an audit annotation.
func noted(key, text string) admission.Response {
	response := admission.Allowed("")
	note(&response, key, text)
	return response
}

// note adds an audit annotation to any response.
func note(response *admission.Response, key, text string) {
	if response.AuditAnnotations == nil {
		response.AuditAnnotations = map[string]string{}
	}
	response.AuditAnnotations[key] = untrusted.Truncate(text, maxAudit)
}

func warnings(policy string, violations []Violation) []string {
	var all []string
	for i, v := range violations {
		if i == maxWarnings {
			return append(all, fmt.Sprintf("policy %s: %d more", policy, len(violations)-i))
		}
		all = append(all, untrusted.Truncate("policy "+policy+": "+v.String(), maxWarning))
	}
	return all
}

func joinViolations(violations []Violation) string {
	texts := make([]string, 0, len(violations))
	for _, v := range violations {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, "; ")
}
