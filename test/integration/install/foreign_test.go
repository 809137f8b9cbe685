// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

var _ = Describe("Installation beside another product", func() {
	It("changes none of its objects and names each object, its owner and the remedy", func(ctx SpecContext) {
		byHelm, byLabel, byHand := definition("helms", "cluster.kubernetes-fleet.io"), definition("labels", "fleet.cattle.io"), definition("hands", "fleet.cattle.io")
		byHelm.Labels = map[string]string{install.LabelManagedBy: "Helm"}
		byHelm.Annotations = map[string]string{"meta.helm.sh/release-name": "hub-agent", "meta.helm.sh/release-namespace": "fleet-system"}
		byLabel.Labels = map[string]string{install.LabelManagedBy: "clusteradm"}
		wanted := []*apiextensionsv1.CustomResourceDefinition{definition("helms", "cluster.kubernetes-fleet.io"), definition("labels", "fleet.cattle.io"), definition("hands", "fleet.cattle.io")}
		before := map[string]string{}
		for _, theirs := range []*apiextensionsv1.CustomResourceDefinition{byHelm, byLabel, byHand} {
			create(ctx, theirs)
			before[theirs.Name] = eventuallyEstablished(ctx, theirs)
		}

		missing := definition("missings", "fleet.cattle.io")
		err := installer(append(wanted, missing)...).InstallDefinitions(ctx)
		var foreign *install.ForeignObjectError
		Expect(errors.As(err, &foreign)).To(BeTrue())
		Expect(err).To(MatchError(And(
			ContainSubstring("CustomResourceDefinition helms.cluster.kubernetes-fleet.io is on this hub already and belongs to Helm release fleet-system/hub-agent"),
			ContainSubstring("CustomResourceDefinition labels.fleet.cattle.io is on this hub already and belongs to clusteradm"),
			ContainSubstring(`CustomResourceDefinition hands.fleet.cattle.io is on this hub already and belongs to field manager "kubectl-create"`),
			ContainSubstring("remove that product, or stop it and start the gateway with --adopt"),
		)))
		Expect(resourceVersions(ctx, wanted)).To(Equal(before))
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(missing), missing.DeepCopy())).NotTo(Succeed(), "part of an API beside the other product's")
	})

	It("adopts all objects once the owner's Lease is stale, and none before", func(ctx SpecContext) {
		theirs := definition("adopteds", "fleet.cattle.io")
		theirs.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")},
			},
		}
		theirs.Annotations = map[string]string{"meta.helm.sh/release-name": "fleet", "meta.helm.sh/release-namespace": "cattle-fleet-system"}
		ours := definition("adopteds", "fleet.cattle.io")
		ours.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		lease := holdLease(ctx, "cattle-fleet-system", "fleet-controller-lock")
		owner := &corev1.Namespace{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: "default"}, owner)).To(Succeed())
		theirs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID}}
		create(ctx, theirs)
		before := eventuallyEstablished(ctx, theirs)

		adopting := installer(ours)
		adopting.Adopt = true
		Expect(adopting.InstallDefinitions(ctx)).To(MatchError(And(
			ContainSubstring("adopteds.fleet.cattle.io belongs to Helm release cattle-fleet-system/fleet, which is running (Lease cattle-fleet-system/fleet-controller-lock)"),
			ContainSubstring("stop it"),
		)))
		Expect(get(ctx, ours).ResourceVersion).To(Equal(before))

		By("letting the Lease expire")
		stale := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds+1) * time.Second)
		adopting.Clock = testingclock.NewFakePassiveClock(stale)
		Expect(adopting.InstallDefinitions(ctx)).To(Succeed())
		adopted := get(ctx, ours)
		Expect(adopted.UID).To(Equal(theirs.UID), "otherwise its objects are deleted")
		Expect(adopted.Labels).To(HaveKeyWithValue(install.LabelManagedBy, install.ManagedBy))
		Expect(adopted.Annotations).NotTo(HaveKey("meta.helm.sh/release-name"))
		Expect(adopted.OwnerReferences).To(BeEmpty(), "otherwise it is deleted with the other product")
		Expect(adopted.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
		Expect(adopted.Spec.Conversion.Webhook).To(BeNil())

		By("running again without --adopt")
		Expect(installer(ours).InstallDefinitions(ctx)).To(Succeed())
		Expect(get(ctx, ours).ResourceVersion).To(Equal(adopted.ResourceVersion))
	})

	It("adopts an APIService that did not verify certificates", func(ctx SpecContext) {
		theirs := &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.core.oam.dev"},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: "cluster.core.oam.dev", Version: "v1alpha1", GroupPriorityMinimum: 10, VersionPriority: 10, InsecureSkipTLSVerify: true,
				Service: &apiregistrationv1.ServiceReference{Namespace: "vela-system", Name: "gateway-service", Port: ptr.To[int32](9443)},
			},
		}
		create(ctx, theirs)
		adopting := installer()
		adopting.Adopt = true
		adopting.Hub = install.Hub{Namespace: "fleet-system", Service: "gateway", APIPort: 8443, CABundle: hub.CABundle}
		adopting.APIs = []install.GroupVersion{{Group: "cluster.core.oam.dev", Version: "v1alpha1"}}
		Expect(adopting.InstallServing(ctx)).To(Succeed())
		spec := get(ctx, theirs).Spec
		Expect(spec.InsecureSkipTLSVerify).To(BeFalse())
		Expect(spec.CABundle).To(Equal(hub.CABundle))
		Expect(spec.Service.Namespace).To(Equal("fleet-system"))
	})

	It("does not adopt webhook configurations of a running product", func(ctx SpecContext) {
		theirs := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
			Name: policies.ValidatingConfiguration, Labels: map[string]string{"admissions.enforcer/disabled": "true"},
		}}
		holdLease(ctx, "fleet-system", "136224848560.hub.fleet.azure.com")
		create(ctx, theirs)
		before := get(ctx, theirs).ResourceVersion
		adopting := installer()
		adopting.Adopt = true
		adopting.Extra = webhook.Configurations(webhook.Endpoint{Namespace: "fleet-system", Service: "gateway", Port: 9443, CABundle: hub.CABundle})[1:]
		Expect(adopting.InstallServing(ctx)).To(MatchError(ContainSubstring("Lease fleet-system/136224848560.hub.fleet.azure.com")))
		Expect(get(ctx, theirs).ResourceVersion).To(Equal(before))
	})

	It("checks ownership again when an object is replaced between read and write", func(ctx SpecContext) {
		ours := definition("swappeds", "fleet.cattle.io")
		Expect(installer(ours).InstallDefinitions(ctx)).To(Succeed())
		changed := ours.DeepCopy()
		changed.Spec.Names.ShortNames = []string{"sw"}
		swapping := installer(changed)
		swapping.Client = &swappingClient{Client: hubClient, at: 2, swap: func() {
			defer GinkgoRecover()
			Expect(hubClient.Delete(ctx, ours.DeepCopy())).To(Succeed())
			Eventually(func() error {
				return hubClient.Create(ctx, definition("swappeds", "fleet.cattle.io"), client.FieldOwner("kubectl-create"))
			}).WithTimeout(time.Minute).Should(Succeed())
		}}
		Expect(swapping.InstallDefinitions(ctx)).To(MatchError(ContainSubstring(`belongs to field manager "kubectl-create"`)))
		Expect(get(ctx, ours).Labels).NotTo(HaveKey(install.LabelManagedBy))
		Expect(hubClient.Delete(ctx, ours.DeepCopy())).To(Succeed())
	})
})

var _ = Describe("The installation lock", func() {
	const namespace = "default"

	It("admits the second installer when the first is done", func(ctx SpecContext) {
		inside, release := make(chan struct{}), make(chan struct{})
		order := make(chan string, 2)
		go func() {
			defer GinkgoRecover()
			Expect(install.Exclusively(ctx, clientset, namespace, "first", func(context.Context) error {
				close(inside)
				<-release
				order <- "first"
				return nil
			})).To(Succeed())
		}()
		Eventually(inside).Should(BeClosed())

		By("cancelling a waiting installer")
		impatient, cancel := context.WithCancel(ctx)
		cancelled := make(chan error, 1)
		go func() {
			cancelled <- install.Exclusively(impatient, clientset, namespace, "impatient", func(context.Context) error {
				order <- "impatient"
				return nil
			})
		}()
		Consistently(order, "500ms").ShouldNot(Receive())
		cancel()
		Eventually(cancelled).Should(Receive(And(MatchError(ContainSubstring(namespace+"/"+install.LeaseName)), MatchError(context.Canceled))))

		By("releasing the first")
		close(release)
		Expect(install.Exclusively(ctx, clientset, namespace, "second", func(context.Context) error {
			order <- "second"
			return nil
		})).To(Succeed())
		Expect([]string{<-order, <-order}).To(Equal([]string{"first", "second"}))
	})
})

// eventuallyEstablished waits until the CRD is established and returns its resource version.
func eventuallyEstablished(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) string {
	GinkgoHelper()
	Expect(installer(crd).WaitForDefinitions(ctx)).To(Succeed())
	return get(ctx, crd).ResourceVersion
}

// holdLease creates a Lease that its holder has just renewed.
func holdLease(ctx context.Context, namespace, name string) *coordinationv1.Lease {
	GinkgoHelper()
	err := hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	create(ctx, lease)
	return lease
}

// swappingClient replaces an object once, after a given read of it.
type swappingClient struct {
	client.Client
	at, reads int
	swap      func()
}

func (c *swappingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if _, isRead := object.(*unstructured.Unstructured); isRead {
		if c.reads++; c.reads == c.at {
			c.swap()
		}
	}
	return err
}
