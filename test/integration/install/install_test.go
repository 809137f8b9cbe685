// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/install"
)

var _ = Describe("The installation", Ordered, func() {
	var shipped []*apiextensionsv1.CustomResourceDefinition

	BeforeAll(func() {
		var err error
		shipped, err = crds.All()
		Expect(err).NotTo(HaveOccurred())
	})

	It("returns when every served version of every shipped CRD responds", func(ctx SpecContext) {
		Expect(installer(shipped...).InstallDefinitions(ctx)).To(Succeed())
		dynamicClient, err := dynamic.NewForConfig(hub.Config())
		Expect(err).NotTo(HaveOccurred())
		for _, crd := range shipped {
			for _, version := range crd.Spec.Versions {
				if !version.Served {
					continue // The gateway serves it once it converts it.
				}
				resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
				_, err := dynamicClient.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
				Expect(err).NotTo(HaveOccurred(), resource.String())
			}
			Expect(get(ctx, crd).Labels).To(HaveKeyWithValue(install.LabelManagedBy, install.ManagedBy))
		}
	})

	It("changes nothing the second time", func(ctx SpecContext) {
		before := resourceVersions(ctx, shipped)
		Expect(before).To(HaveLen(len(shipped)))
		again := installer(shipped...)
		counted := &countingClient{Client: hubClient}
		again.Client = counted
		Expect(again.InstallDefinitions(ctx)).To(Succeed())
		Expect(resourceVersions(ctx, shipped)).To(Equal(before))
		Expect(counted.applied).To(BeZero(), "writes of unchanged objects")
	})

	It("waits for CRDs that another gateway installs", func(ctx SpecContext) {
		Expect(installer(shipped...).WaitForDefinitions(ctx)).To(Succeed())
	})

	It("names a CRD that no gateway installs", func(ctx SpecContext) {
		short, cancel := context.WithCancel(ctx)
		DeferCleanup(cancel)
		reached := &countingClient{Client: hubClient, onGet: cancel}
		waiting := installer(definition("missings", "example.org"))
		waiting.Client = reached
		Expect(waiting.WaitForDefinitions(short)).To(MatchError(And(ContainSubstring("missings.example.org"), ContainSubstring("--install"))))
	})

	It("reports a CRD that can never be established", func(ctx SpecContext) {
		first, second := definition("sames", "names.example.org"), definition("others", "names.example.org")
		Expect(installer(first).InstallDefinitions(ctx)).To(Succeed())
		second.Spec.Names.Kind, second.Spec.Names.ListKind = first.Spec.Names.Kind, first.Spec.Names.ListKind
		Expect(installer(second).InstallDefinitions(ctx)).To(MatchError(And(
			ContainSubstring("others.names.example.org"), ContainSubstring("its names are taken"))))
	})

	It("reaches the same state wherever it was interrupted", func(ctx SpecContext) {
		for stopAfter := range 4 {
			parts := []*apiextensionsv1.CustomResourceDefinition{
				definition("ones", fmt.Sprintf("stop%d.example.org", stopAfter)),
				definition("twos", fmt.Sprintf("stop%d.example.org", stopAfter)),
				definition("threes", fmt.Sprintf("stop%d.example.org", stopAfter)),
			}
			stopped, cancel := context.WithCancel(ctx)
			interrupted := installer(parts...)
			interrupted.Client = &countingClient{Client: hubClient, onApply: cancel, after: stopAfter}
			Expect(interrupted.InstallDefinitions(stopped)).NotTo(Succeed())
			cancel()
			Expect(installer(parts...).InstallDefinitions(ctx)).To(Succeed())
		}
	})

	It("keeps objects of a newer gateway and updates those of an older one", func(ctx SpecContext) {
		ours := definition("aged", "example.org")
		newer := installer(ours)
		newer.Version = "v0.2.0"
		Expect(newer.InstallDefinitions(ctx)).To(Succeed())
		before := get(ctx, ours)

		changed := ours.DeepCopy()
		changed.Spec.Names.ShortNames = []string{"ag"}
		Expect(installer(changed).InstallDefinitions(ctx)).To(Succeed())
		Expect(get(ctx, ours).ResourceVersion).To(Equal(before.ResourceVersion))

		newer.Definitions = []*apiextensionsv1.CustomResourceDefinition{changed}
		Expect(newer.InstallDefinitions(ctx)).To(Succeed())
		newest := installer(ours)
		newest.Version = "v0.10.0"
		Expect(get(ctx, ours).Spec.Names.ShortNames).To(ConsistOf("ag"))
		Expect(newest.InstallDefinitions(ctx)).To(Succeed())
		Expect(get(ctx, ours).Annotations).To(HaveKeyWithValue(install.AnnotationVersion, "v0.10.0"))
		Expect(get(ctx, ours).Spec.Names.ShortNames).To(BeEmpty(), "a field that the gateway no longer sets")
	})
})

var _ = Describe("Registration of the gateway with the hub", Ordered, func() {
	outside := func() *install.Installer {
		i := installer()
		i.Hub = install.Hub{Namespace: "fleet-system", Service: "gateway", ExternalName: "127.0.0.1", APIPort: 8443, CABundle: hub.CABundle}
		i.APIs = []install.GroupVersion{{Group: "cluster.core.oam.dev", Version: "v1alpha1"}}
		return i
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "gateway"}}
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.core.oam.dev"}}

	It("creates the Service of a gateway outside the hub and the APIService that points to it", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hubClient.Delete(ctx, api))).To(Succeed()) })
		Expect(outside().InstallBase(ctx)).To(Succeed())
		Expect(outside().InstallServing(ctx)).To(Succeed())

		spec := get(ctx, service).Spec
		Expect(spec.Type).To(Equal(corev1.ServiceTypeExternalName))
		Expect(spec.ExternalName).To(Equal("127.0.0.1"))
		Expect(spec.Ports).To(ConsistOf(HaveField("Port", BeEquivalentTo(8443))))
		got := get(ctx, api)
		Expect(got.Spec.Service).To(Equal(&apiregistrationv1.ServiceReference{Namespace: "fleet-system", Name: "gateway", Port: ptr.To[int32](8443)}))
		Expect(got.Spec.CABundle).To(Equal(hub.CABundle))
		Expect(got.Spec.InsecureSkipTLSVerify).To(BeFalse())

		before := []string{get(ctx, service).ResourceVersion, specOf(ctx, api)}
		again, counted := outside(), &countingClient{Client: hubClient}
		again.Client = counted
		Expect(again.InstallBase(ctx)).To(Succeed())
		Expect(again.InstallServing(ctx)).To(Succeed())
		Expect([]string{get(ctx, service).ResourceVersion, specOf(ctx, api)}).To(Equal(before))
		Expect(counted.applied).To(BeZero(), "writes of unchanged objects")

		By("following the leader, also after a rollback, and a new CA")
		newer := outside()
		newer.Version = "v0.2.0"
		Expect(newer.InstallServing(ctx)).To(Succeed())
		rotated := outside()
		rotated.Hub.CABundle = append([]byte("# next\n"), hub.CABundle...)
		Expect(rotated.InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, api).Spec.CABundle).To(Equal(rotated.Hub.CABundle))
	})

	It("releases its namespace first when that is being deleted, also if APIServices block the deletion", func(ctx SpecContext) {
		i := outside()
		i.Hub.Namespace = "leaving"
		i.APIs = []install.GroupVersion{{Group: "leaving.example.org", Version: "v1alpha1"}}
		api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.leaving.example.org"}}
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hubClient.Delete(ctx, api))).To(Succeed()) })
		Expect(i.InstallBase(ctx)).To(Succeed())
		Expect(i.InstallServing(ctx)).To(Succeed())
		Eventually(func() []apiregistrationv1.APIServiceCondition { return get(ctx, api).Status.Conditions }).Should(
			ContainElement(And(HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionFalse))))
		former := get(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}})
		Expect(hubClient.Delete(ctx, former)).To(Succeed())
		Eventually(func() []corev1.NamespaceCondition { return get(ctx, former).Status.Conditions }).Should(
			ContainElement(HaveField("Type", corev1.NamespaceDeletionDiscoveryFailure)))

		Expect(i.InstallBase(ctx)).To(Succeed())
		Expect(get(ctx, former).UID).NotTo(Equal(former.UID))
		Expect(get(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "leaving", Name: "gateway"}}).Spec.ExternalName).To(Equal("127.0.0.1"))
		Expect(i.InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, api).Spec.Service.Namespace).To(Equal("leaving"))
	})

	It("does not change an existing namespace", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prepared", Labels: map[string]string{"owner": "platform"}}}
		create(ctx, namespace)
		before := get(ctx, namespace).ResourceVersion
		i := outside()
		i.Hub.Namespace, i.Hub.ExternalName = "prepared", ""
		Expect(i.InstallBase(ctx)).To(Succeed())
		Expect(get(ctx, namespace).ResourceVersion).To(Equal(before))
	})
})

// countingClient cancels the run at its first read or after a number of writes.
type countingClient struct {
	client.Client
	onGet, onApply func()
	after          int

	mu      sync.Mutex // mu serializes writes, so that their number at cancellation is known.
	applied int
}

func (c *countingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if c.onGet != nil {
		c.onGet()
	}
	return err
}

var errStopped = errors.New("stopped")

func (c *countingClient) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onApply != nil && c.applied >= c.after {
		c.onApply()
		return errStopped
	}
	c.applied++
	err := c.Client.Apply(ctx, object, options...)
	if c.onApply != nil && c.applied >= c.after {
		c.onApply()
	}
	return err
}

func resourceVersions(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, crd := range definitions {
		versions[crd.Name] = get(ctx, crd).ResourceVersion
	}
	return versions
}

// specOf omits the resource version: the API server writes the status of an unavailable APIService.
func specOf(ctx context.Context, api *apiregistrationv1.APIService) string {
	GinkgoHelper()
	current := get(ctx, api)
	return fmt.Sprint(current.Generation, current.Labels, current.Annotations, current.Spec)
}
