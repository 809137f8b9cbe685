// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gone

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyAHubIsBelieved(t *testing.T) {
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
			if got := Is(tc.err); got != tc.want {
				t.Errorf("it is believed: %t", got)
			}
		})
	}
}
