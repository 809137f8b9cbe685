// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// aRequest is a klusterlet's request, before a case changes it.
type aRequest struct {
	subject pkix.Name
	dns     []string
	ips     []net.IP
	key     crypto.Signer
	csr     *certificatesv1.CertificateSigningRequest
	request func([]byte) []byte
}

func newRequest(t testing.TB) *aRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &aRequest{
		key: key,
		subject: pkix.Name{
			CommonName:   "system:open-cluster-management:edge:abcde",
			Organization: []string{"system:open-cluster-management:edge", "system:open-cluster-management:managed-clusters"},
		},
		csr: &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "edge-x7k2p", Labels: map[string]string{clusterv1.ClusterNameLabel: "edge"}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
				Username:   "system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
			},
		},
		request: func(content []byte) []byte { return content },
	}
}

func (a *aRequest) build(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: a.subject, DNSNames: a.dns, IPAddresses: a.ips}, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.csr.Spec.Request = a.request(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return a.csr
}

func TestRead_AcceptsOnlyTheContract(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*aRequest)
		// refused is part of the refusal, and empty if the request follows the contract.
		refused string
	}{
		"as klusterlets request it":  {func(*aRequest) {}, ""},
		"without the common group":   {func(a *aRequest) { a.subject.Organization = a.subject.Organization[:1] }, ""},
		"groups in the other order":  {func(a *aRequest) { slices.Reverse(a.subject.Organization) }, ""},
		"no key encipherment":        {func(a *aRequest) { a.csr.Spec.Usages = slices.Delete(a.csr.Spec.Usages, 1, 2) }, ""},
		"the name of a longer one":   {func(a *aRequest) { a.csr.Labels[clusterv1.ClusterNameLabel] = "edge-1" }, "organizations"},
		"the name of a shorter one":  {func(a *aRequest) { a.csr.Labels[clusterv1.ClusterNameLabel] = "edg" }, "organizations"},
		"another cluster's user":     {func(a *aRequest) { a.subject.CommonName = "system:open-cluster-management:edge-1:abcde" }, "common name"},
		"another cluster's group":    {func(a *aRequest) { a.subject.Organization[0] = "system:open-cluster-management:edge-1" }, "organizations"},
		"one group more":             {func(a *aRequest) { a.subject.Organization = append(a.subject.Organization, "system:masters") }, "organizations"},
		"the group twice":            {func(a *aRequest) { a.subject.Organization[1] = a.subject.Organization[0] }, "organizations"},
		"the common group alone":     {func(a *aRequest) { a.subject.Organization = a.subject.Organization[1:] }, "organizations"},
		"no group":                   {func(a *aRequest) { a.subject.Organization = nil }, "organizations"},
		"no agent":                   {func(a *aRequest) { a.subject.CommonName = "system:open-cluster-management:edge:" }, "common name"},
		"two agents":                 {func(a *aRequest) { a.subject.CommonName += ":more" }, "common name"},
		"no user":                    {func(a *aRequest) { a.subject.CommonName = "" }, "0 common names"},
		"one more in the subject":    {func(a *aRequest) { a.subject.OrganizationalUnit = []string{"x"} }, "more than a common name"},
		"two users":                  {func(a *aRequest) { a.subject.ExtraNames = twoUsers(a.subject) }, "2 common names"},
		"addresses":                  {func(a *aRequest) { a.dns = []string{"kubernetes.default"} }, "extensions"},
		"an IP address":              {func(a *aRequest) { a.ips = []net.IP{net.IPv4(127, 0, 0, 1)} }, "extensions"},
		"another signer":             {func(a *aRequest) { a.csr.Spec.SignerName = "kubernetes.io/kubelet-serving" }, "signer"},
		"for servers":                {func(a *aRequest) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageServerAuth) }, "server auth"},
		"not for clients":            {func(a *aRequest) { a.csr.Spec.Usages = a.csr.Spec.Usages[:1] }, "client auth"},
		"another kind of key":        {func(a *aRequest) { a.key = anRSAKey() }, "ECDSA"},
		"an RSA key, not verified":   {func(a *aRequest) { a.key, a.request = anRSAKey(), corrupt }, "ECDSA"},
		"a name that is none":        {func(a *aRequest) { a.csr.Labels[clusterv1.ClusterNameLabel] = "Edge" }, "no name"},
		"two requests":               {func(a *aRequest) { a.request = func(c []byte) []byte { return append(bytes.Clone(c), c...) } }, "one request"},
		"something after it":         {func(a *aRequest) { a.request = func(c []byte) []byte { return append(c, "more"...) } }, "one request"},
		"nothing":                    {func(a *aRequest) { a.request = func([]byte) []byte { return nil } }, "one request"},
		"too much":                   {func(a *aRequest) { a.request = func([]byte) []byte { return make([]byte, largest+1) } }, "bytes"},
		"signed by somebody else":    {func(a *aRequest) { a.request = corrupt }, "not signed"},
		"not a request":              {func(a *aRequest) { a.request = truncated }, "cannot be read"},
		"a certificate, not request": {func(a *aRequest) { a.request = renamed }, "one request"},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t)
			tc.change(request)
			got, refused := Read(request.build(t))
			if tc.refused != "" {
				if refused == nil || !strings.Contains(refused.Message, tc.refused) || refused.Reason != ReasonInvalidKlusterletRequest {
					t.Errorf("got %+v, %v, want a refusal that says %q", got, refused, tc.refused)
				}
				return
			}
			if refused != nil || got.Cluster != "edge" || got.Agent != "abcde" || len(got.Key) != 64 || got.CommonName() != request.subject.CommonName {
				t.Errorf("got %+v, %v", got, refused)
			}
		})
	}
}

func twoUsers(subject pkix.Name) []pkix.AttributeTypeAndValue {
	var names []pkix.AttributeTypeAndValue
	for _, group := range subject.Organization {
		names = append(names, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: group})
	}
	for _, user := range []string{subject.CommonName, "system:admin"} {
		names = append(names, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: user})
	}
	return names
}

func anRSAKey() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// corrupt changes the last byte of the signature.
func corrupt(content []byte) []byte {
	block, _ := pem.Decode(content)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

func truncated(content []byte) []byte {
	block, _ := pem.Decode(content)
	block.Bytes = block.Bytes[:20]
	return pem.EncodeToMemory(block)
}

func renamed(content []byte) []byte {
	block, _ := pem.Decode(content)
	block.Type = "CERTIFICATE"
	return pem.EncodeToMemory(block)
}

func TestDecide(t *testing.T) {
	const user, account = "bootstrap", "system:serviceaccount:fleet-member-edge:agent"
	users := []string{user, "other"}
	for name, tc := range map[string]struct {
		requester string
		cluster   ClusterState
		want      Decision
	}{
		"the agent itself":                                        {"system:open-cluster-management:edge:abcde", ClusterState{Known: true, Joined: true}, Renew},
		"the agent of a cluster that is not there":                {"system:open-cluster-management:edge:abcde", ClusterState{}, Renew},
		"an agent of a shorter name":                              {"system:open-cluster-management:edg:abcde", ClusterState{Known: true}, Wait},
		"another agent of the cluster":                            {"system:open-cluster-management:edge:other", ClusterState{Known: true}, Wait},
		"anybody":                                                 {"jane", ClusterState{Known: true}, Wait},
		"a user who is trusted":                                   {user, ClusterState{Known: true}, Admit},
		"before the cluster is there":                             {user, ClusterState{}, Wait},
		"a cluster that was denied":                               {user, ClusterState{Known: true, Denied: true}, Wait},
		"anybody, when there is an agent":                         {"jane", ClusterState{Known: true, Joined: true}, Warn},
		"anybody, with the key that was admitted":                 {"jane", ClusterState{Known: true, Key: "k"}, Warn},
		"anybody, when it was denied":                             {"jane", ClusterState{Known: true, Joined: true, Denied: true}, Wait},
		"the account of a member, for a name that is not its own": {account, ClusterState{Known: true, Account: account}, Warn},
		"a user who is trusted, for a member of ours":             {user, ClusterState{Known: true, Account: account}, Warn},
		"again with the same key":                                 {user, ClusterState{Known: true, Key: "k", Joined: true}, Admit},
		"with another key":                                        {user, ClusterState{Known: true, Key: "other"}, Warn},
		"a cluster that a person approved":                        {user, ClusterState{Known: true, Joined: true}, Warn},
	} {
		got, refused := Decide(Request{Cluster: "edge", Agent: "abcde", Requester: tc.requester, Key: "k"}, tc.cluster, users)
		if got != tc.want || (refused != nil) != (tc.want == Warn) {
			t.Errorf("%s: got %v, %v, want %v", name, got, refused, tc.want)
		}
	}
}

func TestDecide_MemberAgentMayUseOnlyItsName(t *testing.T) {
	const account = "system:serviceaccount:fleet-member-edge:agent"
	for name, tc := range map[string]struct {
		request Request
		state   ClusterState
		want    Decision
	}{
		"its own":                      {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: account, Lifetime: 24 * time.Hour}, ClusterState{Known: true, Joined: true, Account: account}, Renew},
		"of a previous agent":          {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: account, Lifetime: 30 * 24 * time.Hour}, ClusterState{Known: true, Joined: true, Account: account}, Renew},
		"for longer":                   {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: account, Lifetime: 31 * 24 * time.Hour}, ClusterState{Known: true, Joined: true, Account: account}, Warn},
		"without an end":               {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: account}, ClusterState{Known: true, Joined: true, Account: account}, Warn},
		"by its certificate":           {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: "system:open-cluster-management:edge:fleetgate", Lifetime: time.Hour}, ClusterState{Known: true, Joined: true, Account: account}, Warn},
		"by it, of a former member":    {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: "system:open-cluster-management:edge:fleetgate", Lifetime: time.Hour}, ClusterState{}, Warn},
		"another agent's":              {Request{Cluster: "edge", Agent: "abcde", Requester: account}, ClusterState{Known: true, Joined: true, Account: account}, Warn},
		"another member's":             {Request{Cluster: "edge-1", Agent: clusterv1.AgentName, Requester: account}, ClusterState{Known: true, Account: account + "-1"}, Warn},
		"of a cluster of a klusterlet": {Request{Cluster: "edge", Agent: clusterv1.AgentName, Requester: account}, ClusterState{Known: true}, Wait},
		"by nobody":                    {Request{Cluster: "edge", Agent: clusterv1.AgentName}, ClusterState{Known: true}, Wait},
	} {
		if got, _ := Decide(tc.request, tc.state, nil); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestLifeOf(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		beat     Beat
		period   time.Duration
		anyClock bool
		want     Life
	}{
		"just renewed":                  {Beat{ago(0), ago(0)}, time.Second, false, Life{Left: 5 * time.Second, Judged: true, Synced: true}},
		"the last moment":               {Beat{ago(4), ago(4)}, time.Second, false, Life{Left: time.Second, Judged: true, Synced: true}},
		"over":                          {Beat{ago(5), ago(5)}, time.Second, false, Life{Gone: true, Judged: true, Synced: true}},
		"a period that nobody set":      {Beat{ago(60), ago(60)}, 0, false, Life{Left: 4 * time.Minute, Judged: true, Synced: true}},
		"nobody saw when":               {Beat{Renewed: ago(4)}, time.Second, false, Life{Left: time.Second}},
		"its clock is late":             {Beat{ago(6), ago(0)}, time.Second, false, Life{Gone: true, Left: -time.Second, Judged: true}},
		"its clock may be late":         {Beat{ago(6), ago(0)}, time.Second, true, Life{Left: 5 * time.Second, Judged: true, Synced: true}},
		"its clock is early":            {Beat{now.Add(6 * time.Second), ago(0)}, time.Second, false, Life{Left: 11 * time.Second, Judged: true}},
		"its clock is a little late":    {Beat{ago(4), ago(0)}, time.Second, false, Life{Left: time.Second, Judged: true, Synced: true}},
		"any clock, nobody saw when":    {Beat{Renewed: ago(4)}, time.Second, true, Life{Left: time.Second}},
		"a Lease that nobody renewed":   {Beat{}, time.Second, false, Life{Gone: true, Left: -1 << 63}},
		"any clock, silent since it is": {Beat{ago(9), ago(5)}, time.Second, true, Life{Gone: true, Judged: true, Synced: true}},
	} {
		if got := LifeOf(tc.beat, tc.period, tc.anyClock, now); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// Whatever is sent, only requests for one user of the labelled cluster are read.
func FuzzRead(f *testing.F) {
	request := newRequest(f).build(f)
	f.Add(request.Spec.Request, "edge")
	f.Add(request.Spec.Request, "edge-1")
	f.Fuzz(func(t *testing.T, request []byte, cluster string) {
		csr := newRequest(t).csr
		csr.Spec.Request = request
		csr.Labels[clusterv1.ClusterNameLabel] = cluster
		checkRead(t, csr)
	})
}

// The same for the content of the PEM block: most random bytes are no PEM at all.
func FuzzReadDER(f *testing.F) {
	block, _ := pem.Decode(newRequest(f).build(f).Spec.Request)
	f.Add(block.Bytes, "edge")
	f.Fuzz(func(t *testing.T, der []byte, cluster string) {
		csr := newRequest(t).csr
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		csr.Labels[clusterv1.ClusterNameLabel] = cluster
		checkRead(t, csr)
	})
}

// checkRead compares the result with what a signer reads from the same request.
func checkRead(t *testing.T, csr *certificatesv1.CertificateSigningRequest) {
	request, refused := Read(csr)
	if refused != nil {
		return
	}
	block, _ := pem.Decode(csr.Spec.Request)
	signed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatalf("read %+v of what is no request: %v", request, err)
	}
	if signed.Subject.CommonName != request.CommonName() || request.Cluster != csr.Labels[clusterv1.ClusterNameLabel] {
		t.Errorf("read %+v of the user %q", request, signed.Subject.CommonName)
	}
	for _, group := range signed.Subject.Organization {
		if group != clusterv1.UserPrefix+request.Cluster && group != clusterv1.AgentsGroup {
			t.Errorf("read %+v of a member of %q", request, group)
		}
	}
	if len(signed.DNSNames)+len(signed.IPAddresses)+len(signed.EmailAddresses)+len(signed.URIs) > 0 {
		t.Errorf("read %+v of a request with addresses", request)
	}
	if signed.CheckSignature() != nil {
		t.Errorf("read %+v of a request that its key did not sign", request)
	}
}
