// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/forwardproxy"
)

const (
	unreachable = "cluster.open-cluster-management.io/unreachable:NoSelect"
	unavailable = "cluster.open-cluster-management.io/unavailable:NoSelect"
	rolePrefix  = "open-cluster-management:managedcluster:"
)

var _ = Describe("A cluster with a klusterlet", func() {
	It("joins when an administrator approves and accepts it", func(ctx SpecContext) {
		const name = "joins"
		a := newAgent(ctx, name)
		a.register(ctx)
		request := a.ask(ctx, a.asking())

		By("being tainted and without rights before the acceptance")
		Eventually(taintsOf).WithArguments(ctx, name).Should(Equal([]string{unreachable}))
		Consistently(decisionsOn).WithArguments(ctx, request).Should(BeEmpty())
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})).To(Satisfy(apierrors.IsNotFound))

		approve(ctx, request)
		accept(ctx, name)
		a.fetch(ctx, a.asking(), request)
		a.connected(ctx)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		cluster, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Finalizers).To(ConsistOf("cluster.open-cluster-management.io/api-resource-cleanup", "cluster.open-cluster-management.io/resource-cleanup"))
		namespace := &corev1.Namespace{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: name}, namespace)).To(Succeed())
		Expect(namespace.Labels).To(HaveKeyWithValue("open-cluster-management.io/cluster-name", name))

		By("being available when it reports so")
		a.renewLease(ctx, time.Now())
		a.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
		Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionClockSynced", "True/ManagedClusterClockSynced"))
		a.report(ctx, metav1.ConditionFalse, "ManagedClusterKubeAPIServerUnavailable")
		Eventually(taintsOf).WithArguments(ctx, name).Should(Equal([]string{unavailable}))
	})

	It("is shown with the usual columns in kubectl", func(ctx SpecContext) {
		join(ctx, "columns")
		Expect(expect.Cells(ctx, hub.Config(), "/apis/cluster.open-cluster-management.io/v1/managedclusters/columns")).To(And(
			HaveKeyWithValue("Hub Accepted", "true"), HaveKeyWithValue("Managed Cluster URLs", "https://columns.example.com:6443"),
			HaveKeyWithValue("Joined", "True"), HaveKeyWithValue("Available", "True")))
	})

	It("sets labels and annotations when it registers", func(ctx SpecContext) {
		const name = "brings"
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		cluster.Labels = map[string]string{"env": "production"}
		cluster.Annotations = map[string]string{"agent.open-cluster-management.io/foo": "bar"}
		expect.Created(ctx, newAgent(ctx, name).asking(), cluster)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		Expect(clusterOf(ctx, name)).To(And(
			HaveField("Labels", HaveKeyWithValue("env", "production")), HaveField("Annotations", HaveKeyWithValue("agent.open-cluster-management.io/foo", "bar"))))
	})

	It("renews its certificate without an approval", func(ctx SpecContext) {
		a := join(ctx, "renews")
		old := a.certificate
		own := a.hub()
		request := a.ask(ctx, own)
		a.fetch(ctx, own, request)
		Expect(a.certificate).NotTo(Equal(old))
		Expect(decisionsOn(ctx, request)).To(Equal([]string{"Approved/AutoApprovedByHubCSRApprovingController"}))
		a.renewLease(ctx, time.Now())
	})

	It("loses its rights when it is denied, and can be accepted again", func(ctx SpecContext) {
		const name = "denied"
		a := join(ctx, name)
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		own := a.hub()
		Eventually(func() error {
			return own.Get(ctx, client.ObjectKey{Namespace: name, Name: "managed-cluster-lease"}, &coordinationv1.Lease{})
		}).
			Should(Satisfy(apierrors.IsForbidden))
		Eventually(func() error { return own.Create(ctx, a.request()) }).Should(Satisfy(apierrors.IsForbidden))
		Expect(own.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})).To(Succeed())
		role := &rbacv1.ClusterRole{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: rolePrefix + name}, role)).To(Succeed())
		Expect(role.Rules).To(HaveLen(1))

		accept(ctx, name)
		again := &agent{cluster: name, name: a.name, bootstrap: a.bootstrap, key: a.key, certificate: a.certificate}
		request := again.ask(ctx, again.asking())
		approve(ctx, request)
		again.fetch(ctx, again.asking(), request)
		again.connected(ctx)
	})

	It("gets another agent with another key after an administrator's approval", func(ctx SpecContext) {
		const name = "bootstraps-again"
		join(ctx, name)
		another := newAgent(ctx, name)
		another.name = "fghij"
		request := another.ask(ctx, another.asking())
		Eventually(eventsOn).WithArguments(ctx, request).Should(ContainElement("KeyConflict"))
		approve(ctx, request)
		another.fetch(ctx, another.asking(), request)
		another.connected(ctx)
		another.renewLease(ctx, time.Now())
		own := another.hub()
		renewed := another.ask(ctx, own)
		another.fetch(ctx, own, renewed)
		Expect(decisionsOn(ctx, renewed)).To(Equal([]string{"Approved/AutoApprovedByHubCSRApprovingController"}))
	})

	It("is admitted automatically, once, for trusted users", func(ctx SpecContext) {
		const name = "trusted"
		grantBootstrap(ctx, trusted)
		a := newAgentOf(name, trusted)
		request := a.ask(ctx, a.asking())
		By("waiting for its ManagedCluster")
		Consistently(decisionsOn).WithArguments(ctx, request).Should(BeEmpty())
		a.register(ctx)
		a.fetch(ctx, a.asking(), request)
		a.connected(ctx)
		cluster, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Annotations).To(And(HaveKey("open-cluster-management.io/automatically-accepted-on"), HaveKey(klusterlet.AgentKeyAnnotation)))

		By("leaving another agent's key to an administrator")
		thief := newAgentOf(name, trusted)
		stolen := thief.ask(ctx, thief.asking())
		Eventually(eventsOn).WithArguments(ctx, stolen).Should(ContainElement("KeyConflict"))
		Consistently(decisionsOn).WithArguments(ctx, stolen).Should(BeEmpty())

		By("keeping a denial")
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		refused := a.ask(ctx, a.asking())
		Consistently(decisionsOn).WithArguments(ctx, refused).Should(BeEmpty())
		Consistently(func() bool { cluster, _ := clusterOf(ctx, name); return cluster.Spec.HubAcceptsClient }).Should(BeFalse())
	})

	DescribeTable("joins, and stays connected, through a forward proxy", func(ctx SpecContext, name string, secured bool) {
		proxy := forwardproxy.Start(secured)
		DeferCleanup(proxy.Close)
		at, err := url.Parse(proxy.URL)
		Expect(err).NotTo(HaveOccurred())
		a := newAgent(ctx, name)
		a.bootstrap.Proxy = http.ProxyURL(at)
		a.bootstrap.CAData = append(bytes.Clone(a.bootstrap.CAData), proxy.CA()...)
		a.join(ctx)
		own := a.hub()
		a.fetch(ctx, own, a.ask(ctx, own))
		Expect(proxy.Asked()).To(And(Not(BeEmpty()), HaveEach("CONNECT "+strings.TrimPrefix(hub.URL, "https://"))))
	},
		Entry("by http", "proxied", false),
		Entry("by https, with its authority appended to the hub's", "proxied-tls", true),
	)

	It("has the hub's labels on all objects that were created for it", func(ctx SpecContext) {
		const name = "labelled"
		labels := map[string]string{"cost-centre": "1", "team": "platform"}
		options := usual()
		options.Labels = labels
		gateway.Stop()
		gateway = start(options)
		DeferCleanup(func() {
			gateway.Stop()
			gateway = start(usual())
		})
		join(ctx, name)
		for _, object := range []client.Object{
			build.Namespace(name), &rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + name)}, &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(rolePrefix + name)},
			&rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":registration")}, &rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":work")},
			&rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + "registration")}, &rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + "work")},
		} {
			Eventually(func() (map[string]string, error) {
				err := hubClient.Get(ctx, client.ObjectKeyFromObject(object), object)
				return object.GetLabels(), err
			}).Should(And(HaveKeyWithValue("cost-centre", "1"), HaveKeyWithValue("team", "platform")), "%T %s", object, object.GetName())
		}
	})

	It("gets its rights again when somebody removes them", func(ctx SpecContext) {
		const name = "restored"
		a := join(ctx, name)
		Expect(hubClient.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(rolePrefix + name)})).To(Succeed())
		Expect(hubClient.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":registration")})).To(Succeed())
		Expect(hubClient.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + "registration")})).To(Succeed())
		a.connected(ctx)
	})
})

var _ = Describe("A cluster's Lease", func() {
	It("makes the cluster Unknown when it expires, and Available again", func(ctx SpecContext) {
		const name = "silent"
		a := join(ctx, name)
		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(`{"spec":{"leaseDurationSeconds":1}}`))).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionAvailable", "Unknown/ManagedClusterLeaseUpdateStopped"))
		cluster, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(expect.Condition(cluster.Status.Conditions, "ManagedClusterConditionAvailable").Message).To(Equal("Registration agent stopped updating its lease."))
		Eventually(taintsOf).WithArguments(ctx, name).Should(Equal([]string{unreachable}))
		Eventually(eventsIn).WithArguments(ctx, name).Should(ContainElement("AvailableUnknown"))

		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(`{"spec":{"leaseDurationSeconds":60}}`))).To(Succeed())
		a.renewLease(ctx, time.Now())
		a.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
		Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())
	})

	It("reports a wrong clock, unless that is allowed", func(ctx SpecContext) {
		const name = "skewed"
		a := join(ctx, name)
		a.renewLease(ctx, time.Now().Add(time.Hour))
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionClockSynced", "False/ManagedClusterClockOutOfSync"))
		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)},
			expect.MergePatch(`{"metadata":{"annotations":{"registration.open-cluster-management.io/skip-clock-sync-check":"true"}}}`))).To(Succeed())
		a.renewLease(ctx, time.Now().Add(-time.Hour))
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionClockSynced", "True/ManagedClusterClockSynced"))
		Consistently(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionAvailable", "True/ManagedClusterAvailable"))
	})

	It("is re-created when somebody deletes it", func(ctx SpecContext) {
		const name = "leased"
		a := join(ctx, name)
		Expect(hubClient.Delete(ctx, &coordinationv1.Lease{ObjectMeta: build.In(name, "managed-cluster-lease")})).To(Succeed())
		a.renewLease(ctx, time.Now())
	})
})

var _ = Describe("A hub without a signer", func() {
	It("signs requests of klusterlets and of add-ons, and no others", func(ctx SpecContext) {
		const name = "signed"
		authority, key := newAuthority()
		signer, err := klusterlet.NewSigner(authority, key, realClock())
		Expect(err).NotTo(HaveOccurred())
		By("stopping the usual signer")
		Expect(hub.ControllerManager.Freeze()).To(Succeed())
		gateway.Stop()
		gateway = start(klusterlet.Options{Signer: signer})
		DeferCleanup(func() {
			Expect(hub.ControllerManager.Thaw()).To(Succeed())
			gateway.Stop()
			gateway = start(usual())
		})

		a := newAgent(ctx, name)
		a.register(ctx)
		request, other := a.ask(ctx, a.asking()), a.ask(ctx, a.asking(), func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.Organization = []string{"system:masters-of-nothing"}
		})
		approve(ctx, other)
		approve(ctx, request)
		a.fetch(ctx, a.asking(), request)
		block, _ := pem.Decode(a.certificate)
		got, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Subject.CommonName).To(Equal(a.commonName()))
		Expect(got.Issuer.CommonName).To(Equal("authority of klusterlets"))
		Consistently(func() []byte {
			csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, other, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return csr.Status.Certificate
		}).Should(BeEmpty())

		By("requesting for add-ons")
		accept(ctx, name)
		ofAddOn := func(cluster string) change {
			return func(request *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
				group := "system:open-cluster-management:cluster:" + cluster + ":addon:dns"
				request.Subject.CommonName, request.Subject.Organization = group+":agent:dns", []string{group}
				request.DNSNames = []string{"dns.addon.open-cluster-management.io"}
				csr.Labels[addonv1alpha1.AddOnNameLabel] = "dns"
			}
		}
		config, err := hub.ConfigFor(a.commonName(), "system:open-cluster-management:"+name)
		Expect(err).NotTo(HaveOccurred())
		certified := expect.Client(build.Unlimited(config), kinds())
		create := func(changes ...change) string {
			GinkgoHelper()
			csr := a.request(changes...)
			Eventually(func() error { return certified.Create(ctx, csr) }).Should(Succeed())
			return csr.Name
		}
		stolen, undecided, own := create(ofAddOn("victim")), create(ofAddOn(name)), create(ofAddOn(name))
		approve(ctx, stolen)
		approve(ctx, own)
		a.fetch(ctx, certified, own)
		Eventually(eventsOn).WithArguments(ctx, stolen).Should(ContainElement("InvalidAddOnRequest"))
		for _, request := range []string{stolen, undecided} {
			csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(csr.Status.Certificate).To(BeEmpty())
		}
		Expect(decisionsOn(ctx, undecided)).To(BeEmpty(), "the manager of the add-on approves")
	})
})

// grantBootstrap grants a user the rights of joining clusters.
func grantBootstrap(ctx context.Context, user string) {
	GinkgoHelper()
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{
		ObjectMeta: build.Named("bootstrap-of-" + user),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:bootstrap"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// decisionsOn are the decisions on a request, as type/reason.
func decisionsOn(ctx context.Context, request string) ([]string, error) {
	csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var decisions []string
	for _, condition := range csr.Status.Conditions {
		decisions = append(decisions, string(condition.Type)+"/"+condition.Reason)
	}
	return decisions, nil
}

// eventsOn are the reasons of events on a cluster-scoped object.
func eventsOn(ctx context.Context, name string) ([]string, error) {
	list, err := clientset.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + name})
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason)
	}
	return reasons, nil
}

func eventsIn(ctx context.Context, namespace string) ([]string, error) {
	list, err := clientset.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason)
	}
	return reasons, nil
}
