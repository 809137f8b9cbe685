// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"net"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver/frontproxy"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/conversion"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const service = "gateway"

// converter is the part of a gateway that converts.
type converter struct {
	port         int
	certificates *serving.Certificates
	installer    *install.Installer
	running      *expect.Running
}

// withoutBeta leaves the definitions of a hub that never had v1beta1.
func withoutBeta(definitions []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	for _, definition := range definitions {
		if definition.Spec.Group == addonv1alpha1.GroupName {
			definition.Spec.Versions = definition.Spec.Versions[:1]
		}
	}
	return definitions
}

// convert installs the definitions of add-ons over those of the hub, as another product left them, and
// answers conversions. The installer has the gateway's rights.
func convert(ctx context.Context) *converter {
	GinkgoHelper()
	ports, err := env.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	const namespace = clusterv1beta1.SystemNamespace
	c := &converter{port: ports[0], certificates: serving.FromAuthority(hubClient, namespace, []string{service + "." + namespace + ".svc"})}
	definitions, err := crds.ForHub(addonv1alpha1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	c.installer = &install.Installer{
		Client: clientOf(gatewayUser), Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{}, Adopt: true,
		APIs: []install.GroupVersion{{Group: intake.GroupVersion.Group, Version: intake.GroupVersion.Version, Port: int32(c.port)}},
		Hub:  install.Hub{Namespace: namespace, Service: service, ExternalName: "127.0.0.1", APIPort: int32(c.port)},
	}
	base := *c.installer
	base.Client = hubClient // The rights to the gateway's namespace are not what this is about.
	Expect(base.InstallBase(ctx)).To(Succeed())
	Expect(c.installer.InstallDefinitions(ctx)).To(Succeed())
	c.start(ctx)
	c.installer.Hub.CABundle, err = c.certificates.CABundle(ctx)
	Expect(err).NotTo(HaveOccurred())
	to := webhook.Endpoint{Aggregated: true}.ClientConfig(conversion.Path)
	c.installer.Extra, err = conversion.Definitions(&to)
	Expect(err).NotTo(HaveOccurred())
	Expect(c.installer.InstallServing(ctx)).To(Succeed())
	c.awaitBeta(ctx)
	return c
}

func (c *converter) start(ctx context.Context) {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(hub.Config())
	Expect(err).NotTo(HaveOccurred())
	proxy, err := frontproxy.Read(ctx, clientset)
	Expect(err).NotTo(HaveOccurred())
	server := intake.NewServer(intake.Options{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)), GetCertificate: c.certificates.GetCertificate, FrontProxy: proxy.FrontProxy,
	})
	server.Register(conversion.Path, conversion.Handler())
	c.running = expect.Started(func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return c.certificates.Start(ctx) })
			group.Go(func() error { return server.Start(ctx) })
			return group.Wait()
		}, nil
	})
	Expect(c.certificates.WaitForFirst(ctx)).To(Succeed())
	Eventually(func() error { return server.StartedChecker()(nil) }).Should(Succeed())
}

func (c *converter) awaitBeta(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error { return hubClient.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}) }).Should(Succeed())
	Eventually(func() error { return hubClient.List(ctx, &addonv1beta1.ClusterManagementAddOnList{}) }).Should(Succeed())
}

func key(of client.Object) client.ObjectKey { return client.ObjectKeyFromObject(of) }

var _ = Describe("Add-ons in v1beta1", func() {
	It("are served on a hub that had v1alpha1 only, also after another replica installs", func(ctx SpecContext) {
		Expect(conversions.installer.InstallDefinitions(ctx)).To(Succeed())
		for _, plural := range []string{"managedclusteraddons", "clustermanagementaddons"} {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			Expect(hubClient.Get(ctx, client.ObjectKey{Name: plural + "." + addonv1alpha1.GroupName}, definition)).To(Succeed())
			Expect(definition.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
			Expect(definition.Status.StoredVersions).To(ConsistOf("v1alpha1"))
			Expect(definition.Spec.Versions).To(HaveEach(HaveField("Served", true)))
		}
		stored := &addonv1beta1.ClusterManagementAddOn{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: "before-v1beta1"}, stored)).To(Succeed())
		Expect(stored.Annotations).To(HaveKeyWithValue(addonv1beta1.FieldsAnnotation, `{"addOnConfiguration":{"crdName":"former"}}`))
	})

	It("are stored in v1alpha1, and read as they were written", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		written := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "addon")}
		written.Annotations = map[string]string{addonv1beta1.InstallNamespaceAnnotation: "agents"}
		written.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "n", Name: "c"}}}
		expect.Created(ctx, hubClient, written)
		desired := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "n", Name: "c"}, SpecHash: "h"}
		status := addonv1beta1.ManagedClusterAddOnStatus{
			Registrations: []addonv1beta1.RegistrationConfig{
				{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: addonv1alpha1.DriverCSR, Subject: addonv1beta1.KubeClientSubject{User: "u"}}},
				{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "example.com/signer", Subject: addonv1beta1.Subject{OrganizationUnits: []string{"o"}}}},
			},
			ConfigReferences: []addonv1beta1.ConfigReference{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}, DesiredConfig: desired}},
			HealthCheck:      addonv1alpha1.HealthCheck{Mode: addonv1alpha1.HealthCheckCustomized},
		}
		written.Status = *status.DeepCopy()
		Expect(hubClient.Status().Update(ctx, written)).To(Succeed())

		stored := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, key(written), stored)).To(Succeed())
		Expect(stored.Annotations).NotTo(HaveKey(addonv1beta1.InstallNamespaceAnnotation))
		Expect(stored.Spec).To(And(HaveField("InstallNamespace", "agents"), HaveField("Configs", written.Spec.Configs)))
		Expect(stored.Status.KubeClientDriver).To(Equal(addonv1alpha1.DriverCSR))
		Expect(stored.Status.Registrations).To(Equal([]addonv1alpha1.RegistrationConfig{
			{SignerName: certificatesv1.KubeAPIServerClientSignerName, Subject: addonv1alpha1.Subject{User: "u"}},
			{SignerName: "example.com/signer", Subject: addonv1alpha1.Subject{OrganizationUnits: []string{"o"}}},
		}))
		Expect(stored.Status.ConfigReferences).To(ConsistOf(HaveField("ConfigReferent", desired.ConfigReferent)))

		read := &addonv1beta1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, key(written), read)).To(Succeed())
		Expect(read.Annotations).To(Equal(map[string]string{addonv1beta1.InstallNamespaceAnnotation: "agents"}))
		Expect(read.Spec).To(Equal(written.Spec))
		Expect(read.Status).To(Equal(status))
	})

	It("keep what only v1alpha1 can express when a client writes them", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		stored := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "addon")}
		stored.Spec.InstallNamespace = "agents"
		expect.Created(ctx, hubClient, stored)
		stored.Status.KubeClientDriver = addonv1alpha1.DriverToken
		stored.Status.AddOnConfiguration = addonv1alpha1.ConfigCoordinates{CRName: "former"}
		stored.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}, ConfigReferent: addonv1alpha1.ConfigReferent{Name: "former"}}}
		Expect(hubClient.Status().Update(ctx, stored)).To(Succeed())

		beta := &addonv1beta1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, key(stored), beta)).To(Succeed())
		metav1.SetMetaDataAnnotation(&beta.ObjectMeta, "people", "x")
		Expect(hubClient.Update(ctx, beta)).To(Succeed())
		beta.Status.Namespace = "seen"
		Expect(hubClient.Status().Update(ctx, beta)).To(Succeed())

		after := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, key(stored), after)).To(Succeed())
		Expect(after.Annotations).To(Equal(map[string]string{"people": "x"}))
		Expect(after.Spec).To(Equal(stored.Spec))
		stored.Status.Namespace = "seen"
		Expect(after.Status).To(Equal(stored.Status))
	})

	It("are installed by an install strategy, which reports in both versions", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a")
		description := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: build.Named(b.name("addon"))}
		kind := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
		description.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: b.namespace, Name: "settings"}}}
		description.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.InstallPlacements, Placements: []addonv1alpha1.PlacementStrategy{
			{PlacementRef: addonv1alpha1.PlacementRef{Namespace: b.namespace, Name: "p"}},
		}}
		expect.CreatedForSpec(ctx, hubClient, description)
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
		Eventually(func(g Gomega) {
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: build.In(b.name("a"), b.name("addon"))}
			g.Expect(hubClient.Get(ctx, key(addOn), addOn)).To(Succeed())
			g.Expect(addOn.Status.ConfigReferences).To(ConsistOf(HaveField("DesiredConfig.Name", "settings")))
			g.Expect(hubClient.Get(ctx, key(description), description)).To(Succeed())
			g.Expect(description.Status.DefaultConfigReferences).To(ConsistOf(HaveField("DesiredConfig.Name", "settings")))
		}).Should(Succeed())
		b.selected(ctx, "p", "b")
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("b"))
	})

	It("are refused if v1alpha1 cannot express them, and none makes the others unreadable", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		By("writing annotations that become fields")
		for _, annotations := range []map[string]string{
			{addonv1beta1.InstallNamespaceAnnotation: "../kube-system"},
			{addonv1beta1.FieldsAnnotation: `{"kubeClientDriver":{}}`},
			{addonv1beta1.FieldsAnnotation: strings.Repeat("[", 200_000)},
		} {
			hostile := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "hostile")}
			hostile.Annotations = annotations
			Expect(hubClient.Create(ctx, hostile)).To(MatchError(ContainSubstring("conversion webhook")))
		}
		By("writing contradictory registrations")
		addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "addon")}
		expect.Created(ctx, hubClient, addOn)
		addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "example.com/signer"}}}
		Expect(hubClient.Status().Update(ctx, addOn)).To(MatchError(ContainSubstring("status.registrations[0]")))

		By("storing more in v1alpha1 than annotations can hold")
		large := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "large")}
		large.Annotations = map[string]string{"x": strings.Repeat("x", 256<<10-1)}
		expect.Created(ctx, hubClient, large)
		large.Status.AddOnConfiguration.CRName = strings.Repeat("x", 1<<20)
		Expect(hubClient.Status().Update(ctx, large)).To(Succeed())
		all := &addonv1beta1.ManagedClusterAddOnList{}
		Expect(hubClient.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
		Expect(all.Items).To(ConsistOf(HaveField("Name", "addon"), And(HaveField("Name", "large"), HaveField("Labels", HaveKey(addonv1beta1.IncompleteLabel)))))
		incomplete := all.Items[1]
		incomplete.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "r"}, ConfigReferent: addonv1alpha1.ConfigReferent{Name: "n"}}}
		Expect(hubClient.Update(ctx, &incomplete)).To(MatchError(ContainSubstring("write this object in v1alpha1")))
		Expect(hubClient.Get(ctx, key(large), large)).To(Succeed())
		Expect(large.Status.AddOnConfiguration.CRName).To(HaveLen(1 << 20))
		large.Annotations, large.Status.AddOnConfiguration = nil, addonv1alpha1.ConfigCoordinates{}
		Expect(hubClient.Update(ctx, large)).To(Succeed())
	})

	It("can be read and created in v1alpha1 while no gateway answers", Serial, func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		beta := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "beta")}
		expect.Created(ctx, hubClient, beta)
		conversions.running.Stop()
		DeferCleanup(func(ctx SpecContext) {
			conversions.start(ctx)
			conversions.awaitBeta(ctx)
		})
		Eventually(func() error { return hubClient.Create(ctx, beta.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring("conversion webhook")))
		stored := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, key(beta), stored)).To(Succeed())
		Expect(hubClient.List(ctx, &addonv1alpha1.ManagedClusterAddOnList{})).To(Succeed())
		expect.Created(ctx, hubClient, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(namespace, "alpha")})
	})
})
