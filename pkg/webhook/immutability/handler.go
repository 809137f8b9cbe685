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
	// PathPrefix is where the policies are asked; the policy's name follows.
	PathPrefix = "/policies/"

	// BypassVerb on resource immutabilitypolicies lets a user pass the policy of
	// that name, if it was granted by that word and not by "*".
	BypassVerb = "bypass"
	// anyVerb is granted to nobody but by "*".
	anyVerb = "bypass-by-wildcard"
	// policyResource is what BypassVerb is a verb of.
	policyResource = "immutabilitypolicies"

	// Keys of audit annotations; the API server puts the webhook's name in front.
	auditViolation = "violation"
	auditBypass    = "bypassed"
	auditError     = "error"
	auditSkipped   = "skipped"

	// answerWithin leaves the API server, which waits a second longer, an answer of
	// ours instead of a timeout.
	answerWithin = (timeoutSeconds - 1) * time.Second
	// maxWarnings and maxWarning bound what a caller is shown; the API server would
	// cut it itself, at 4 KiB for all.
	maxWarnings = 16
	maxWarning  = 256
	// maxAudit bounds an annotation in the audit log.
	maxAudit = 4096
)

// Handler answers the hub's API server for policies.
type Handler struct {
	Policies *Policies
	// Live reads the hub without a cache: lookups and guards decide by what is there.
	Live client.Reader
	// Mapper knows which kinds the hub serves.
	Mapper meta.RESTMapper
	// Namespaces reads namespaces, for expressions that ask for them.
	Namespaces client.Reader
	// Writer writes Leases and asks who may bypass.
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

// Serving returns the handler for all paths below PathPrefix. Until the policies are
// read it answers 503: that is no answer for an API server, which then does what it
// was told to do while no gateway answers.
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
		// Nothing is logged for a request, so nothing about it is put together either.
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
	found := h.judge(ctx, served.compiled, request)
	response := h.answer(ctx, policy, &review.AdmissionRequest, found)
	if len(found.missing) > 0 {
		note(&response, auditSkipped, "not checked, since not found: "+strings.Join(found.missing, ", "))
	}
	return response
}

// findings are everything that is wrong with a request: missing objects, fields,
// conditions, guards.
type findings struct {
	violations []Violation
	// missing are objects without which rules were skipped.
	missing []string
	// err says what could not be found out.
	err error
}

func (h *Handler) judge(ctx context.Context, c *Compiled, request *Request) findings {
	namespace, err := h.namespaceOf(ctx, c, request)
	if err != nil {
		return findings{err: err}
	}
	around := surroundings{namespace: namespace}
	seen, err := c.look(ctx, finder{h.Live, h.Mapper, h.absent, h.refused}, request, around)
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

// answer does what the policy says about violations, and about what could not be
// found out.
func (h *Handler) answer(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy, review *admissionv1.AdmissionRequest, found findings) admission.Response {
	switch {
	case !denies(policy):
		return told(policy, found)
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

// told is the answer of a policy that stops nobody.
func told(policy *admissionv1alpha1.ImmutabilityPolicy, found findings) admission.Response {
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

// mayBypass is asked only about requests that would be refused. Who may do
// everything is not meant: administrators and what delivers for them would pass
// every policy without knowing.
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

// refused is 422 with a cause for each violation, as the API server itself says it.
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

// busy is 429: the API server's clients try again by themselves.
func busy(err error) admission.Response {
	status := apierrors.NewTooManyRequests(err.Error(), 1).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// failed is what becomes of a request whose policy cannot be evaluated.
func (h *Handler) failed(policy *admissionv1alpha1.ImmutabilityPolicy, err error) admission.Response {
	if !FailsClosed(policy, h.FailClosed) {
		return noted(auditError, err.Error())
	}
	status := apierrors.NewInternalError(fmt.Errorf("policy %s cannot be evaluated: %w", policy.Name, err)).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// noted lets pass with a line in the audit log.
func noted(key, text string) admission.Response {
	response := admission.Allowed("")
	note(&response, key, text)
	return response
}

// note adds a line in the audit log, whatever the answer.
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
