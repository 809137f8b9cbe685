// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

type change = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)

// of changes a request to one for a certificate of another cluster.
func of(cluster string) change {
	return func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		request.Subject.CommonName = "system:open-cluster-management:" + cluster + ":abcde"
		request.Subject.Organization = []string{"system:open-cluster-management:" + cluster}
	}
}

func labelled(cluster string) change {
	return func(_ *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
		csr.Labels[clusterv1.ClusterNameLabel] = cluster
	}
}

var _ = Describe("A hostile klusterlet", Ordered, func() {
	var thief *agent

	BeforeAll(func(ctx SpecContext) {
		join(ctx, "victim")
		join(ctx, "victim-1")
		thief = join(ctx, "vict")
	})

	It("cannot request with another cluster's label", func(ctx SpecContext) {
		for _, name := range []string{"victim", "victim-1", "vic", ""} {
			request := (&agent{cluster: thief.cluster, name: thief.name}).request(labelled(name))
			Expect(thief.hub().Create(ctx, request)).To(MatchError(ContainSubstring("of its own cluster")), "label %q", name)
		}
	})

	It("cannot request with another cluster's label as the agent of an add-on", func(ctx SpecContext) {
		const user = "system:open-cluster-management:cluster:vict:addon:dns:agent:abcde"
		expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{
			ObjectMeta: build.Named("agents-of-add-ons"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
		config, err := hub.ConfigFor(user)
		Expect(err).NotTo(HaveOccurred())
		addOn := expect.Client(config, kinds())
		for _, name := range []string{"victim", "vict-1", "vic"} {
			request := (&agent{cluster: thief.cluster, name: thief.name}).request(labelled(name))
			Expect(addOn.Create(ctx, request)).To(MatchError(ContainSubstring("of its own cluster")), "label %q", name)
		}
	})

	DescribeTable("gets no certificate", func(ctx SpecContext, said string, changes ...change) {
		own := &agent{cluster: thief.cluster, name: thief.name}
		request := own.ask(ctx, thief.hub(), changes...)
		if said != "" {
			Eventually(eventsOn).WithArguments(ctx, request).Should(ContainElement(said))
		}
		Consistently(decisionsOn).WithArguments(ctx, request).Should(BeEmpty())
	},
		Entry("of another cluster, with its own label", "InvalidKlusterletRequest", of("victim")),
		Entry("of a group with the same prefix", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.Organization = append(request.Subject.Organization, "system:open-cluster-management:victim")
		}),
		Entry("of an administrator", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.Organization = append(request.Subject.Organization, "fleetgate:admins")
		}),
		Entry("of another agent of its cluster", "KeyConflict", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.CommonName += "x"
		}),
		Entry("of an add-on of another cluster", "", func(request *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
			request.Subject.CommonName = "system:open-cluster-management:cluster:victim:addon:dns:agent:abcde"
			request.Subject.Organization = []string{"system:open-cluster-management:cluster:victim:addon:dns", "system:open-cluster-management:addon:dns", "system:authenticated"}
			csr.Labels[addonv1alpha1.AddOnNameLabel] = "dns"
		}),
		Entry("for a server", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.DNSNames = []string{"kubernetes.default.svc"}
		}),
	)

	DescribeTable("writes only an agent's fields of its ManagedCluster", func(ctx SpecContext, patch string, allowed bool) {
		own, cluster := thief.hub(), &clusterv1.ManagedCluster{}
		Expect(own.Get(ctx, client.ObjectKey{Name: thief.cluster}, cluster)).To(Succeed())
		Expect(json.Unmarshal([]byte(patch), cluster)).To(Succeed())
		err := own.Update(ctx, cluster)
		if allowed {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(Satisfy(apierrors.IsForbidden))
	},
		Entry("the address of its API server", `{"spec":{"managedClusterClientConfigs":[{"url":"https://moved.example.com"}]}}`, true),
		Entry("its own annotation", `{"metadata":{"annotations":{"agent.open-cluster-management.io/x":"y"}}}`, true),
		Entry("no foreign annotation", `{"metadata":{"annotations":{"open-cluster-management.io/automatically-accepted-on":"now"}}}`, false),
		Entry("no label", `{"metadata":{"labels":{"environment":"production"}}}`, false),
		Entry("not its set", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"production"}}}`, false),
		Entry("no taint", `{"spec":{"taints":[{"key":"x","effect":"NoSelect"}]}}`, false),
		Entry("not its lease duration", `{"spec":{"leaseDurationSeconds":3600}}`, false),
		Entry("not its finalizers", `{"metadata":{"finalizers":[]}}`, false),
		Entry("not its acceptance", `{"spec":{"hubAcceptsClient":false}}`, false),
	)

	DescribeTable("cannot", func(ctx SpecContext, do func(SpecContext, client.Client) error) {
		Expect(do(ctx, thief.hub())).To(Satisfy(apierrors.IsForbidden))
	},
		Entry("read another ManagedCluster", func(ctx SpecContext, own client.Client) error {
			return own.Get(ctx, client.ObjectKey{Name: "victim"}, &clusterv1.ManagedCluster{})
		}),
		Entry("list all ManagedClusters", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, &clusterv1.ManagedClusterList{})
		}),
		Entry("create one", func(ctx SpecContext, own client.Client) error {
			return own.Create(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("more")})
		}),
		Entry("delete its own", func(ctx SpecContext, own client.Client) error {
			return own.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("vict")})
		}),
		Entry("renew another cluster's Lease", func(ctx SpecContext, own client.Client) error {
			lease := &coordinationv1.Lease{}
			Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: "victim", Name: "managed-cluster-lease"}, lease)).To(Succeed())
			return own.Update(ctx, lease)
		}),
		Entry("renew the Lease of a cluster with the same prefix", func(ctx SpecContext, own client.Client) error {
			return own.Get(ctx, client.ObjectKey{Namespace: "victim-1", Name: "managed-cluster-lease"}, &coordinationv1.Lease{})
		}),
		Entry("list another cluster's ManifestWorks", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace("victim"))
		}),
		Entry("list another cluster's add-ons", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, addOns(), client.InNamespace("victim"))
		}),
		Entry("write the health of another cluster's add-on", func(ctx SpecContext, own client.Client) error {
			addOn := addOnOf("victim", "dns")
			return own.Status().Patch(ctx, addOn, expect.MergePatch(`{"status":{"conditions":[]}}`))
		}),
		Entry("create an add-on, not even its own", func(ctx SpecContext, own client.Client) error {
			addOn := &unstructured.Unstructured{}
			addOn.SetGroupVersionKind(addOns().GroupVersionKind())
			addOn.SetKind("ManagedClusterAddOn")
			addOn.SetNamespace("vict")
			addOn.SetName("own")
			return own.Create(ctx, addOn)
		}),
		Entry("create a ManifestWork, not even its own", func(ctx SpecContext, own client.Client) error {
			return own.Create(ctx, &workv1.ManifestWork{ObjectMeta: build.In("vict", "own")})
		}),
		Entry("read Secrets of its namespace", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, &corev1.SecretList{}, client.InNamespace("vict"))
		}),
		Entry("approve a request", func(ctx SpecContext, own client.Client) error {
			request := (&agent{cluster: "vict", name: "abcde"}).ask(ctx, own)
			csr, err := clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return own.SubResource("approval").Update(ctx, csr)
		}),
	)
})

var _ = Describe("A klusterlet that tries to keep its rights", func() {
	It("loses them with a denial, also if it removes its condition of acceptance", func(ctx SpecContext) {
		const name = "forgets"
		a := join(ctx, name)
		own := a.hub()
		stop := make(chan struct{})
		forgetting := make(chan struct{})
		go func() {
			defer close(forgetting)
			for {
				select {
				case <-stop:
					return
				default:
					// The hub restores it each time, until the right to write a status is revoked.
					_ = own.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(`{"status":{"conditions":[]}}`))
				}
			}
		}()
		deny(ctx, name)
		Eventually(func() error { return own.Create(ctx, a.request()) }).Should(Satisfy(apierrors.IsForbidden))
		Eventually(func() error {
			return own.Get(ctx, client.ObjectKey{Namespace: name, Name: "managed-cluster-lease"}, &coordinationv1.Lease{})
		}).Should(Satisfy(apierrors.IsForbidden))
		close(stop)
		<-forgetting
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
	})

	It("is reported when it requests with the name of a cluster that has an agent", func(ctx SpecContext) {
		const name = "taken-name"
		join(ctx, name)
		thief := newAgent(ctx, name)
		stolen := thief.ask(ctx, thief.asking())
		Eventually(eventsOn).WithArguments(ctx, stolen).Should(ContainElement("KeyConflict"))
		Eventually(eventsOn).WithArguments(ctx, name).Should(ContainElement("KeyConflict"), "on the ManagedCluster")
		Consistently(decisionsOn).WithArguments(ctx, stolen).Should(BeEmpty())
	})
})

var _ = Describe("A hostile agent of a member of ours", Ordered, func() {
	const name = "member-thief"
	var own client.Client

	BeforeAll(func(ctx SpecContext) {
		newMember(ctx, name, true)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		own = expect.Client(build.Unlimited(accountOf(name)), kinds())
		Eventually(func() error { return own.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}) }).Should(Succeed())
	})

	DescribeTable("cannot write fields of its ManagedCluster that affect scheduling", func(ctx SpecContext, patch string) {
		Eventually(func(g Gomega) {
			cluster := &clusterv1.ManagedCluster{}
			g.Expect(own.Get(ctx, client.ObjectKey{Name: name}, cluster)).To(Succeed())
			g.Expect(json.Unmarshal([]byte(patch), cluster)).To(Succeed())
			g.Expect(own.Update(ctx, cluster)).To(Satisfy(apierrors.IsForbidden))
		}).Should(Succeed())
	},
		Entry("a label", `{"metadata":{"labels":{"environment":"production"}}}`),
		Entry("its set", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"production"}}}`),
		Entry("a taint", `{"spec":{"taints":[{"key":"x","effect":"NoSelect"}]}}`),
		Entry("its acceptance", `{"metadata":{"annotations":{"fleetgate.io/member-accepted":"false"}}}`),
	)

	DescribeTable("cannot write status fields of its ManagedCluster that the hub writes", func(ctx SpecContext, patch string) {
		refused := MatchError(ContainSubstring("its agent writes the conditions of managedNamespaces"))
		Eventually(func() error {
			return own.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(patch))
		}).Should(refused)
	},
		Entry("its conditions", `{"status":{"conditions":[]}}`),
		Entry("its capacity", `{"status":{"capacity":{"cpu":"1000"}}}`),
		Entry("its allocatable resources", `{"status":{"allocatable":{"cpu":"1000"}}}`),
		Entry("its claims", `{"status":{"clusterClaims":[{"name":"region","value":"elsewhere"}]}}`),
		Entry("its version", `{"status":{"version":null}}`),
		Entry("a namespace that no set wants", `{"status":{"managedNamespaces":[{"clusterSet":"a","name":"b"}]}}`),
	)

	It("cannot request a certificate with another cluster's label, or use up another's ten requests", func(ctx SpecContext) {
		Expect(own.Create(ctx, (&agent{cluster: "victim", name: "abcde"}).request())).To(MatchError(ContainSubstring("of its own cluster")))
	})
})

var _ = Describe("A compromised agent of a member of ours", func() {
	It("keeps its certificate for the time that the hub bounds, and cannot renew it without its account", func(ctx SpecContext) {
		const name = "compromised"
		member := newMember(ctx, name, true)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		a := &agent{cluster: name, name: clusterv1.AgentName, bootstrap: accountOf(name)}
		lasting := func(seconds *int32) change {
			return func(_ *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
				csr.Spec.ExpirationSeconds = seconds
			}
		}
		var request string
		ask := func(as client.Client, changes ...change) string {
			GinkgoHelper()
			Eventually(func() error {
				csr := a.request(changes...)
				err := as.Create(ctx, csr)
				request = csr.Name
				return err
			}).Should(Succeed(), "the right comes with the acceptance")
			return request
		}
		var pending []string
		refused := func(request string) {
			GinkgoHelper()
			Eventually(eventsOn).WithArguments(ctx, request).Should(ContainElement("RenewalForbidden"))
			pending = append(pending, request)
		}

		By("requesting one for longer, with its account")
		refused(ask(a.asking(), lasting(ptr.To(int32((365 * 24 * time.Hour).Seconds())))))
		refused(ask(a.asking(), lasting(nil)))

		By("requesting one as its agent does")
		a.fetch(ctx, a.asking(), ask(a.asking()))
		block, _ := pem.Decode(a.certificate)
		Expect(block).NotTo(BeNil())
		leaf, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(leaf.NotAfter).To(BeTemporally("<=", time.Now().Add(clusterv1.AgentCertificateLife)))
		stolen := a.hub()

		By("requesting another one with it")
		refused(ask(stolen))
		for _, request := range pending {
			Expect(decisionsOn(ctx, request)).To(BeEmpty())
		}

		By("using it after the member was deleted")
		expect.Removed(ctx, hubClient, member)
		Eventually(func() error { return stolen.Create(ctx, a.request()) }).Should(Satisfy(apierrors.IsForbidden))
		Expect(stolen.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})).To(Satisfy(apierrors.IsForbidden))
	})
})

// accountOf is a configuration for the agent of a member of ours.
func accountOf(member string) *rest.Config {
	GinkgoHelper()
	config, err := hub.ConfigFor("system:serviceaccount:fleet-member-"+member+":agent", "system:serviceaccounts", "system:serviceaccounts:fleet-member-"+member)
	Expect(err).NotTo(HaveOccurred())
	return config
}

var _ = Describe("A user who can request to join", func() {
	DescribeTable("cannot get the rights of all clusters with a special name", func(ctx SpecContext, name string) {
		shared := &rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + name)}
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(shared), shared)).To(Succeed())
		before := shared.ResourceVersion
		newAgent(ctx, name).register(ctx)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(shared), shared)).To(Succeed())
		Expect(shared.ResourceVersion).To(Equal(before), "the role that all clusters share")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(shared), &rbacv1.ClusterRoleBinding{})).To(Satisfy(apierrors.IsNotFound))
	}, Entry("registration", "registration"), Entry("work", "work"))

	It("can request only a certificate of its cluster, whatever label it sets", func(ctx SpecContext) {
		const name = "asks-for-more"
		a := newAgent(ctx, name)
		a.register(ctx)
		for said, changes := range map[string][]change{
			"another's": {of("victim")},
			"an admin's": {func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
				request.Subject.Organization = []string{"fleetgate:admins"}
			}},
			"the same": nil,
		} {
			request := a.ask(ctx, a.asking(), changes...)
			Consistently(decisionsOn).WithArguments(ctx, request).WithTimeout(500*time.Millisecond).Should(BeEmpty(), said)
		}
	})

	It("cannot get existing objects until an administrator allows it", func(ctx SpecContext) {
		const name = "argocd"
		expect.Created(ctx, hubClient, build.Namespace(name))
		newAgent(ctx, name).register(ctx)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		expectNoRights(ctx, name)

		Expect(hubClient.Patch(ctx, build.Namespace(name), expect.MergePatch(`{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"argocd"}}}`))).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
	})

	DescribeTable("cannot get a namespace of the hub", func(ctx SpecContext, name string) {
		newAgent(ctx, name).register(ctx)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		expectNoRights(ctx, name)
		By("being released")
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
	},
		Entry("of Kubernetes", "kube-system"), Entry("of users", "default"), Entry("of ours", "fleet-system"),
		Entry("of a member", "fleet-member-edge"), Entry("of Open Cluster Management", "open-cluster-management-hub"),
	)

	It("cannot accept, change or read the ManagedCluster", func(ctx SpecContext) {
		a := newAgent(ctx, "asks-only")
		a.register(ctx)
		asking := a.asking()
		Expect(asking.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("asks-only")}, expect.MergePatch(`{"spec":{"hubAcceptsClient":true}}`))).To(Satisfy(apierrors.IsForbidden))
		Expect(asking.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
		Expect(asking.List(ctx, &corev1.ConfigMapList{})).To(Satisfy(apierrors.IsForbidden))
		Expect(asking.Get(ctx, client.ObjectKey{Namespace: "kube-public", Name: "cluster-info"}, &corev1.ConfigMap{})).To(Succeed())
		Expect(asking.Create(ctx, &coordinationv1.Lease{ObjectMeta: build.In("asks-only", "managed-cluster-lease")})).To(Satisfy(apierrors.IsForbidden))
	})
})

// expectNoRights checks that the objects of an accepted cluster do not exist.
func expectNoRights(ctx SpecContext, name string) {
	GinkgoHelper()
	Consistently(func() (int, error) {
		bindings, err := clientset.RbacV1().RoleBindings(name).List(ctx, metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel})
		if err != nil {
			return 0, err
		}
		roles, err := clientset.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel + "=" + name})
		return len(bindings.Items) + len(roles.Items), err
	}).WithTimeout(300 * time.Millisecond).Should(BeZero())
}

func addOns() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("addon.open-cluster-management.io/v1alpha1")
	list.SetKind("ManagedClusterAddOnList")
	return list
}
