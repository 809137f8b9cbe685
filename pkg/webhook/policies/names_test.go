// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestAuthorizesAuthors_ReadsThePreviousKeyOnlyWithoutTheNewOne(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"no key":                    {nil, false},
		"on":                        {map[string]string{AnnotationAuthorizeAuthors: "on"}, true},
		"off":                       {map[string]string{AnnotationAuthorizeAuthors: "off"}, false},
		"of a previous gateway":     {map[string]string{deprecatedAnnotationAuthors: "asked"}, true},
		"of a previous gateway off": {map[string]string{deprecatedAnnotationAuthors: "trusted"}, false},
		"contradicting":             {map[string]string{AnnotationAuthorizeAuthors: "off", deprecatedAnnotationAuthors: "asked"}, false},
	} {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		configuration.Annotations = tc.annotations
		if got := AuthorizesAuthors(configuration); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
