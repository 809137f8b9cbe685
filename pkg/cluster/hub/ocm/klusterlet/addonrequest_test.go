// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const dnsOnEdge = "system:open-cluster-management:cluster:edge:addon:dns"

// newAddOnRequest is a klusterlet's request for the agent of an add-on.
func newAddOnRequest(t testing.TB) *aRequest {
	t.Helper()
	request := newRequest(t)
	request.csr.Labels[addonv1alpha1.AddOnNameLabel] = "dns"
	request.csr.Spec.Username = "system:open-cluster-management:edge:abcde"
	request.subject.CommonName = dnsOnEdge + ":agent:dns"
	request.subject.Organization = []string{dnsOnEdge, "system:open-cluster-management:addon:dns", "system:authenticated"}
	request.dns = []string{"dns.addon.open-cluster-management.io"}
	return request
}

func TestRefuseAddOn_AcceptsOnlyTheContract(t *testing.T) {
	requester := func(name string) func(*aRequest) { return func(a *aRequest) { a.csr.Spec.Username = name } }
	for name, tc := range map[string]struct {
		change func(*aRequest)
		// refused is part of the refusal, and empty if the request follows the contract.
		refused string
	}{
		"as klusterlets request it":        {func(*aRequest) {}, ""},
		"without the name of the add-on":   {func(a *aRequest) { a.dns = nil }, ""},
		"with the first group only":        {func(a *aRequest) { a.subject.Organization = a.subject.Organization[:1] }, ""},
		"by the agent of a member of ours": {requester("system:serviceaccount:fleet-member-edge:agent"), ""},
		"with the agent's certificate":     {requester("system:open-cluster-management:edge:fleetgate"), ""},
		"by the add-on itself":             {requester(dnsOnEdge + ":agent:dns"), ""},
		"by a cluster with a longer name":  {requester("system:open-cluster-management:edge-1:abcde"), "no agent of cluster"},
		"by a cluster with a shorter name": {requester("system:open-cluster-management:edg:abcde"), "no agent of cluster"},
		"by the agent of another member":   {requester("system:serviceaccount:fleet-member-edge-1:agent"), "no agent of cluster"},
		"by another account of the member": {requester("system:serviceaccount:fleet-member-edge:other"), "no agent of cluster"},
		"by another add-on":                {requester("system:open-cluster-management:cluster:edge:addon:web:agent:web"), "no agent of cluster"},
		"by an administrator":              {requester("admin"), "no agent of cluster"},
		"another cluster's user":           {func(a *aRequest) { a.subject.CommonName = strings.Replace(a.subject.CommonName, "edge", "edge-1", 1) }, "common names"},
		"another add-on's user": {func(a *aRequest) {
			a.subject.CommonName = strings.Replace(a.subject.CommonName, "addon:dns", "addon:web", 1)
		}, "common names"},
		"an administrator's name":  {func(a *aRequest) { a.subject.CommonName = "admin" }, "common names"},
		"no agent":                 {func(a *aRequest) { a.subject.CommonName = dnsOnEdge + ":agent:" }, "common names"},
		"two users":                {func(a *aRequest) { a.subject.ExtraNames = twoUsers(a.subject) }, "common names"},
		"an administrator's group": {func(a *aRequest) { a.subject.Organization = append(a.subject.Organization, "system:masters") }, "none of"},
		"another cluster's group":  {func(a *aRequest) { a.subject.Organization[0] = strings.Replace(dnsOnEdge, "edge", "edge-1", 1) }, "none of"},
		"a unit":                   {func(a *aRequest) { a.subject.OrganizationalUnit = []string{"x"} }, "more than a common name"},
		"another address":          {func(a *aRequest) { a.dns = []string{"kubernetes.default"} }, "extensions"},
		"an IP address":            {func(a *aRequest) { a.ips = []net.IP{net.IPv4(127, 0, 0, 1)} }, "extensions"},
		"for servers":              {func(a *aRequest) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageServerAuth) }, "server auth"},
		"signed by somebody else":  {func(a *aRequest) { a.request = corrupt }, "not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			request := newAddOnRequest(t)
			tc.change(request)
			refused := RefuseAddOn(request.build(t))
			if (refused == nil) != (tc.refused == "") {
				t.Fatalf("got %v, want %q", refused, tc.refused)
			}
			if refused != nil && (!strings.Contains(refused.Message, tc.refused) || refused.Reason != ReasonInvalidAddOnRequest || strings.Contains(refused.Message, "klusterlet does not")) {
				t.Errorf("got %v, want %q", refused, tc.refused)
			}
		})
	}
}

func TestParseAddOn_LeavesOnlyTheSubjectToTheApprover(t *testing.T) {
	requester := func(name string) func(*aRequest) { return func(a *aRequest) { a.csr.Spec.Username = name } }
	for name, tc := range map[string]struct {
		change  func(*aRequest)
		refused string
	}{
		"as klusterlets request it":       {func(*aRequest) {}, ""},
		"by the add-on itself":            {requester(dnsOnEdge + ":agent:dns"), ""},
		"another subject, with a unit":    {func(a *aRequest) { a.subject = pkix.Name{CommonName: "user", OrganizationalUnit: []string{"o"}} }, ""},
		"by a cluster with a longer name": {requester("system:open-cluster-management:edge-1:abcde"), "no agent of cluster"},
		"by an administrator":             {requester("admin"), "no agent of cluster"},
		"another address":                 {func(a *aRequest) { a.dns = []string{"kubernetes.default"} }, "extensions"},
		"for servers":                     {func(a *aRequest) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageServerAuth) }, "server auth"},
		"signed by somebody else":         {func(a *aRequest) { a.request = corrupt }, "not signed"},
	} {
		request := newAddOnRequest(t)
		tc.change(request)
		parsed, err := ParseAddOn(request.build(t))
		if tc.refused == "" {
			if err != nil || parsed.Subject.CommonName != request.subject.CommonName {
				t.Errorf("%s: %v, %v", name, parsed, err)
			}
			continue
		}
		if refused := refusal.Of(err); refused == nil || !strings.Contains(refused.Message, tc.refused) || refused.Reason != ReasonInvalidAddOnRequest || strings.Contains(refused.Message, "klusterlet") {
			t.Errorf("%s: got %v, want %q", name, err, tc.refused)
		}
	}
}

func TestSignAddOn_LastsAsLongAsAskedAndNotLongerThanTheAuthority(t *testing.T) {
	for ends, want := range map[time.Duration]time.Duration{365 * 24 * time.Hour: 24 * time.Hour, 2 * time.Hour: 2 * time.Hour} {
		certificate, key := newAuthority(t, signedAt.Add(ends), true)
		signed, err := SignAddOn(clocktesting.NewFakePassiveClock(signedAt))(certificate, key, newAddOnRequest(t).build(t).Spec.Request, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(signed)
		got, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if life := got.NotAfter.Sub(signedAt); life != want || got.Subject.CommonName != dnsOnEdge+":agent:dns" {
			t.Errorf("an authority for %s: %s for %s", ends, life, got.Subject)
		}
	}
}

// An approval is not the gateway's, so what it signs must be bounded by the content.
func FuzzRefuseAddOn(f *testing.F) {
	request := newAddOnRequest(f).build(f)
	f.Add(request.Spec.Request, "edge", "dns", request.Spec.Username)
	f.Add(request.Spec.Request, "edge-1", "dns", "system:open-cluster-management:edge-1:abcde")
	f.Fuzz(func(t *testing.T, request []byte, cluster, addOn, requester string) {
		csr := newAddOnRequest(t).csr
		csr.Spec.Request, csr.Spec.Username = request, requester
		csr.Labels[clusterv1.ClusterNameLabel], csr.Labels[addonv1alpha1.AddOnNameLabel] = cluster, addOn
		if RefuseAddOn(csr) != nil {
			return
		}
		parsed, refused := parse(csr.Spec.Request)
		if refused != nil {
			t.Fatal(refused)
		}
		if want := "system:open-cluster-management:cluster:" + cluster + ":addon:" + addOn + ":agent:"; !strings.HasPrefix(parsed.Subject.CommonName, want) {
			t.Errorf("accepted %q for add-on %q of cluster %q", parsed.Subject.CommonName, addOn, cluster)
		}
	})
}

func TestApprover_SignsMembersAddOnsForADay(t *testing.T) {
	for requester, want := range map[string]time.Duration{
		"system:open-cluster-management:edge:abcde":     365 * 24 * time.Hour,
		"system:open-cluster-management:edge:fleetgate": 24 * time.Hour,
		"system:serviceaccount:fleet-member-edge:agent": 24 * time.Hour,
	} {
		certificate, key := newAuthority(t, signedAt.AddDate(5, 0, 0), true)
		signer, err := NewSigner(certificate, key, clocktesting.NewFakePassiveClock(signedAt))
		if err != nil {
			t.Fatal(err)
		}
		request := newAddOnRequest(t)
		request.csr.Spec.Username = requester
		csr := request.build(t)
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		hub := certificatesHub(t, csr)
		a := &Approver{Client: hub, Signer: signer, Clock: clocktesting.NewFakePassiveClock(signedAt)}
		if _, err := a.reconcileAddOn(t.Context(), csr); err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(csr.Status.Certificate)
		got, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got.NotAfter.Sub(signedAt) != want || len(got.DNSNames) > 0 {
			t.Errorf("requested by %s: until %s, for %q", requester, got.NotAfter, got.DNSNames)
		}
	}
}

func TestApprover_DeletesAddOnRequestsThatNobodyServes(t *testing.T) {
	created := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		conditions []certificatesv1.CertificateSigningRequestCondition
		signer     string
	}{
		"nobody decides":                {nil, certificatesv1.KubeAPIServerClientSignerName},
		"denied":                        {[]certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}, certificatesv1.KubeAPIServerClientSignerName},
		"another signer does not serve": {[]certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}, "example.com/addons"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := newAddOnRequest(t).build(t)
			csr.UID, csr.CreationTimestamp, csr.Spec.SignerName, csr.Status.Conditions = "1", metav1.NewTime(created), tc.signer, tc.conditions
			for after, gone := range map[time.Duration]bool{time.Hour: false, keepUnserved: true} {
				hub := certificatesHub(t, csr.DeepCopy())
				a := &Approver{Client: hub, Clock: clocktesting.NewFakePassiveClock(created.Add(after))}
				got, err := a.reconcileAddOn(t.Context(), csr.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				if deleted := apierrors.IsNotFound(hub.Get(t.Context(), client.ObjectKeyFromObject(csr), csr.DeepCopy())); deleted != gone || (got.RequeueAfter == 0) != gone {
					t.Errorf("after %s: deleted %t, again in %s", after, deleted, got.RequeueAfter)
				}
			}
		})
	}
}

func certificatesHub(t *testing.T, csr *certificatesv1.CertificateSigningRequest) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(csr).WithStatusSubresource(csr).Build()
}
