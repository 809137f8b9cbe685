// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func invalid(kind schema.GroupKind, value string) error {
	return apierrors.NewInvalid(kind, "a", field.ErrorList{
		field.Invalid(field.NewPath("spec", "selector"), value, "field is immutable"),
		field.Required(field.NewPath("spec", "size"), ""),
	})
}

func fieldConflict() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.x", Message: `conflict with "somebody" using v1`}}},
	}}
}

func TestExplain(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	secret := schema.GroupKind{Kind: "Secret"}
	cases := map[string]struct {
		err   error
		kind  schema.GroupKind
		want  []string
		never string
	}{
		"an immutable field":           {invalid(deployment, "x"), deployment, []string{"Invalid", "spec.selector", "field is immutable", "spec.size"}, ""},
		"an enormous value":            {invalid(deployment, strings.Repeat("x", 5000)), deployment, []string{"spec.selector", "spec.size"}, strings.Repeat("x", 2000)},
		"a conflict of managers":       {fieldConflict(), deployment, []string{".data.x", "somebody", "force"}, ""},
		"an answer without fields":     {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota")), deployment, []string{"Forbidden", "quota"}, ""},
		"two items of one key":         {apierrors.NewInternalError(errors.New(`.spec.containers[name="main"].env: duplicate entries for key [name="A"]`)), deployment, []string{"duplicate entries", ".env", "Keep one"}, ""},
		"a field of a Secret":          {invalid(secret, "hidden"), secret, []string{"spec.selector", "FieldValueInvalid"}, "hidden"},
		"a Secret, without fields":     {apierrors.NewBadRequest("cannot read hidden"), secret, []string{"BadRequest"}, "hidden"},
		"a member that did not answer": {errors.New("connection refused"), deployment, []string{"not reached", "connection refused"}, ""},
		"a manifest of a wrong shape":  {unmergeable{errors.New("a text for a list")}, deployment, []string{"merged", "a text for a list"}, ""},
		"a Secret of a wrong shape":    {unmergeable{errors.New("hidden is no list")}, secret, []string{"merged"}, "hidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			words := ours()
			got := words.Explain(tc.err, tc.kind)
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not mention %q", got, want)
				}
			}
			if tc.never != "" && strings.Contains(got, tc.never) {
				t.Errorf("%q repeats the value", got)
			}
			if len(got) > maxMessage {
				t.Errorf("the message has %d bytes", len(got))
			}
		})
	}
}

func TestIsTemporary(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"no answer":                   {errors.New("connection refused"), true},
		"too many requests":           {apierrors.NewTooManyRequests("later", 1), true},
		"unavailable":                 {apierrors.NewServiceUnavailable("starting"), true},
		"a timeout":                   {apierrors.NewTimeoutError("slow", 1), true},
		"a manifest of a wrong shape": {unmergeable{errors.New("a text for a list")}, false},
		"forbidden":                   {apierrors.NewForbidden(pods, "a", nil), false},
		"not found":                   {apierrors.NewNotFound(pods, "a"), false},
		"an internal error, as a broken webhook makes it": {apierrors.NewInternalError(errors.New("webhook")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isTemporary(tc.err); got != tc.want {
				t.Errorf("it is temporary: %t", got)
			}
		})
	}
}
