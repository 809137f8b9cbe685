// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// rights authorizes users for the verbs of their entry.
type rights map[string][]string

func (r rights) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	question := object.(*authorizationv1.SubjectAccessReview)
	for _, verb := range r[question.Spec.User] {
		if verb == question.Spec.ResourceAttributes.Verb || verb == "*" {
			question.Status.Allowed = true
		}
	}
	return nil
}

// writer answers only access reviews, from rights.
type writer struct {
	client.Writer
	rights
}

func (w writer) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return w.rights.Create(ctx, object, options...)
}

// everyMode is a policy that uses all features except lookups and guards.
func everyMode() *admissionv1alpha1.ImmutabilityPolicy {
	return policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Enforcement: admissionv1alpha1.EnforcementDeny,
		Compare:     defaultOld("oldObject.metadata.name"),
		Fields: []admissionv1alpha1.FieldRule{
			pathMode("spec.a", "Immutable"), pathMode("spec.b", "OnceSet"), pathMode("spec.c", "CannotUnset"), pathMode("spec.d", "NoFalse"),
			pathMode("spec.e", "NoDowngrade"), pathMode("spec.f[name]", "KeepItems"), pathMode("spec.g", "SetEqual"),
			pathMode("spec.h[name].i[id].j", "Immutable"),
			{Path: "spec.k", Mode: "Immutable", ExceptPaths: []admissionv1alpha1.FieldPath{"x", "y.z", "l[n].m"}},
		},
		Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.?n.orValue([]).all(i, i != 'no')", Message: "no is not an option"}},
	})
}

func newHandler(t testing.TB, allowed rights, policies ...*admissionv1alpha1.ImmutabilityPolicy) *Handler {
	t.Helper()
	served := NewPolicies(newCompiler(t))
	for _, policy := range policies {
		served.ensure(policy)
	}
	served.synced = func() bool { return true }
	return &Handler{Policies: served, Writer: writer{rights: allowed}, Clock: clock.RealClock{}, Namespace: "fleet-system", FailClosed: sets.New("example.org")}
}

func ask(t testing.TB, h *Handler, review *admissionv1.AdmissionRequest) admission.Response {
	t.Helper()
	h.webhook()
	return h.Handle(context.WithValue(t.Context(), policyName{}, "p"), admission.Request{AdmissionRequest: *review})
}

func TestHandler_AppliesEnforcementToViolation(t *testing.T) {
	broken := reviewOf(t, "{a: 1}", "{a: 2}")
	tests := map[string]struct {
		enforcement admissionv1alpha1.Enforcement
		allowed     rights
		want        admissionv1.AdmissionResponse
	}{
		"denied":            {"Deny", nil, admissionv1.AdmissionResponse{}},
		"denied by default": {"", nil, admissionv1.AdmissionResponse{}},
		"warned": {"Warn", nil, admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"policy p: spec.a: field is immutable"},
			AuditAnnotations: map[string]string{"violation": "spec.a: field is immutable"}}},
		"audited":                      {"Audit", nil, admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"violation": "spec.a: field is immutable"}}},
		"bypassed":                     {"Deny", rights{"": {BypassVerb}}, admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"bypassed": "spec.a: field is immutable"}}},
		"not bypassed by an almighty":  {"Deny", rights{"": {"*"}}, admissionv1.AdmissionResponse{}},
		"not bypassed by another verb": {"Deny", rights{"": {"get"}}, admissionv1.AdmissionResponse{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(admissionv1alpha1.ImmutabilityPolicySpec{Enforcement: tt.enforcement, Fields: []admissionv1alpha1.FieldRule{inMode("Immutable")}})
			got := ask(t, newHandler(t, tt.allowed, policy), broken).AdmissionResponse
			if !tt.want.Allowed {
				cause := []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: "Invalid value: field is immutable", Field: "spec.a"}}
				if diff := cmp.Diff(cause, got.Result.Details.Causes); diff != "" || got.Result.Code != 422 || got.Result.Reason != metav1.StatusReasonInvalid {
					t.Errorf("code %d, reason %s, causes (-want +got):\n%s", got.Result.Code, got.Result.Reason, diff)
				}
				got.Result = nil
			}
			got.Result = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandler_UnevaluablePolicyAppliesFailurePolicy(t *testing.T) {
	spec := admissionv1alpha1.ImmutabilityPolicySpec{Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.missing == 1"}}}
	open := ask(t, newHandler(t, nil, policyOf(spec)), reviewOf(t, "", "{a: 1}"))
	if !open.Allowed || !strings.Contains(open.AuditAnnotations["error"], "no such key: missing") {
		t.Errorf("got %+v, want it to pass with a note", open)
	}
	spec.FailurePolicy = admissionv1alpha1.FailurePolicyFail
	h := newHandler(t, nil, policyOf(spec))
	if closed := ask(t, h, reviewOf(t, "", "{a: 1}")); closed.Allowed || closed.Result.Code != http.StatusInternalServerError {
		t.Errorf("got %+v, want it refused with 500", closed)
	}
	h.FailClosed = nil
	if open := ask(t, h, reviewOf(t, "", "{a: 1}")); !open.Allowed || open.AuditAnnotations["error"] == "" {
		t.Errorf("got %+v, want it to pass with a note, since no administrator has allowed its group to fail closed", open)
	}
}

// On a slow machine the time for an answer ends before the cost budget does.
func TestHandler_ExpensiveExpressionAppliesFailurePolicy(t *testing.T) {
	spec := admissionv1alpha1.ImmutabilityPolicySpec{Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.l.all(a, object.spec.l.all(b, object.spec.l.all(c, a + b + c > 0)))"}}}
	review := reviewOf(t, "", "{l: ["+strings.Repeat("1, ", 999)+"1]}")
	if open := ask(t, newHandler(t, nil, policyOf(spec)), review); !open.Allowed || !strings.Contains(open.AuditAnnotations["error"], "spec.validations[0]") {
		t.Errorf("got %+v, want it to pass with a note about the expression", open)
	}
	spec.FailurePolicy = admissionv1alpha1.FailurePolicyFail
	if closed := ask(t, newHandler(t, nil, policyOf(spec)), review); closed.Allowed || !strings.Contains(closed.Result.Message, "spec.validations[0]") {
		t.Errorf("got %+v, want it refused because of the expression", closed)
	}
}

func TestHandler_WarnNeverDenies(t *testing.T) {
	for enforcement, warned := range map[admissionv1alpha1.Enforcement]int{"Warn": 1, "Audit": 0} {
		policy := policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
			Enforcement: enforcement, FailurePolicy: admissionv1alpha1.FailurePolicyFail,
			Fields:      []admissionv1alpha1.FieldRule{inMode("Immutable")},
			Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.missing == 1"}},
		})
		got := ask(t, newHandler(t, nil, policy), reviewOf(t, "{a: 1}", "{a: 2}"))
		if !got.Allowed || len(got.Warnings) != warned || got.AuditAnnotations["violation"] == "" || got.AuditAnnotations["error"] == "" {
			t.Errorf("%s: got %+v, want it to pass with notes about both rules", enforcement, got)
		}
	}
}

func TestHandler_NotesSkippedRules(t *testing.T) {
	optional, unread, named := getting("a", "'first'"), getting("b", "'second'"), getting("c", "''")
	optional.OnMissing, unread.OnMissing, named.OnMissing = "", "", ""
	h := newHandler(t, nil, policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Lookups: []admissionv1alpha1.Lookup{optional, unread, named},
		Validations: []admissionv1alpha1.Validation{
			{Expression: "params.lookups.a.data.x == 'x'"}, {Expression: "!has(params.lookups.b)"}, {Expression: "params.lookups.c.data.x == 'x'"},
		},
	}))
	hub := &archive{}
	hub.both.Add(2)
	h.Live, h.Mapper = hub, configMaps()
	got := ask(t, h, reviewOf(t, "", "{a: 1}"))
	if want := "not checked, since not found: ConfigMap ns/first"; !got.Allowed || got.AuditAnnotations["skipped"] != want {
		t.Errorf("got %+v, want it to pass with note %q", got, want)
	}
}

func TestServing_UnavailableBeforePoliciesAreRead(t *testing.T) {
	h := newHandler(t, nil)
	h.Policies.synced = func() bool { return false }
	recorder := httptest.NewRecorder()
	h.Serving().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, PathPrefix+"p", strings.NewReader("{}")))
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503, which an API server takes for a webhook that failed", recorder.Code)
	}
}

func TestHandler_AllowsRequestsOfDeletedPolicy(t *testing.T) {
	if got := ask(t, newHandler(t, nil), reviewOf(t, "", "{a: 1}")); !got.Allowed || got.AuditAnnotations["skipped"] == "" {
		t.Errorf("got %+v, want it to pass with a note", got)
	}
}

func TestWarnings_AreLimited(t *testing.T) {
	var violations []Violation
	for range 40 {
		violations = append(violations, Violation{Path: "spec.a", Message: strings.Repeat("ä", 400)})
	}
	got := warnings("p", violations)
	if len(got) != maxWarnings+1 || got[maxWarnings] != "policy p: 24 more" {
		t.Errorf("got %d warnings, the last %q", len(got), got[len(got)-1])
	}
	if len(got[0]) > maxWarning || strings.ContainsRune(got[0], '�') {
		t.Errorf("a warning of %d bytes: %q", len(got[0]), got[0])
	}
}

// hostile are bodies of a client that tries to crash the gateway.
func hostile() map[string]string {
	nested := func(open, close string, depth int) string {
		return strings.Repeat(open, depth) + strings.Repeat(close, depth)
	}
	update := func(spec string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","kind":{"group":"example.org","version":"v1","kind":"Widget"},` +
			`"object":{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"},"spec":` + spec + `},"oldObject":{"apiVersion":"example.org/v1","kind":"Widget","spec":` + strings.ReplaceAll(spec, "1", "2") + `}}}`
	}
	return map[string]string{
		"nothing":               "",
		"no JSON":               "{",
		"a list":                "[]",
		"no request":            `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"no objects":            `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE"}}`,
		"an object without map": strings.ReplaceAll(update("{}"), `{"name":"w"}`, `[1]`),
		"a text for an object":  `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","object":"x","oldObject":7}}`,
		"a list for a spec":     update("[1]"),
		"wrong types":           update(`{"a":[[1]],"b":{"x":1},"c":1,"d":"1","e":1,"f":{"name":1},"g":"1","h":[1,[1],{"name":{},"i":{"id":1}}],"k":[1],"n":"no"}`),
		"deep lists":            update(`{"a":` + nested("[", "]", 9000) + `}`),
		"deep maps":             update(`{"k":` + nested(`{"y":`, "}", 0) + strings.Repeat(`{"y":`, 4000) + "1" + strings.Repeat("}", 4000) + `}`),
		"too deep":              update(`{"a":` + nested("[", "]", 100000) + `}`),
		"many items":            update(`{"g":[` + strings.Repeat("1,", 50000) + `1]}`),
		"many items with keys":  update(`{"h":[` + strings.Repeat(`{"name":1,"i":[{"id":1,"j":1}]},`, 5000) + `{}]}`),
		"one long text":         update(`{"a":"` + strings.Repeat("x", 1<<20) + `1"}`),
		"more than may be":      update(`{"a":"` + strings.Repeat("x", 8<<20) + `"}`),
	}
}

func TestHandler_AnswersHostileReviewsWithinLimits(t *testing.T) {
	webhook := newHandler(t, nil, everyMode()).webhook().WithRecoverPanic(false)
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer := post(webhook, []byte(body))
			runtime.ReadMemStats(&after)
			if !json.Valid(answer) {
				t.Errorf("the answer is no JSON: %.200s", answer)
			}
			const perByte, base = 400, 64 << 20
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(len(body))*perByte+base {
				t.Errorf("%d bytes were allocated for a review of %d", used, len(body))
			}
		})
	}
}

func FuzzHostileReviews(f *testing.F) {
	for _, body := range hostile() {
		if len(body) < 1<<16 {
			f.Add([]byte(body))
		}
	}
	webhook := newHandler(f, nil, everyMode()).webhook().WithRecoverPanic(false)
	f.Fuzz(func(t *testing.T, body []byte) {
		if answer := post(webhook, body); !json.Valid(answer) {
			t.Errorf("the answer is no JSON: %.200s", answer)
		}
	})
}

func post(webhook http.Handler, body []byte) []byte {
	request := httptest.NewRequest(http.MethodPost, PathPrefix+"p", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	webhook.ServeHTTP(recorder, request)
	return recorder.Body.Bytes()
}
