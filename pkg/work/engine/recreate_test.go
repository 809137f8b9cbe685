// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestIsImmutable(t *testing.T) {
	spec := field.NewPath("spec")
	response := func(list ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", list)
	}
	denied := func(why string) error {
		return apierrors.NewBadRequest(`admission webhook "validation.example.com" denied the request: ` + why)
	}
	// An API server reports the text of a policy as a cause too.
	deniedByPolicy := func(why string) error {
		why = "ValidatingAdmissionPolicy 'fixed' with binding 'fixed' denied request: " + why
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: `things "a" is forbidden: ` + why, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: why}}}}}
	}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a selector":                {response(field.Invalid(spec.Child("selector"), "x", "field is immutable")), true},
		"a StatefulSet":             {response(field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' are forbidden")), true},
		"a Pod":                     {response(field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`")), true},
		"a cluster IP":              {response(field.Invalid(spec.Child("clusterIPs"), "x", "may not change once set")), true},
		"a claim":                   {response(field.Forbidden(spec, "spec is immutable after creation except resources.requests")), true},
		"the role of a binding":     {response(field.Invalid(field.NewPath("roleRef"), "x", "cannot change roleRef")), true},
		"one of several":            {response(field.Required(spec, ""), field.Invalid(spec, "x", "field is immutable")), true},
		"a rule of a definition":    {response(field.Invalid(spec.Child("size"), "x", "failed rule: self == oldSelf")), true},
		"a message of a definition": {response(field.Invalid(spec.Child("size"), "x", "size cannot be modified after creation")), true},
		"a rule about one value":    {response(field.Invalid(spec.Child("size"), "x", "failed rule: self > 0")), false},
		"a wrong value":             {response(field.Invalid(spec, "x", "must be greater than 0")), false},
		"a webhook":                 {denied("Immutable fields changed: spec.size"), true},
		"a webhook's other reason":  {denied("spec.size must be odd"), false},
		"a policy":                  {deniedByPolicy("the size is immutable"), true},
		"a policy's other reason":   {deniedByPolicy("updates to production need a ticket"), false},
		"a field that was not set":  {response(field.Invalid(spec.Child("scheduling"), nil, "field cannot be set once created")), true},
		"a field that is removed":   {response(field.Invalid(spec.Child("scheduling"), nil, "field cannot be cleared once set")), true},
		"an added item":             {response(field.Forbidden(spec.Child("groups").Index(1), "item may not be added")), true},
		"a class of a claim":        {response(field.Forbidden(spec.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden")), true},
		"a conflict":                {apierrors.NewConflict(schema.GroupResource{}, "a", nil), false},
		"a member without patience": {apierrors.NewTooManyRequests("later", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isImmutable(tc.err); got != tc.want {
				t.Errorf("it is immutable: %t", got)
			}
		})
	}
}

func TestMayRecreate(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	annotated := map[string]any{"fleetgate.io/immutable-change": "Recreate"}
	cases := map[string]struct {
		kind, apiVersion string
		annotations      map[string]any
		owners           []metav1.OwnerReference
		want             string // of what stands against it
	}{
		"annotated and ours":                   {"Deployment", "apps/v1", annotated, []metav1.OwnerReference{us}, ""},
		"not annotated":                        {"Deployment", "apps/v1", nil, []metav1.OwnerReference{us}, "fleetgate.io/immutable-change=Recreate"},
		"annotated otherwise":                  {"Deployment", "apps/v1", map[string]any{"fleetgate.io/immutable-change": "yes"}, []metav1.OwnerReference{us}, "annotate"},
		"shared":                               {"Deployment", "apps/v1", annotated, []metav1.OwnerReference{us, other}, "others own it"},
		"not ours yet":                         {"Deployment", "apps/v1", annotated, nil, "others own it"},
		"a namespace":                          {"Namespace", "v1", annotated, []metav1.OwnerReference{us}, "never deleted"},
		"a claim, with the data in its volume": {"PersistentVolumeClaim", "v1", annotated, []metav1.OwnerReference{us}, "never deleted"},
		"a definition, with all its objects":   {"CustomResourceDefinition", "apiextensions.k8s.io/v1", annotated, []metav1.OwnerReference{us}, "never deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			it := itemOf("a")
			it.object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind,
				"metadata": map[string]any{"name": "a", "annotations": tc.annotations}}}
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetOwnerReferences(tc.owners)
			got := (&Engine{Dialect: ours()}).mayRecreate(it, live, us)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("against it stands %q, want %q", got, tc.want)
			}
		})
	}
}
