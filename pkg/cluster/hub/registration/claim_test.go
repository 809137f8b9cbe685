// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestRefuseAllowance_FirstKeyOwnsCluster(t *testing.T) {
	cluster := func(name, fingerprint string) *registrationv1alpha1.Cluster {
		c := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if fingerprint != "" {
			c.Annotations = map[string]string{AnnotationKey: fingerprint}
		}
		return c
	}
	conflict := registrationv1alpha1.RegistrationReasonConflict
	tests := map[string]struct {
		allowed allowance
		cluster *registrationv1alpha1.Cluster
		want    string
	}{
		"new client ID":                                     {allowance{}, nil, ""},
		"Cluster without a key":                             {allowance{}, cluster("edge", ""), ""},
		"Cluster with another key":                          {allowance{}, cluster("edge", "a"), conflict},
		"token for that Cluster transfers it":               {allowance{cluster: "edge"}, cluster("edge", "a"), ""},
		"token for that Cluster without a key":              {allowance{cluster: "edge"}, cluster("edge", ""), ""},
		"token for another Cluster, this one without a key": {allowance{cluster: "core"}, cluster("edge", ""), conflict},
		"token for a Cluster with another client ID":        {allowance{cluster: "edge"}, nil, conflict},
		"token for another Cluster does not transfer it":    {allowance{cluster: "core"}, cluster("edge", "a"), conflict},
		"token for a Cluster with the same prefix":          {allowance{cluster: "edge-1"}, cluster("edge", "a"), conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(refuseAllowance(tc.allowed, tc.cluster)); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
	refused := refuseAllowance(allowance{}, cluster("edge", "a"))
	for _, remedy := range []string{AnnotationKey, registrationv1alpha1.AnnotationForCluster + "=edge"} {
		if !strings.Contains(refused.Message, remedy) {
			t.Errorf("message %q does not name the remedy %s", refused.Message, remedy)
		}
	}
}

func TestSpend_ConcurrentClustersCannotShareLastUse(t *testing.T) {
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "once", Annotations: map[string]string{registrationv1alpha1.AnnotationUses: "1"},
	}}
	scheme := runtime.NewScheme()
	if err := registrationv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(token).Build()
	r := &GrantReconciler{Client: hub}
	read := func() allowance {
		t.Helper()
		var seen registrationv1alpha1.ClusterRegistrationToken
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(token), &seen); err != nil {
			t.Fatal(err)
		}
		allowed, refused := allowanceOf(&seen, Defaults{})
		if refused != nil {
			t.Fatal(refused)
		}
		return allowed
	}
	by := func(uid types.UID, allowed allowance) *applicant {
		return applicantOf(&registrationv1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{UID: uid}}, allowed)
	}
	one, other := read(), read()
	if refused, err := r.spend(t.Context(), by("1", one), "a"); refused != nil || err != nil {
		t.Fatalf("first: got %v, %v", refused, err)
	}
	if _, err := r.spend(t.Context(), by("2", other), "b"); !apierrors.IsConflict(err) {
		t.Errorf("second, with an outdated token: got %v, want a conflict", err)
	}
	if refused, err := r.spend(t.Context(), by("2", read()), "b"); err != nil || refused == nil || refused.Reason != registrationv1alpha1.RegistrationReasonTokenUseLimitReached {
		t.Errorf("second, with the current token: got %v, %v", refused, err)
	}
	if refused, err := r.spend(t.Context(), by("1", read()), "a"); refused != nil || err != nil {
		t.Errorf("first, after a restart: got %v, %v", refused, err)
	}
}

func TestDecideClaim(t *testing.T) {
	ownedByOther := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{AnnotationKey: "other"}}}
	unowned := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	conflict := registrationv1alpha1.RegistrationReasonConflict
	tests := map[string]struct {
		applicant applicant
		want      claim
		refused   string
	}{
		"owning key keeps the Cluster":             {applicant{owns: true, cluster: ownedByOther}, keep, ""},
		"token creates a new Cluster":              {applicant{}, create, ""},
		"token takes a Cluster without a key":      {applicant{cluster: unowned}, take, ""},
		"token does not take another key's":        {applicant{cluster: ownedByOther}, take, conflict},
		"token for the Cluster takes another's":    {applicant{cluster: ownedByOther, allowed: allowance{cluster: "edge"}}, take, ""},
		"token for a Cluster does not create one":  {applicant{allowed: allowance{cluster: "edge"}}, create, conflict},
		"token for a Cluster does not take others": {applicant{cluster: unowned, allowed: allowance{cluster: "core"}}, take, conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, refused := decideClaim(&tc.applicant)
			if got != tc.want || reasonOf(refused) != tc.refused {
				t.Errorf("got %d, %q, want %d, %q", got, reasonOf(refused), tc.want, tc.refused)
			}
		})
	}
}
