// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/hubcertificate"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// newMember creates a joined member, like the fleet's controllers and its agent. It is approved or
// waits for approval.
func newMember(ctx context.Context, name string, approved bool) *clusterv1beta1.MemberCluster {
	GinkgoHelper()
	member := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(name)}
	member.Labels = map[string]string{"env": "prod"}
	member.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "fleet-member-" + name, Name: "agent"}
	if !approved {
		member.Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}
	}
	expect.Created(ctx, hubClient, member)
	report(ctx, member, metav1.ConditionTrue)
	return member
}

func report(ctx context.Context, member *clusterv1beta1.MemberCluster, joined metav1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(member), member)).To(Succeed())
		now := metav1.Now()
		condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
			return metav1.Condition{Type: kind, Status: status, Reason: "Said", LastTransitionTime: now}
		}
		value := func(text string) clusterv1beta1.PropertyValue {
			return clusterv1beta1.PropertyValue{Value: text, ObservationTime: now}
		}
		member.Status = clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionJoined, joined)},
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.PropertyKubernetesVersion: value("v1.36.3"), clusterv1beta1.PropertyEntrypoint: value("https://member:6443"), "region": value("eu"),
			},
			ResourceUsage: clusterv1beta1.ResourceUsage{
				Capacity:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
				ObservationTime: now,
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
				Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionJoined, metav1.ConditionTrue), condition(clusterv1beta1.ConditionHealthy, metav1.ConditionTrue)},
			}},
		}
		g.Expect(hubClient.Status().Update(ctx, member)).To(Succeed())
	}).Should(Succeed())
}

func approved(ctx context.Context, name string) (bool, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := hubClient.Get(ctx, client.ObjectKey{Name: name}, member)
	return member.IsApproved(), err
}

func acceptedBy(ctx context.Context, name string) (bool, error) {
	cluster, err := clusterOf(ctx, name)
	return cluster.Spec.HubAcceptsClient, err
}

// watchCluster returns a function for the writes of a ManagedCluster since then.
func watchCluster(ctx context.Context, name string) func() []watch.EventType {
	GinkgoHelper()
	watching, err := client.NewWithWatch(hub.Config(), client.Options{Scheme: kinds()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watching.Watch(ctx, &clusterv1.ManagedClusterList{}, client.MatchingFields{"metadata.name": name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	var seen []watch.EventType
	return func() []watch.EventType {
		for {
			select {
			case event := <-events.ResultChan():
				seen = append(seen, event.Type)
			default:
				return seen
			}
		}
	}
}

var _ = Describe("A member of our own agent", func() {
	It("is shown as a ManagedCluster, and costs no write without a change", func(ctx SpecContext) {
		const name = "shown"
		written := watchCluster(ctx, name)
		member := newMember(ctx, name, true)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionAvailable", "True/ManagedClusterAvailable"))
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())
		cluster, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Labels).To(HaveKeyWithValue("env", "prod"))
		Expect(cluster.Spec.ManagedClusterClientConfigs).To(HaveExactElements(HaveField("URL", "https://member:6443")))
		Expect(cluster.Status.Version.Kubernetes).To(Equal("v1.36.3"))
		Expect(cluster.Status.ClusterClaims).To(HaveExactElements(clusterv1.ManagedClusterClaim{Name: "region", Value: "eu"}))
		Expect(cluster.Status.Capacity).To(HaveKeyWithValue(corev1.ResourceCPU, resource.MustParse("4")))

		By("having been created and reported once")
		once := Equal([]watch.EventType{watch.Added, watch.Modified})
		Eventually(written).Should(once)
		Consistently(written).Should(once)

		By("having rights only for its account")
		binding := &rbacv1.RoleBinding{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: name, Name: rolePrefix + name + ":work"}, binding)).To(Succeed())
		Expect(binding.Subjects).To(HaveExactElements(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "fleet-member-" + name, Name: "agent"}))
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: name, Name: "managed-cluster-lease"}, &coordinationv1.Lease{})).To(Satisfy(apierrors.IsNotFound))

		By("receiving heartbeats")
		before := cluster.ResourceVersion
		for range 3 {
			report(ctx, member, metav1.ConditionTrue)
		}
		Consistently(func() (string, error) {
			cluster, err := clusterOf(ctx, name)
			return cluster.ResourceVersion, err
		}).Should(Equal(before))

		By("changing a claim, and a user of the hub changing it for the member")
		claims := func() ([]clusterv1.ManagedClusterClaim, error) {
			cluster, err := clusterOf(ctx, name)
			return cluster.Status.ClusterClaims, err
		}
		moved := clusterv1.ManagedClusterClaim{Name: "region", Value: "us"}
		Expect(hubClient.Status().Patch(ctx, member, expect.MergePatch(`{"status":{"properties":{"region":{"value":"us","observationTime":"2026-01-01T00:00:00Z"}}}}`))).To(Succeed())
		Eventually(claims).Should(HaveExactElements(moved))
		Expect(hubClient.Status().Patch(ctx, cluster, expect.MergePatch(`{"status":{"clusterClaims":[{"name":"region","value":"elsewhere"}]}}`))).To(Succeed())
		Eventually(claims).Should(HaveExactElements(moved))

		By("being tainted temporarily")
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"spec":{"taints":[{"key":"maintenance","effect":"NoSchedule"}]}}`))).To(Succeed())
		Eventually(taintsOf).WithArguments(ctx, name).Should(Equal([]string{"maintenance:NoSelectIfNew"}))
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"spec":{"taints":null}}`))).To(Succeed())
		Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())

		By("stopping its heartbeat")
		report(ctx, member, metav1.ConditionUnknown)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionAvailable", "Unknown/ManagedClusterLeaseUpdateStopped"))
		Eventually(taintsOf).WithArguments(ctx, name).Should(Equal([]string{unreachable}))

		By("leaving")
		expect.Removed(ctx, hubClient, member)
		Eventually(expect.Gone(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})).Should(BeTrue())
	})

	It("leaves after its ManifestWorks were cleaned up, and without them once its agent is declared gone", func(ctx SpecContext) {
		const name = "works-first"
		member := newMember(ctx, name, true)
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"metadata":{"finalizers":["example.com/membership"]}}`))).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		Eventually(func() error {
			return hubClient.Get(ctx, client.ObjectKey{Namespace: name, Name: rolePrefix + name + ":work"}, &rbacv1.RoleBinding{})
		}).Should(Succeed())
		ordered(ctx, name, "first", "")
		ordered(ctx, name, "second", "10")
		Expect(hubClient.Delete(ctx, member)).To(Succeed())
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"first"}))
		Expect(membermirror.Pending(ctx, hubClient, name)).To(ContainSubstring(name), "its agent is not asked to leave yet")

		By("the agent cleaning up, with its remaining rights")
		own := expect.Client(build.Unlimited(accountOf(name)), kinds())
		Expect(own.Patch(ctx, &workv1.ManifestWork{ObjectMeta: build.In(name, "first")}, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"second"}))

		By("declaring the agent gone, and deleting its MemberCluster")
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(expect.Gone(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})).Should(BeTrue())
		Expect(going(ctx, name)).To(BeEmpty())
		Expect(membermirror.Pending(ctx, hubClient, name)).To(BeEmpty())
	})

	It("has a certificate for add-on managers, with one name and no right in its namespace", func(ctx SpecContext) {
		const name = "certified"
		newMember(ctx, name, true)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
		a := &agent{cluster: name, name: clusterv1.AgentName, bootstrap: accountOf(name)}
		var request string
		Eventually(func() error {
			csr := a.request()
			err := a.asking().Create(ctx, csr)
			request = csr.Name
			return err
		}).Should(Succeed())
		a.fetch(ctx, a.asking(), request)
		own := a.hub()
		Eventually(func() error { return own.Create(ctx, a.request()) }).Should(Succeed(), "add-ons use it for requests")
		Expect(own.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace(name))).To(Satisfy(apierrors.IsForbidden))

		By("getting none for another name")
		other := &agent{cluster: name, name: "abcde", bootstrap: accountOf(name)}
		request = other.ask(ctx, other.asking())
		Eventually(eventsOn).WithArguments(ctx, request).Should(ContainElement("KeyConflict"))
		Consistently(decisionsOn).WithArguments(ctx, request).Should(BeEmpty())

		By("getting none after a denial")
		deny(ctx, name)
		Eventually(func() error { return a.asking().Create(ctx, a.request()) }).Should(Satisfy(apierrors.IsForbidden))
	})

	It("maintains that certificate after its acceptance and restarts, one for each hub", func(ctx SpecContext) {
		const name = "keeps"
		namespace := expect.FreshNamespace(ctx, hubClient)
		key := client.ObjectKey{Namespace: namespace, Name: hubcertificate.Secret}
		account, err := kubernetes.NewForConfig(build.Unlimited(accountOf(name)))
		Expect(err).NotTo(HaveOccurred())
		keep := func(origin string) (stop func()) {
			keeper := &hubcertificate.Keeper{Member: clientset, Namespace: namespace, Hub: account, Origin: origin, Cluster: name}
			keeping, end := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- keeper.Run(keeping) }()
			return sync.OnceFunc(func() {
				end()
				Expect(<-ended).To(Succeed())
			})
		}
		kept := func(g Gomega) *corev1.Secret {
			secret := &corev1.Secret{}
			g.Expect(hubClient.Get(ctx, key, secret)).To(Succeed())
			return secret
		}
		named := func(g Gomega) string {
			block, _ := pem.Decode(kept(g).Data[corev1.TLSCertKey])
			g.Expect(block).NotTo(BeNil())
			leaf, err := x509.ParseCertificate(block.Bytes)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(leaf.NotAfter).To(BeTemporally("<", time.Now().Add(31*24*time.Hour)))
			return leaf.Subject.CommonName
		}
		stop := keep("https://hub")
		DeferCleanup(func() { stop() })
		Consistently(func() error { return hubClient.Get(ctx, key, &corev1.Secret{}) }).Should(Satisfy(apierrors.IsNotFound))
		newMember(ctx, name, true)
		Eventually(named).Should(Equal("system:open-cluster-management:keeps:fleetgate"))
		first := kept(Default)
		config := rest.AnonymousClientConfig(hub.Config())
		config.CertData, config.KeyData = first.Data[corev1.TLSCertKey], first.Data[corev1.TLSPrivateKeyKey]
		a := &agent{cluster: name, name: clusterv1.AgentName}
		Expect(expect.Client(build.Unlimited(config), kinds()).Create(ctx, a.request())).To(Succeed())

		By("restarting")
		stop()
		stop = keep("https://hub")
		Consistently(func(g Gomega) string { return kept(g).ResourceVersion }).Should(Equal(first.ResourceVersion))

		By("restarting with damaged state")
		stop()
		Expect(hubClient.Patch(ctx, first, expect.MergePatch(`{"stringData":{"tls.crt":"none"}}`))).To(Succeed())
		stop = keep("https://hub")
		Eventually(named).Should(Equal("system:open-cluster-management:keeps:fleetgate"))

		By("belonging to another hub")
		stop()
		before := kept(Default)
		stop = keep("https://other")
		Eventually(func(g Gomega) map[string][]byte { return kept(g).Data }).Should(And(
			HaveKeyWithValue("hub", []byte("https://other")), Not(HaveKeyWithValue(corev1.TLSCertKey, before.Data[corev1.TLSCertKey]))))

		By("leaving")
		stop()
		Expect(hubcertificate.Forget(ctx, clientset, namespace)).To(Succeed())
		Expect(hubClient.Get(ctx, key, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound))
		Expect(hubcertificate.Forget(ctx, clientset, namespace)).To(Succeed())
	})

	It("is accepted by one decision, on either of the two objects", func(ctx SpecContext) {
		const name = "decided"
		member := newMember(ctx, name, false)
		Eventually(acceptedBy).WithArguments(ctx, name).Should(BeFalse())
		accept(ctx, name)
		Eventually(approved).WithArguments(ctx, name).Should(BeTrue())
		deny(ctx, name)
		Eventually(approved).WithArguments(ctx, name).Should(BeFalse())
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"spec":{"taints":null}}`))).To(Succeed())
		Eventually(acceptedBy).WithArguments(ctx, name).Should(BeTrue())
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"spec":{"taints":[{"key":"fleetgate.io/unapproved","effect":"NoSchedule"}]}}`))).To(Succeed())
		Eventually(acceptedBy).WithArguments(ctx, name).Should(BeFalse())
	})

	It("cannot be accepted by users who are trusted with klusterlets", func(ctx SpecContext) {
		const name = "waits"
		newMember(ctx, name, false)
		Eventually(acceptedBy).WithArguments(ctx, name).Should(BeFalse())
		grantBootstrap(ctx, trusted)
		thief := newAgentOf(name, trusted)
		var request string
		Eventually(func() error {
			csr := thief.request()
			err := thief.asking().Create(ctx, csr)
			request = csr.Name
			return err
		}).Should(Succeed())
		Eventually(eventsOn).WithArguments(ctx, request).Should(ContainElement("KeyConflict"))
		Consistently(decisionsOn).WithArguments(ctx, request).Should(BeEmpty())
		Expect(approved(ctx, name)).To(BeFalse())
	})

	It("is not shown by a foreign ManagedCluster", func(ctx SpecContext) {
		const name = "another"
		newAgent(ctx, name).register(ctx)
		member := newMember(ctx, name, true)
		Consistently(acceptedBy).WithArguments(ctx, name).Should(BeFalse())
		expect.Removed(ctx, hubClient, member)
		Consistently(func() error { _, err := clusterOf(ctx, name); return err }).Should(Succeed())
	})
})
