// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestAllowanceOf_Uses(t *testing.T) {
	const (
		uses, by, forCluster = registrationv1alpha1.AnnotationUses, registrationv1alpha1.AnnotationUsedBy, registrationv1alpha1.AnnotationForCluster
		issued, limitReached = registrationv1alpha1.TokenReasonIssued, registrationv1alpha1.TokenReasonUseLimitReached
		invalid              = registrationv1alpha1.TokenReasonInvalid
	)
	tests := map[string]struct {
		annotations map[string]string
		want        int
		ready       string
	}{
		"no limit":                           {nil, 0, issued},
		"token for one Cluster":              {map[string]string{forCluster: "a"}, 1, issued},
		"token for one Cluster with a limit": {map[string]string{forCluster: "a", uses: "2"}, 2, issued},
		"uses left":                          {map[string]string{uses: "2", by: "a/1"}, 2, issued},
		"limit reached":                      {map[string]string{uses: "2", by: "a/1,b/2"}, 2, limitReached},
		"limit exceeded":                     {map[string]string{uses: "1", by: "a/1,b/2"}, 1, limitReached},
		"limit removed":                      {map[string]string{by: "a/1,b/2"}, 0, issued},
		"no number":                          {map[string]string{uses: "many"}, 0, invalid},
		"zero":                               {map[string]string{uses: "0"}, 0, invalid},
		"negative":                           {map[string]string{uses: "-1"}, 0, invalid},
		"more than can be recorded":          {map[string]string{uses: "1001"}, 0, invalid},
		"empty":                              {map[string]string{uses: ""}, 0, invalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: tc.annotations}}
			got, refused := allowanceOf(token, Defaults{})
			if got.uses != tc.want || (refused != nil) != (tc.ready == invalid) {
				t.Errorf("uses: got %d, %v, want %d", got.uses, refused, tc.want)
			}
			ready := meta.FindStatusCondition(desiredTokenStatus(token, Defaults{}, life{infinite: true}, issuedValues).Conditions, registrationv1alpha1.TokenConditionReady)
			if ready.Reason != tc.ready || (ready.Status == metav1.ConditionTrue) != (tc.ready == issued) {
				t.Errorf("Ready: got %+v, want reason %s", ready, tc.ready)
			}
		})
	}
}

func TestRestricted(t *testing.T) {
	with := func(pairs ...string) map[string]string {
		annotations := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			annotations["fleetgate.io/"+pairs[i]] = pairs[i+1]
		}
		return annotations
	}
	tests := map[string]struct {
		annotations map[string]string
		defaults    Defaults
		says        string
		permissive  bool
	}{
		"any number, any labels": {nil, Defaults{}, "any number of clusters, which choose any labels,", true},
		"any number, no labels":  {with("allowed-labels", ""), Defaults{}, "any number of clusters, which choose no labels", true},
		"few, with labels":       {with("uses", "2", "allowed-labels", "env"), Defaults{}, "can register 2 clusters, which choose the labels env,", true},
		"few, no labels":         {with("uses", "2", "allowed-labels", ""), Defaults{}, "at most 2 clusters", false},
		"manual approval":        {with("approval", "manual"), Defaults{}, "needs an approval", false},
		"one Cluster":            {with("for-cluster", "edge"), Defaults{}, `Cluster "edge" only`, false},
		"nobody":                 {with("uses", "x"), Defaults{}, "no cluster", false},
		"strict":                 {nil, Defaults{Strict: true}, "needs an approval", false},
		"strict, approval auto":  {with("approval", "auto"), Defaults{Strict: true}, "any number of clusters, which choose no labels", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			token.Spec.TTL = &metav1.Duration{Duration: time.Hour}
			got := restricted(allowanceOf(token, tc.defaults))
			if (got.Status == metav1.ConditionFalse) != tc.permissive || !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %s, %s: %q, want permissive: %v, %q", got.Status, got.Reason, got.Message, tc.permissive, tc.says)
			}
		})
	}
}
