// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// agent is a klusterlet from a hub's point of view.
type agent struct {
	cluster, name string
	// bootstrap is its configuration for joining.
	bootstrap *rest.Config
	key       *ecdsa.PrivateKey
	// certificate is its certificate, in PEM.
	certificate []byte
}

// newAgent is an agent with a token of clusteradm's account.
func newAgent(ctx context.Context, cluster string) *agent {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	answer, err := clientset.CoreV1().ServiceAccounts("open-cluster-management").CreateToken(ctx, "agent-registration-bootstrap", request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(hub.Config())
	config.BearerToken = answer.Status.Token
	return &agent{cluster: cluster, name: "abcde", bootstrap: config}
}

// newAgentOf is an agent that has the certificate of another user.
func newAgentOf(cluster, user string) *agent {
	GinkgoHelper()
	config, err := hub.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	return &agent{cluster: cluster, name: "abcde", bootstrap: config}
}

func (a *agent) commonName() string {
	return "system:open-cluster-management:" + a.cluster + ":" + a.name
}

// asking is a client with its bootstrap configuration.
func (a *agent) asking() client.Client {
	GinkgoHelper()
	return expect.Client(build.Unlimited(a.bootstrap), kinds())
}

// hub is a client with its certificate, over the same connection as its bootstrap.
func (a *agent) hub() client.Client {
	GinkgoHelper()
	return expect.Client(build.Unlimited(a.config()), kinds())
}

// config is a configuration for the hub with its certificate.
func (a *agent) config() *rest.Config {
	GinkgoHelper()
	key, err := x509.MarshalECPrivateKey(a.key)
	Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(a.bootstrap)
	config.CertData, config.KeyData = a.certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})
	return config
}

// register creates the ManagedCluster, like an agent that finds none.
func (a *agent) register(ctx context.Context) {
	GinkgoHelper()
	expect.Created(ctx, a.asking(), &clusterv1.ManagedCluster{
		ObjectMeta: build.Named(a.cluster),
		Spec: clusterv1.ManagedClusterSpec{
			LeaseDurationSeconds:        60,
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + a.cluster + ".example.com:6443", CABundle: []byte("ca")}},
		},
	})
}

// request is its certificate request, with a new key.
func (a *agent) request(changes ...func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   a.commonName(),
		Organization: []string{"system:open-cluster-management:" + a.cluster, "system:open-cluster-management:managed-clusters"},
	}}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: a.cluster + "-", Labels: map[string]string{clusterv1.ClusterNameLabel: a.cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	if a.name == clusterv1.AgentName { // It has to state a lifetime.
		csr.Spec.ExpirationSeconds = ptr.To(int32(clusterv1.AgentCertificateLife.Seconds()))
	}
	for _, change := range changes {
		change(template, csr)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, a.key)
	Expect(err).NotTo(HaveOccurred())
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr
}

// ask requests a certificate, and returns the request's name.
func (a *agent) ask(ctx context.Context, as client.Client, changes ...func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)) string {
	GinkgoHelper()
	csr := a.request(changes...)
	expect.Created(ctx, as, csr)
	return csr.Name
}

func (a *agent) fetch(ctx context.Context, as client.Client, request string) {
	GinkgoHelper()
	csr := &certificatesv1.CertificateSigningRequest{}
	Eventually(func(g Gomega) {
		g.Expect(as.Get(ctx, client.ObjectKey{Name: request}, csr)).To(Succeed())
		g.Expect(csr.Status.Certificate).NotTo(BeEmpty())
	}).Should(Succeed())
	a.certificate = csr.Status.Certificate
}

// connected waits until it has all rights that a klusterlet needs before it reports that it is
// connected.
func (a *agent) connected(ctx context.Context) {
	GinkgoHelper()
	own := a.hub()
	for _, right := range a.rights() {
		Eventually(func(g Gomega) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
			g.Expect(own.Create(ctx, review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(BeTrue(), "%+v", right)
		}).Should(Succeed())
	}
}

func (a *agent) rights() []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes
	add := func(of authorizationv1.ResourceAttributes, verbs ...string) {
		for _, verb := range verbs {
			of.Verb = verb
			rights = append(rights, of)
		}
	}
	add(authorizationv1.ResourceAttributes{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, "get", "list", "watch")
	add(authorizationv1.ResourceAttributes{Group: clusterv1.GroupName, Resource: "managedclusters", Name: a.cluster}, "get", "list", "update", "watch")
	add(authorizationv1.ResourceAttributes{Group: clusterv1.GroupName, Resource: "managedclusters", Subresource: "status", Name: a.cluster}, "patch", "update")
	add(authorizationv1.ResourceAttributes{Group: "register.open-cluster-management.io", Resource: "managedclusters", Subresource: "clientcertificates"}, "renew")
	add(authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Namespace: a.cluster, Name: "managed-cluster-lease"}, "get", "update")
	add(authorizationv1.ResourceAttributes{Resource: "events", Namespace: a.cluster}, "create", "patch", "update")
	add(authorizationv1.ResourceAttributes{Group: "events.k8s.io", Resource: "events", Namespace: a.cluster}, "create", "patch", "update")
	add(authorizationv1.ResourceAttributes{Group: "work.open-cluster-management.io", Resource: "manifestworks", Namespace: a.cluster}, "get", "list", "watch", "update")
	add(authorizationv1.ResourceAttributes{Group: "work.open-cluster-management.io", Resource: "manifestworks", Subresource: "status", Namespace: a.cluster}, "patch", "update")
	return rights
}

// renewLease renews its Lease, with its own clock.
func (a *agent) renewLease(ctx context.Context, at time.Time) {
	GinkgoHelper()
	own := a.hub()
	Eventually(func(g Gomega) {
		lease := &coordinationv1.Lease{}
		g.Expect(own.Get(ctx, client.ObjectKey{Namespace: a.cluster, Name: "managed-cluster-lease"}, lease)).To(Succeed())
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(at))
		g.Expect(own.Update(ctx, lease)).To(Succeed())
	}).Should(Succeed())
}

// report writes an agent's status.
func (a *agent) report(ctx context.Context, available metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	own := a.hub()
	Eventually(func(g Gomega) {
		cluster := &clusterv1.ManagedCluster{}
		g.Expect(own.Get(ctx, client.ObjectKey{Name: a.cluster}, cluster)).To(Succeed())
		base := cluster.DeepCopy()
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: "ManagedClusterJoined", Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined", Message: "Managed cluster joined"})
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: "ManagedClusterConditionAvailable", Status: available, Reason: reason})
		cluster.Status.Version.Kubernetes = "v1.34.1"
		g.Expect(own.Status().Patch(ctx, cluster, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	}).Should(Succeed())
}

// join does all of it, with an administrator who accepts manually, and returns when the cluster is
// available.
func join(ctx context.Context, cluster string) *agent {
	GinkgoHelper()
	a := newAgent(ctx, cluster)
	a.join(ctx)
	return a
}

func (a *agent) join(ctx context.Context) {
	GinkgoHelper()
	a.register(ctx)
	request := a.ask(ctx, a.asking())
	approve(ctx, request)
	accept(ctx, a.cluster)
	a.fetch(ctx, a.asking(), request)
	a.connected(ctx)
	a.renewLease(ctx, time.Now())
	a.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
	Eventually(taintsOf).WithArguments(ctx, a.cluster).Should(BeEmpty())
}

// approve approves a request, like kubectl certificate approve.
func approve(ctx context.Context, request string) {
	GinkgoHelper()
	csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByAPerson",
	})
	_, err = clientset.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request, csr, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// accept accepts a cluster, like clusteradm accept.
func accept(ctx context.Context, cluster string) { setAccepted(ctx, cluster, "true") }

func deny(ctx context.Context, cluster string) { setAccepted(ctx, cluster, "false") }

func setAccepted(ctx context.Context, cluster, value string) {
	GinkgoHelper()
	Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(cluster)},
		expect.MergePatch(`{"spec":{"hubAcceptsClient":`+value+`}}`))).To(Succeed())
}

func clusterOf(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := hubClient.Get(ctx, client.ObjectKey{Name: name}, cluster)
	return cluster, err
}

func conditionsOf(ctx context.Context, name string) ([]metav1.Condition, error) {
	cluster, err := clusterOf(ctx, name)
	return cluster.Status.Conditions, err
}

// taintsOf are the keys and effects of a cluster's taints.
func taintsOf(ctx context.Context, name string) ([]string, error) {
	cluster, err := clusterOf(ctx, name)
	taints := []string{}
	for _, taint := range cluster.Spec.Taints {
		taints = append(taints, taint.Key+":"+string(taint.Effect))
	}
	return taints, err
}
