// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto/x509/pkix"
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

func TestRegistrationsOf_FollowsTheContract(t *testing.T) {
	const hub = "kubernetes.io/kube-apiserver-client"
	const group = "system:open-cluster-management:cluster:edge:addon:dns"
	for name, tc := range map[string]struct {
		annotation string
		status     addonv1alpha1.ManagedClusterAddOnStatus
		want       []registration
	}{
		"nothing asked for": {},
		"defaults": {
			status: addonv1alpha1.ManagedClusterAddOnStatus{Registrations: []addonv1alpha1.RegistrationConfig{{SignerName: hub}}},
			want: []registration{{addOn: "dns", signer: hub, secret: types.NamespacedName{Namespace: "open-cluster-management-agent-addon", Name: "dns-hub-kubeconfig"},
				subject: pkix.Name{CommonName: group + ":agent:fleetgate", Organization: []string{group}}}},
		},
		"what the manager says, once for each signer": {
			status: addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "agents", Registrations: []addonv1alpha1.RegistrationConfig{
				{SignerName: hub, Subject: addonv1alpha1.Subject{User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"o"}}},
				{SignerName: "example.com/addons"}, {SignerName: hub},
			}},
			want: []registration{
				{addOn: "dns", signer: hub, secret: types.NamespacedName{Namespace: "agents", Name: "dns-hub-kubeconfig"}, subject: pkix.Name{CommonName: "u", Organization: []string{"g"}, OrganizationalUnit: []string{"o"}}},
				{addOn: "dns", signer: "example.com/addons", secret: types.NamespacedName{Namespace: "agents", Name: "dns-example.com-addons-client-cert"}, subject: pkix.Name{CommonName: group + ":agent:fleetgate"}},
			},
		},
		"an agent on another cluster": {
			annotation: "host",
			status:     addonv1alpha1.ManagedClusterAddOnStatus{Registrations: []addonv1alpha1.RegistrationConfig{{SignerName: hub}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns"}, Status: tc.status}
			if tc.annotation != "" {
				addOn.Annotations = map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": tc.annotation}
			}
			if diff := cmp.Diff(tc.want, registrationsOf(addOn), cmp.AllowUnexported(registration{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAccountOf_ReadsTheConditionOfTheHub(t *testing.T) {
	for name, tc := range map[string]struct {
		status  metav1.ConditionStatus
		message string
		want    string
	}{
		"ready":         {metav1.ConditionTrue, "ServiceAccount edge/dns-agent (UID: 1-2-3) is ready", "1-2-3"},
		"not ready":     {metav1.ConditionFalse, "ServiceAccount edge/dns-agent (UID: 1-2-3) is ready", ""},
		"another text":  {metav1.ConditionTrue, "ready", ""},
		"without a UID": {metav1.ConditionTrue, "(UID: ) is ready", ""},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Status.Conditions = []metav1.Condition{{Type: "TokenInfrastructureReady", Status: tc.status, Message: tc.message}}
		if got := accountOf(addOn); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRenewAt_IsAtTheSameTimeForNoTwoCredentials(t *testing.T) {
	from := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	valid := validity{from: from, until: from.Add(24 * time.Hour)}
	a, b := valid.renewAt(types.NamespacedName{Namespace: "agents", Name: "a"}), valid.renewAt(types.NamespacedName{Namespace: "agents", Name: "b"})
	for _, renew := range []time.Time{a, b} {
		if left := valid.until.Sub(renew); left < 24*time.Hour/5 || left > 24*time.Hour/4 {
			t.Errorf("renewed when %s are left", left)
		}
	}
	if a.Equal(b) {
		t.Error("two credentials are renewed at the same time")
	}
}

func TestTokenIn_AcceptsOnlyTheAccount(t *testing.T) {
	issued := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	token := func(claims string) map[string][]byte {
		return map[string][]byte{"token": []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x")}
	}
	claims := `{"iat":1795910400,"exp":1795996800,"kubernetes.io":{"serviceaccount":{"uid":"1-2-3"}}}`
	got, err := tokenIn(token(claims), "1-2-3")
	if err != nil || !got.from.Equal(issued) || !got.until.Equal(issued.Add(24*time.Hour)) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, data := range map[string]map[string][]byte{
		"none": nil, "another account's": token(`{"iat":1,"exp":2,"kubernetes.io":{"serviceaccount":{"uid":"9"}}}`),
		"no token": {"token": []byte("a.b")}, "no base64": {"token": []byte("e30.*.x")}, "no claims": token("["),
	} {
		if _, err := tokenIn(data, "1-2-3"); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestSameSubject_IgnoresTheOrder(t *testing.T) {
	a := pkix.Name{CommonName: "u", Organization: []string{"a", "b"}}
	for name, tc := range map[string]struct {
		b    pkix.Name
		want bool
	}{
		"another order": {pkix.Name{CommonName: "u", Organization: []string{"b", "a"}}, true},
		"another user":  {pkix.Name{CommonName: "v", Organization: []string{"a", "b"}}, false},
		"one group":     {pkix.Name{CommonName: "u", Organization: []string{"a"}}, false},
		"a unit more":   {pkix.Name{CommonName: "u", Organization: []string{"a", "b"}, OrganizationalUnit: []string{"x"}}, false},
	} {
		if got := sameSubject(a, tc.b); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
