// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcileutil

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsGone_OnlyForTheObjectItself(t *testing.T) {
	works := schema.GroupResource{Group: "placement.kubernetes-fleet.io", Resource: "works"}
	elsewhere := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", works, "a", "404 page not found", 0, true)
	cases := map[string]struct {
		err  error
		want bool
	}{
		"the object does not exist": {apierrors.NewNotFound(works, "a"), true},
		"the kind is not served":    {elsewhere, false},
		"reading it is forbidden":   {apierrors.NewForbidden(works, "a", nil), false},
		"the hub is unreachable":    {errors.New("connection refused"), false},
		"the token is rejected":     {apierrors.NewUnauthorized("expired"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsGone(tc.err); got != tc.want {
				t.Errorf("IsGone = %t", got)
			}
		})
	}
}
