// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// written is a placement of namespace shop, with an author bound unless that is empty.
func written(bound, history string) string {
	annotations := ""
	if bound != "" {
		annotations = fmt.Sprintf(`,"annotations":{%q:%q}`, placementv1beta1.AuthorMayAnnotation, bound)
	}
	return `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourcePlacement","metadata":{"name":"web"` + annotations + `},"spec":{` +
		`"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"shop"}],"policy":{"placementType":"PickAll"},"revisionHistoryLimit":` + history + `}}`
}

func updateOf(older, newer string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","userInfo":{"username":"alice"},"oldObject":%s,"object":%s}}`, older, newer)
}

const (
	all    = `{"author":"alice","may":{"":["*"]}}`
	little = `{"author":"bob","may":{"shop":["configmaps"]}}`
)

// Whatever the annotation has before the two webhooks, only the result of the check is stored.
func TestAuthorBounds_StoreOnlyTheResultOfTheCheck(t *testing.T) {
	tests := map[string]struct {
		nobodyMay bool
		body      []byte
		// writes is what the mutating webhook puts there, "" if it leaves it.
		writes string
		// code is that of the validating one for what was sent; 0 is yes.
		code int32
	}{
		"a new one without a bound":               {body: review(written("", "10")), writes: all, code: http.StatusServiceUnavailable},
		"a new one with somebody else's":          {body: review(written(little, "10")), writes: all, code: http.StatusServiceUnavailable},
		"a new one with the bound":                {body: review(written(all, "10"))},
		"a new one of who may nothing":            {nobodyMay: true, body: review(written(all, "10")), writes: `{"author":"alice","may":null}`, code: http.StatusUnprocessableEntity},
		"a change of metadata":                    {nobodyMay: true, body: updateOf(written(little, "10"), written(little, "10"))},
		"a change of metadata from before":        {nobodyMay: true, body: updateOf(written("", "10"), written("", "10"))},
		"a change that leaves the bound out":      {nobodyMay: true, body: updateOf(written(little, "10"), written("", "10")), writes: little, code: http.StatusServiceUnavailable},
		"a change that requests a new check":      {body: updateOf(written(little, "10"), written("ask", "10")), writes: all, code: http.StatusServiceUnavailable},
		"one that requests the first check":       {body: updateOf(written("", "10"), written("ask", "10")), writes: all, code: http.StatusServiceUnavailable},
		"a bound that somebody else writes":       {nobodyMay: true, body: updateOf(written(little, "10"), written(all, "10")), writes: `{"author":"alice","may":null}`, code: http.StatusUnprocessableEntity},
		"a change of the spec":                    {body: updateOf(written(little, "10"), written(little, "7")), writes: all, code: http.StatusServiceUnavailable},
		"a change of the spec of who may nothing": {nobodyMay: true, body: updateOf(written("", "10"), written("", "7")), writes: `{"author":"alice","may":null}`, code: http.StatusUnprocessableEntity},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			handlers := handlersWhere(t, !tt.nobodyMay)
			_, mutated := ask(t, handlers, pathOf("mutate", "ClusterResourcePlacement"), tt.body)
			if mutated == nil || !mutated.Response.Allowed {
				t.Fatalf("the mutating webhook refuses: %+v", mutated)
			}
			// The patch is JSON in JSON.
			if patch := strings.ReplaceAll(string(mutated.Response.Patch), `\"`, `"`); !strings.Contains(patch, tt.writes) || tt.writes == "" && strings.Contains(patch, "author") {
				t.Errorf("the mutating webhook writes %s, want %q", patch, tt.writes)
			}
			_, validated := ask(t, handlers, pathOf("validate", "ClusterResourcePlacement"), tt.body)
			if validated == nil || validated.Response.Allowed != (tt.code == 0) || !validated.Response.Allowed && validated.Response.Result.Code != tt.code {
				t.Errorf("the validating webhook returns %+v, want code %d", validated.Response, tt.code)
			}
		})
	}
}
