// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

func TestUsesTokens_OnlyForTheHubsOwnSigner(t *testing.T) {
	const hub, other = "kubernetes.io/kube-apiserver-client", "example.com/addons"
	for name, tc := range map[string]struct {
		driver  addonv1alpha1.KubeClientDriver
		signers []string
		want    bool
	}{
		"a token for the hub":            {addonv1alpha1.DriverToken, []string{hub}, true},
		"a token beside another signer":  {addonv1alpha1.DriverToken, []string{other, hub}, true},
		"a certificate":                  {addonv1alpha1.DriverCSR, []string{hub}, false},
		"no driver yet":                  {"", []string{hub}, false},
		"a certificate of others only":   {addonv1alpha1.DriverToken, []string{other}, false},
		"no registration, but a driver ": {addonv1alpha1.DriverToken, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			addOn.Status.KubeClientDriver = tc.driver
			for _, signer := range tc.signers {
				addOn.Status.Registrations = append(addOn.Status.Registrations, addonv1alpha1.RegistrationConfig{SignerName: signer})
			}
			if got := usesTokens(addOn); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// Agents and people of other products know these names, and parse the message.
func TestObjectsFor_HaveTheNamesOfTheContract(t *testing.T) {
	agents := []rbacv1.Subject{{Kind: "Group", Name: "system:open-cluster-management:edge"}}
	objects := objectsFor(types.NamespacedName{Namespace: "edge", Name: "dns"}, agents)
	labels := map[string]string{"addon.open-cluster-management.io/token-infrastructure": "true", "addon.open-cluster-management.io/name": "dns"}
	role := metav1.ObjectMeta{Namespace: "edge", Name: "dns-token-role", Labels: labels}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns-agent", Labels: labels}}
	want := []any{
		account,
		&rbacv1.Role{ObjectMeta: role, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"dns-agent"}, Verbs: []string{"create"}}}},
		&rbacv1.RoleBinding{ObjectMeta: role, Subjects: agents, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "dns-token-role"}},
	}
	for i, object := range objects {
		if diff := cmp.Diff(want[i], any(object)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if !isOurs(object, types.NamespacedName{Namespace: "edge", Name: "dns"}) || isOurs(object, types.NamespacedName{Namespace: "edge", Name: "web"}) {
			t.Errorf("%s is of another add-on", nameOf(object))
		}
	}
	account.UID = "1-2-3"
	if got := ready(account).Message; got != "ServiceAccount edge/dns-agent (UID: 1-2-3) is ready" {
		t.Errorf("the condition says %q", got)
	}
}

// A changed RoleBinding must not get the agents as subjects before it binds the Role again.
func TestRefersElsewhere_ReplacesABindingOfAnotherRole(t *testing.T) {
	desired := objectsFor(types.NamespacedName{Namespace: "edge", Name: "dns"}, nil)[2]
	changed := desired.DeepCopyObject().(*rbacv1.RoleBinding)
	if refersElsewhere(changed, desired) {
		t.Error("the same Role is another one")
	}
	changed.RoleRef = rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"}
	if !refersElsewhere(changed, desired) {
		t.Error("another Role is the same")
	}
}
