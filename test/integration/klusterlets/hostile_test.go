// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"crypto/x509"
	"encoding/json"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/build"
	"fleetgate.io/fleetgate/test/expect"
)

type change = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)

// of has a request be for a certificate of another cluster.
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

	It("asks under no other cluster's label", func(ctx SpecContext) {
		for _, name := range []string{"victim", "victim-1", "vic", ""} {
			request := (&agent{cluster: thief.cluster, name: thief.name}).request(labelled(name))
			Expect(thief.hub().Create(ctx, request)).To(MatchError(ContainSubstring("of its own cluster")), "label %q", name)
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
		Entry("of another cluster, under its own label", "InvalidKlusterletRequest", of("victim")),
		Entry("of a group whose name begins like its own", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.Organization = append(request.Subject.Organization, "system:open-cluster-management:victim")
		}),
		Entry("of an administrator", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.Organization = append(request.Subject.Organization, "fleetgate:admins")
		}),
		Entry("of another agent of its cluster", "KeyConflict", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.Subject.CommonName += "x"
		}),
		Entry("as a server", "InvalidKlusterletRequest", func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			request.DNSNames = []string{"kubernetes.default.svc"}
		}),
	)

	DescribeTable("writes nothing of its ManagedCluster but what is an agent's", func(ctx SpecContext, patch string, allowed bool) {
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
		Entry("where its API server is", `{"spec":{"managedClusterClientConfigs":[{"url":"https://moved.example.com"}]}}`, true),
		Entry("an annotation of its own", `{"metadata":{"annotations":{"agent.open-cluster-management.io/x":"y"}}}`, true),
		Entry("not an annotation of others", `{"metadata":{"annotations":{"open-cluster-management.io/automatically-accepted-on":"now"}}}`, false),
		Entry("not a label", `{"metadata":{"labels":{"environment":"production"}}}`, false),
		Entry("not its set", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"production"}}}`, false),
		Entry("not a taint", `{"spec":{"taints":[{"key":"x","effect":"NoSelect"}]}}`, false),
		Entry("not how long it may be silent", `{"spec":{"leaseDurationSeconds":3600}}`, false),
		Entry("not when it goes", `{"metadata":{"finalizers":[]}}`, false),
		Entry("not that it is denied", `{"spec":{"hubAcceptsClient":false}}`, false),
	)

	DescribeTable("has no way to", func(ctx SpecContext, do func(SpecContext, client.Client) error) {
		Expect(do(ctx, thief.hub())).To(Satisfy(apierrors.IsForbidden))
	},
		Entry("read another ManagedCluster", func(ctx SpecContext, own client.Client) error {
			return own.Get(ctx, client.ObjectKey{Name: "victim"}, &clusterv1.ManagedCluster{})
		}),
		Entry("list all ManagedClusters", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, &clusterv1.ManagedClusterList{})
		}),
		Entry("make one", func(ctx SpecContext, own client.Client) error {
			return own.Create(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("more")})
		}),
		Entry("delete its own", func(ctx SpecContext, own client.Client) error {
			return own.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("vict")})
		}),
		Entry("renew another's Lease", func(ctx SpecContext, own client.Client) error {
			lease := &coordinationv1.Lease{}
			Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: "victim", Name: "managed-cluster-lease"}, lease)).To(Succeed())
			return own.Update(ctx, lease)
		}),
		Entry("renew that of one whose name begins like its own", func(ctx SpecContext, own client.Client) error {
			return own.Get(ctx, client.ObjectKey{Namespace: "victim-1", Name: "managed-cluster-lease"}, &coordinationv1.Lease{})
		}),
		Entry("list another's ManifestWorks", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace("victim"))
		}),
		Entry("list another's add-ons", func(ctx SpecContext, own client.Client) error {
			return own.List(ctx, addOns(), client.InNamespace("victim"))
		}),
		Entry("make an add-on, also of its own", func(ctx SpecContext, own client.Client) error {
			addOn := &unstructured.Unstructured{}
			addOn.SetGroupVersionKind(addOns().GroupVersionKind())
			addOn.SetKind("ManagedClusterAddOn")
			addOn.SetNamespace("vict")
			addOn.SetName("own")
			return own.Create(ctx, addOn)
		}),
		Entry("make a ManifestWork, also of its own", func(ctx SpecContext, own client.Client) error {
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

var _ = Describe("A klusterlet that is not to lose its rights", func() {
	It("loses them with a denial also when it took away that it was accepted", func(ctx SpecContext) {
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
					// The hub says it anew each time, until the right to write a status is gone.
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

	It("is told of when it asks under the name of a cluster that has an agent", func(ctx SpecContext) {
		const name = "taken-name"
		join(ctx, name)
		thief := newAgent(ctx, name)
		stolen := thief.ask(ctx, thief.asking())
		Eventually(eventsOn).WithArguments(ctx, stolen).Should(ContainElement("KeyConflict"))
		Eventually(eventsOn).WithArguments(ctx, name).Should(ContainElement("KeyConflict"), "on the ManagedCluster, where people look")
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

	DescribeTable("writes nothing of its ManagedCluster that decides what comes to it", func(ctx SpecContext, patch string) {
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
		Entry("what was decided of it", `{"metadata":{"annotations":{"fleetgate.io/member-accepted":"false"}}}`),
	)

	DescribeTable("says nothing of its ManagedCluster that is the hub's to say", func(ctx SpecContext, patch string) {
		refused := MatchError(ContainSubstring("its agent writes the conditions of managedNamespaces"))
		Eventually(func() error {
			return own.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(patch))
		}).Should(refused)
	},
		Entry("that it was let in", `{"status":{"conditions":[]}}`),
		Entry("how large it is", `{"status":{"capacity":{"cpu":"1000"}}}`),
		Entry("what can be had on it", `{"status":{"allocatable":{"cpu":"1000"}}}`),
		Entry("what it claims to be", `{"status":{"clusterClaims":[{"name":"region","value":"elsewhere"}]}}`),
		Entry("its version", `{"status":{"version":null}}`),
		Entry("a namespace that no set wants", `{"status":{"managedNamespaces":[{"clusterSet":"a","name":"b"}]}}`),
	)

	It("asks for no certificate under another cluster's label, and fills nobody's ten requests", func(ctx SpecContext) {
		Expect(own.Create(ctx, (&agent{cluster: "victim", name: "abcde"}).request())).To(MatchError(ContainSubstring("of its own cluster")))
	})
})

// accountOf is the agent of a member of ours, as the hub knows it.
func accountOf(member string) *rest.Config {
	GinkgoHelper()
	config, err := hub.ConfigFor("system:serviceaccount:fleet-member-"+member+":agent", "system:serviceaccounts", "system:serviceaccounts:fleet-member-"+member)
	Expect(err).NotTo(HaveOccurred())
	return config
}

var _ = Describe("Who may ask to join", func() {
	DescribeTable("cannot have the rights of all clusters by the name of one", func(ctx SpecContext, name string) {
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

	It("asks for a certificate of its cluster only, whatever it labels", func(ctx SpecContext) {
		const name = "asks-for-more"
		a := newAgent(ctx, name)
		a.register(ctx)
		for said, changes := range map[string][]change{
			"another's": {of("victim")},
			"an admin's": {func(request *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
				request.Subject.Organization = []string{"fleetgate:admins"}
			}},
			"one of the same": nil,
		} {
			request := a.ask(ctx, a.asking(), changes...)
			Consistently(decisionsOn).WithArguments(ctx, request).WithTimeout(500*time.Millisecond).Should(BeEmpty(), said)
		}
	})

	It("cannot have what was there before, until somebody says so", func(ctx SpecContext) {
		const name = "argocd"
		expect.Created(ctx, hubClient, build.Namespace(name))
		newAgent(ctx, name).register(ctx)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		expectNoRights(ctx, name)

		Expect(hubClient.Patch(ctx, build.Namespace(name), expect.MergePatch(`{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"argocd"}}}`))).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
	})

	DescribeTable("cannot have a namespace of the hub", func(ctx SpecContext, name string) {
		newAgent(ctx, name).register(ctx)
		accept(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		expectNoRights(ctx, name)
		By("being let go")
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
	},
		Entry("of Kubernetes", "kube-system"), Entry("of users", "default"), Entry("of ours", "fleet-system"),
		Entry("of a member", "fleet-member-edge"), Entry("of Open Cluster Management", "open-cluster-management-hub"),
	)

	It("cannot accept, change or read what comes of it", func(ctx SpecContext) {
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

// expectNoRights looks for what a cluster gets that is accepted.
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
