// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSaysNoSuchWorkBelievesOnlyAHub(t *testing.T) {
	works := schema.GroupResource{Group: "placement.kubernetes-fleet.io", Resource: "works"}
	elsewhere := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", works, "a", "404 page not found", 0, true)
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a hub without the Work":              {apierrors.NewNotFound(works, "a"), true},
		"a server that does not know Works":   {elsewhere, false},
		"a hub that does not let us look":     {apierrors.NewForbidden(works, "a", nil), false},
		"a hub that does not answer":          {errors.New("connection refused"), false},
		"a hub to which our token is nothing": {apierrors.NewUnauthorized("expired"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := saysNoSuchWork(tc.err); got != tc.want {
				t.Errorf("it is believed: %t", got)
			}
		})
	}
}

func fieldConflict() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.x", Message: `conflict with "somebody" using v1`}}},
	}}
}
