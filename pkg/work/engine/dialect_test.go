// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWithOwner(t *testing.T) {
	us, old, other := recordRef("us", "1"), recordRef("us", "0"), recordRef("other", "2")
	cases := map[string]struct{ refs, with, without []metav1.OwnerReference }{
		"no owner":                     {nil, []metav1.OwnerReference{us}, nil},
		"us":                           {[]metav1.OwnerReference{us, other}, []metav1.OwnerReference{us, other}, []metav1.OwnerReference{other}},
		"another":                      {[]metav1.OwnerReference{other}, []metav1.OwnerReference{other, us}, []metav1.OwnerReference{other}},
		"us as we were, then another":  {[]metav1.OwnerReference{old, other}, []metav1.OwnerReference{us, other}, []metav1.OwnerReference{other}},
		"us as we were and as we are ": {[]metav1.OwnerReference{old, us}, []metav1.OwnerReference{us}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.with, withOwner(tc.refs, us)); diff != "" {
				t.Errorf("with us (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.without, withoutOwner(tc.refs, us)); diff != "" {
				t.Errorf("without us (-want +got):\n%s", diff)
			}
		})
	}
}
