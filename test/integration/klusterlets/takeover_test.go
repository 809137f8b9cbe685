// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
	"fleetgate.io/fleetgate/test/support/transcript"
)

// takenHub is a hub that Open Cluster Management runs.
type takenHub struct {
	*env.Cluster
	client client.Client
	// held are the objects of its controllers and klusterlets.
	held []*unstructured.Unstructured
}

// write creates the objects of a file, with their statuses, like OCM's controllers.
func (h *takenHub) write(ctx context.Context, file string, replaced ...string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(strings.NewReplacer(replaced...).Replace(string(content)), "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
		if owners := object.GetOwnerReferences(); len(owners) > 0 {
			owner := &unstructured.Unstructured{}
			owner.SetAPIVersion(owners[0].APIVersion)
			owner.SetKind(owners[0].Kind)
			Expect(h.client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: owners[0].Name}, owner)).To(Succeed())
			owners[0].UID = owner.GetUID()
			object.SetOwnerReferences(owners)
		}
		status, has := object.Object["status"]
		Expect(h.client.Create(ctx, object, client.FieldOwner("registration"))).To(Succeed(), document)
		if has {
			object.Object["status"] = status
			Expect(h.client.Status().Update(ctx, object, client.FieldOwner("registration"))).To(Succeed())
		}
		h.held = append(h.held, object)
	}
}

// joined is the klusterlet of a cluster, with a previously signed certificate.
func (h *takenHub) joined(cluster string) *agent {
	GinkgoHelper()
	a := &agent{cluster: cluster, name: "abcde", bootstrap: rest.AnonymousClientConfig(h.Config())}
	config, err := h.ConfigFor(a.commonName(), "system:open-cluster-management:"+cluster, "system:open-cluster-management:managed-clusters")
	Expect(err).NotTo(HaveOccurred())
	a.certificate = config.CertData
	block, _ := pem.Decode(config.KeyData)
	a.key, err = x509.ParseECPrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// versions are the resourceVersions of all existing objects.
func (h *takenHub) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, object := range h.held {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(object.GroupVersionKind())
		Expect(h.client.Get(ctx, client.ObjectKeyFromObject(object), now)).To(Succeed())
		versions[now.GetKind()+" "+now.GetNamespace()+"/"+now.GetName()] = now.GetResourceVersion()
	}
	return versions
}

// types runs the commands of a page that contain a word, and compares their output.
func (h *takenHub) types(ctx context.Context, page *transcript.Transcript, word string) {
	GinkgoHelper()
	typed := 0
	for _, c := range page.Commands {
		if !strings.Contains(c.Line, word) {
			continue
		}
		typed++
		out, err := program.Kubectl(ctx, h.Cluster, "", strings.Fields(c.Line)[1:]...)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(MatchRegexp(c.Pattern()), c.Line)
	}
	Expect(typed).To(BeNumerically(">", 2))
}

// deployments are those of OCM's operator and controllers, which do not run here.
func deployments() []client.Object {
	var all []client.Object
	for _, name := range []string{
		"cluster-manager", "cluster-manager-registration-controller", "cluster-manager-registration-webhook",
		"cluster-manager-placement-controller", "cluster-manager-work-controller", "cluster-manager-work-webhook",
	} {
		namespace, labels := "open-cluster-management-hub", map[string]string{"app": name}
		if name == "cluster-manager" {
			namespace = "open-cluster-management"
		}
		all = append(all, &appsv1.Deployment{
			ObjectMeta: build.In(namespace, name),
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
			}},
		})
	}
	return all
}

// lease is a Lease that was just renewed.
func lease(namespace, name string, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: build.In(namespace, name), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(name), LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
}

// addOnKind is the kind of Open Cluster Management's add-ons, which OCM keeps managing. Only their
// existence matters here.
func addOnKind() *apiextensionsv1.CustomResourceDefinition {
	const group, plural = "addon.open-cluster-management.io", "managedclusteraddons"
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: build.Named(plural + "." + group),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: "managedclusteraddon", Kind: "ManagedClusterAddOn", ListKind: "ManagedClusterAddOnList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// newTakenHub starts such a hub with two klusterlets that keep renewing their Leases.
func newTakenHub(ctx context.Context) *takenHub {
	GinkgoHelper()
	cluster, err := env.Start(ctx, env.Options{Name: "taken"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) })
	h := &takenHub{Cluster: cluster, client: expect.Client(build.Unlimited(cluster.Config()), build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme))}
	works, err := crds.ForHub(workv1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	clusters, err := crds.Named(append(crds.Placements(), "managedclusters.cluster.open-cluster-management.io",
		"managedclustersets.cluster.open-cluster-management.io", "managedclustersetbindings.cluster.open-cluster-management.io")...)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{CRDs: append(append(works, clusters...), addOnKind()), MaxTime: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	h.write(ctx, "ocm-fleet.yaml")
	expect.Created(ctx, h.client, append([]client.Object{build.Namespace("open-cluster-management")}, deployments()...)...)
	for _, name := range []string{"taken-1", "taken-2"} {
		h.write(ctx, "ocm-hub.yaml", "CLUSTER", name)
		renewed := lease(name, clusterv1.ClusterLease, 60)
		renewed.Labels = map[string]string{clusterv1.ClusterNameLabel: name}
		expect.Created(ctx, h.client, renewed)
	}
	return h
}

var _ = Describe("A hub that Open Cluster Management ran", func() {
	It("is rejected while OCM runs or without --adopt, and then adopted without writing its objects", func(ctx SpecContext) {
		h := newTakenHub(ctx)
		out, err := program.Kubectl(ctx, h.Cluster, "", "apply", "--filename", filepath.Join("..", "..", "support", "fleet", "klusterlets-rbac.yaml"))
		Expect(err).NotTo(HaveOccurred(), out)
		running := lease("open-cluster-management-hub", "registration-controller-lock", 3600)
		expect.Created(ctx, h.client, running)
		joined := h.joined("taken-1")
		Expect(joined.hub().Get(ctx, client.ObjectKey{Namespace: "taken-1", Name: clusterv1.ClusterLease}, &coordinationv1.Lease{})).To(Succeed())
		before := h.versions(ctx)
		flags := []string{"--ocm=registration,placement,works", "--install", "--external-name=localhost"}

		By("starting beside OCM")
		said := program.Refused(ctx, h.Cluster, flags...)
		Expect(said).To(ContainSubstring("CustomResourceDefinition managedclusters.cluster.open-cluster-management.io is on this hub already"))
		Expect(said).To(ContainSubstring("remove that product, or stop it and start the gateway with --adopt"))

		By("adopting while its registration controller runs")
		Expect(program.Refused(ctx, h.Cluster, append(flags, "--adopt")...)).To(ContainSubstring("is running (Lease open-cluster-management-hub/registration-controller-lock)"))
		Expect(h.versions(ctx)).To(Equal(before))

		By("adopting when all of its controllers are stopped, as documented")
		page, err := transcript.Read(filepath.Join("..", "..", "..", "docs", "how-to", "migrate-ocm.md"))
		Expect(err).NotTo(HaveOccurred())
		h.types(ctx, page, " scale ")
		Expect(h.client.Delete(ctx, running)).To(Succeed())
		program.Gateway(ctx, h.Cluster, append(flags, "--adopt")...)
		adopted := &apiextensionsv1.CustomResourceDefinition{}
		Eventually(func(g Gomega) {
			for _, name := range []string{"managedclusters.cluster.open-cluster-management.io", "placements.cluster.open-cluster-management.io", "manifestworks.work.open-cluster-management.io"} {
				g.Expect(h.client.Get(ctx, client.ObjectKey{Name: name}, adopted)).To(Succeed())
				g.Expect(adopted.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "fleetgate"))
			}
		}).Should(Succeed())

		By("checking clusters, as documented")
		h.types(ctx, page, " get ")

		By("calling the webhooks: a new cluster is added to the default set")
		third := &clusterv1.ManagedCluster{ObjectMeta: build.Named("taken-3")}
		third.Spec.HubAcceptsClient = true
		Eventually(func() (map[string]string, error) {
			would := third.DeepCopy()
			err := h.client.Create(ctx, would, client.DryRunAll)
			return would.Labels, err
		}).Should(HaveKeyWithValue(clusterv1.ClusterSetLabel, "default"))

		By("waiting until all controllers have handled it")
		Expect(h.client.Create(ctx, third.DeepCopy())).To(Succeed())
		Eventually(func() error {
			return h.client.Get(ctx, client.ObjectKey{Namespace: "taken-3", Name: clusterv1.ClusterLease}, &coordinationv1.Lease{})
		}).Should(Succeed())
		written := func() []string {
			var names []string
			for name, version := range h.versions(ctx) {
				if before[name] != version {
					names = append(names, name)
				}
			}
			return names
		}
		// The sets count one cluster more. The conditions of a Placement get their generation, once.
		Eventually(written).Should(ConsistOf("ManagedClusterSet /default", "ManagedClusterSet /global", "Placement team/production"))
		Consistently(written).Should(HaveLen(3))

		By("a klusterlet continuing with its certificate, and renewing it")
		joined.connected(ctx)
		joined.renewLease(ctx, time.Now())
		own := joined.hub()
		joined.fetch(ctx, own, joined.ask(ctx, own))
		joined.connected(ctx)
	})

	DescribeTable("is adopted in parts, beside its other running parts", func(ctx SpecContext, part, running, taken, left string) {
		h := newTakenHub(ctx)
		out, err := program.Kubectl(ctx, h.Cluster, "", "apply", "--filename", filepath.Join("..", "..", "support", "fleet", "klusterlets-rbac.yaml"))
		Expect(err).NotTo(HaveOccurred(), out)
		expect.Created(ctx, h.client, lease("open-cluster-management-hub", running, 3600))
		held := func() map[string]string {
			versions := h.versions(ctx)
			// Its conditions get their generation, once.
			delete(versions, "Placement team/production")
			return versions
		}
		before := held()
		program.Gateway(ctx, h.Cluster, "--ocm="+part, "--install", "--external-name=localhost", "--adopt")
		kind := &apiextensionsv1.CustomResourceDefinition{}
		Eventually(func() (map[string]string, error) {
			err := h.client.Get(ctx, client.ObjectKey{Name: taken + ".cluster.open-cluster-management.io"}, kind)
			return kind.Labels, err
		}).Should(HaveKeyWithValue("app.kubernetes.io/managed-by", "fleetgate"))
		Expect(h.client.Get(ctx, client.ObjectKey{Name: left + ".cluster.open-cluster-management.io"}, kind)).To(Succeed())
		Expect(kind.Labels).NotTo(HaveKey("app.kubernetes.io/managed-by"))
		Consistently(held).WithTimeout(3 * time.Second).Should(Equal(before))
	},
		Entry("registration, beside its placement", "registration", "placement-lock", "managedclusters", "placements"),
		Entry("placement, beside its registration", "placement", "registration-controller-lock", "placements", "managedclusters"),
	)
})
