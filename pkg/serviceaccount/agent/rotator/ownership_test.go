// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

func TestOwnershipOf(t *testing.T) {
	managedLabel := map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue}
	annotated := func(key, text string) map[string]string { return map[string]string{key: text} }
	madeFor := func(text string) map[string]string { return annotated(authenticationv1beta1.AnnotationMadeFor, text) }
	byAWork := []metav1.OwnerReference{{APIVersion: "placement.kubernetes-fleet.io/v1", Kind: "AppliedWork", Name: "w", UID: "w"}}
	tests := map[string]struct {
		labels, annotations map[string]string
		owners              []metav1.OwnerReference
		want                ownership
	}{
		"foreign":                                                {nil, nil, nil, foreign},
		"another product's":                                      {managedLabel, nil, nil, unmarked},
		"ours, as earlier versions mark it":                      {managedLabel, madeFor("fleet-system/u1"), nil, own},
		"ours, without its label":                                {nil, madeFor("fleet-system/u1"), nil, own},
		"marked as ours by a Work":                               {managedLabel, madeFor("fleet-system/u1"), byAWork, unmarked},
		"of a deleted ManagedServiceAccount":                     {managedLabel, madeFor("fleet-system/u0"), nil, former},
		"of a deleted ManagedServiceAccount, and also of a Work": {managedLabel, madeFor("fleet-system/u0"), byAWork, former},
		"of an agent for another hub":                            {managedLabel, madeFor("fleet-two/u1"), nil, another},
		"with an invalid annotation":                             {managedLabel, madeFor("u1"), nil, another},
		"assigned by an administrator":                           {nil, annotated(authenticationv1beta1.AnnotationAssignedTo, "u1"), nil, given},
		"assigned with the previous annotation":                  {nil, annotated(authenticationv1beta1.DeprecatedAnnotationGivenTo, "u1"), nil, given},
		"assigned to another one":                                {managedLabel, annotated(authenticationv1beta1.AnnotationAssignedTo, "u2"), nil, unmarked},
		"assigned to none":                                       {managedLabel, annotated(authenticationv1beta1.AnnotationAssignedTo, ""), nil, unmarked},
		"held for it by another product":                         {managedLabel, annotated(authenticationv1beta1.AnnotationPendingAdoption, "fleet-system/u1/a1"), nil, recorded},
		"held, with the previous annotation":                     {managedLabel, annotated(authenticationv1beta1.DeprecatedAnnotationHeldFor, "fleet-system/u1/a1"), nil, recorded},
		"held for another one":                                   {managedLabel, annotated(authenticationv1beta1.AnnotationPendingAdoption, "fleet-system/u2/a1"), nil, unmarked},
		"re-created with the record of an earlier one":           {managedLabel, annotated(authenticationv1beta1.AnnotationPendingAdoption, "fleet-system/u1/a0"), nil, unmarked},
		"held, as recorded by another hub's agent":               {managedLabel, annotated(authenticationv1beta1.AnnotationPendingAdoption, "fleet-two/u1/a1"), nil, unmarked},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				UID: "a1", Labels: tt.labels, Annotations: tt.annotations, OwnerReferences: tt.owners,
			}}
			if got := ownershipOf(account, "fleet-system", "u1"); got != tt.want {
				t.Errorf("ownership %d, want %d", got, tt.want)
			}
		})
	}
}

func TestOwnershipOf_IsNotFormerWithoutAMark(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "a1", Annotations: map[string]string{authenticationv1beta1.AnnotationAssignedTo: ""}}}
	if got := ownershipOf(account, "fleet-system", ""); got != foreign {
		t.Errorf("an account that was given to no ManagedServiceAccount counts as %d when there is none of its name", got)
	}
}

func TestDecideAccount(t *testing.T) {
	tests := map[string]struct {
		whose ownership
		facts facts
		want  decision
	}{
		"own":                                        {own, facts{}, use},
		"assigned by an administrator":               {given, facts{}, use},
		"of a deleted ManagedServiceAccount":         {former, facts{}, replace},
		"of one that a restored hub lacks":           {former, facts{lost: true}, use},
		"foreign":                                    {foreign, facts{adopt: true, holderRuns: true, rights: ordinary}, refuse},
		"labelled, without adoption":                 {unmarked, facts{holderRuns: true, rights: ordinary}, refuse},
		"labelled, without a holder":                 {unmarked, facts{adopt: true, rights: ordinary}, refuse},
		"labelled, while its holder runs":            {unmarked, facts{adopt: true, holderRuns: true, rights: ordinary}, record},
		"recorded, while its holder runs":            {recorded, facts{adopt: true, holderRuns: true, rights: ordinary}, await},
		"recorded, and its holder is gone":           {recorded, facts{adopt: true, rights: ordinary}, take},
		"recorded, without adoption":                 {recorded, facts{rights: ordinary}, take},
		"recorded, but an administrator":             {recorded, facts{adopt: true, rights: administrator}, refuse},
		"recorded, with unknown rights":              {recorded, facts{adopt: true}, refuse},
		"of an agent for another hub, with adoption": {another, facts{adopt: true, holderRuns: true, rights: ordinary}, refuse},
		"labelled, an administrator, no adoption":    {unmarked, facts{rights: administrator}, refuse},
		"foreign, with unknown rights":               {foreign, facts{}, refuse},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideAccount(tt.whose, tt.facts); got != tt.want {
				t.Errorf("decided %d, want %d", got, tt.want)
			}
		})
	}
}

func TestBindsAdministrator(t *testing.T) {
	admin := rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	named := func(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }
	tests := map[string]struct {
		role    rbacv1.RoleRef
		subject rbacv1.Subject
		want    bool
	}{
		"by its name":                   {admin, account("accounts", "a"), true},
		"as a user":                     {admin, named(rbacv1.UserKind, "system:serviceaccount:accounts:a"), true},
		"with its namespace":            {admin, named(rbacv1.GroupKind, "system:serviceaccounts:accounts"), true},
		"with all accounts":             {admin, named(rbacv1.GroupKind, "system:serviceaccounts"), true},
		"with everybody":                {admin, named(rbacv1.GroupKind, "system:authenticated"), true},
		"another account":               {admin, account("accounts", "b"), false},
		"one of the name elsewhere":     {admin, account("default", "a"), false},
		"to another role":               {rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}, account("accounts", "a"), false},
		"to a namespace's role":         {rbacv1.RoleRef{Kind: "Role", Name: "cluster-admin"}, account("accounts", "a"), false},
		"a user of the account's name":  {admin, named(rbacv1.UserKind, "a"), false},
		"a group of the account's name": {admin, named(rbacv1.GroupKind, "a"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := bindsAdministrator(tt.role, []rbacv1.Subject{account("x", "y"), tt.subject}, "accounts", "a"); got != tt.want {
				t.Errorf("an administrator: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRefusal_NamesTheRemedy(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "accounts", Name: "a"}}
	for whose, may := range map[ownership]rights{foreign: unknown, unmarked: unknown, recorded: administrator} {
		got := refusal(account, "u1", whose, may)
		if !strings.Contains(got, "kubectl --namespace=accounts annotate serviceaccount a fleetgate.io/assigned-to=u1") {
			t.Errorf("refusal of %d: %s", whose, got)
		}
	}
	if got := refusal(account, "u1", another, unknown); !strings.Contains(got, "--account-namespace") {
		t.Errorf("the remedy for two agents is missing: %s", got)
	}
	if got := refusal(account, "u1", recorded, administrator); !strings.Contains(got, "bound to cluster-admin") {
		t.Errorf("the problem is missing: %s", got)
	}
	if got := refusal(account, "u1", recorded, unknown); !strings.Contains(got, "lacks list on clusterrolebindings") {
		t.Errorf("the missing right is not named: %s", got)
	}
}
