// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/test/support/chartpack"
)

const podCIDRs = "infrastructure.fleetgate.io/pod-cidrs"

// blockOf is an example of docs/how-to/addons.md, by its first line.
func blockOf(first, holding string) string {
	GinkgoHelper()
	page, err := os.ReadFile("../../../docs/how-to/addons.md")
	Expect(err).NotTo(HaveOccurred())
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if text, ok := strings.CutPrefix(block[1], "# "+first+"\n"); ok && strings.Contains(text, holding) {
			return text
		}
	}
	Fail("docs/how-to/addons.md has no example that begins with # " + first + " and holds " + holding)
	return ""
}

// applyBlock creates the object of an example.
func applyBlock(ctx context.Context, holding string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(blockOf("apply", holding)), &object.Object)).To(Succeed())
	create(ctx, object)
	return object
}

// addon creates a ConfigMap with a packaged chart.
func addon(ctx context.Context, namespace, name string, packed []byte, data map[string]string) *corev1.ConfigMap {
	GinkgoHelper()
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{placementv1beta1.HelmChartAnnotation: name}},
		Data:       data, BinaryData: map[string][]byte{helmchart.KeyPackage: packed},
	}
	Expect(hub.Create(ctx, configMap)).To(Succeed())
	return configMap
}

func example(name string) []byte {
	GinkgoHelper()
	packed, err := chartpack.Folder(filepath.Join("../../../examples/addons", name))
	Expect(err).NotTo(HaveOccurred())
	return packed
}

func chartOf(files map[string]string) []byte {
	GinkgoHelper()
	packed, err := chartpack.Files(files)
	Expect(err).NotTo(HaveOccurred())
	return packed
}

func addonWork(ctx context.Context, member, placementNamespace, placement, namespace, name string) (*placementv1beta1.Work, error) {
	work := &placementv1beta1.Work{}
	key := types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace(member), Name: placementv1beta1.EnvelopeWorkName(placementNamespace, placement,
		placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ConfigMapEnvelopeType, Namespace: namespace, Name: name})}
	return work, hub.Get(ctx, key, work)
}

// manifestOf finds a manifest by kind and name.
func manifestOf(work *placementv1beta1.Work, kind, name string) map[string]any {
	for _, m := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(m.Raw, &object.Object) == nil && object.GetKind() == kind && object.GetName() == name {
			return object.Object
		}
	}
	return nil
}

// environment is the environment of a workload's only container.
func environment(workload map[string]any) map[string]string {
	containers, _, _ := unstructured.NestedSlice(workload, "spec", "template", "spec", "containers")
	values := map[string]string{}
	for _, c := range containers {
		list, _, _ := unstructured.NestedSlice(c.(map[string]any), "env")
		for _, one := range list {
			variable := one.(map[string]any)
			values[variable["name"].(string)], _ = variable["value"].(string)
		}
	}
	return values
}

// problemOn is the message of a member's condition WorkSynchronized.
func problemOn(ctx context.Context, placement, member string) func() (string, error) {
	return func() (string, error) {
		bindings, err := bindingsOf(ctx, placement)
		for _, c := range bindings[member].Status.Conditions {
			if c.Type == placementv1beta1.ConditionWorkSynchronized && c.Status == metav1.ConditionFalse {
				return c.Message, err
			}
		}
		return "", err
	}
}

var _ = Describe("An add-on", func() {
	It("gives each labelled member its own pod network, as documented", func(ctx SpecContext) {
		makeNamespace(ctx, "network-system")
		for name, cidrs := range map[string]string{"net-4": "10.1.0.0/16", "net-6": "fd00:6::/48", "net-dual": "10.2.0.0/16,fd00:2::/48", "net-none": ""} {
			join(ctx, name, map[string]string{"cni": "pod-network"})
			agent(name)
			if cidrs != "" {
				report(ctx, name, withProperty(podCIDRs, cidrs))
			}
		}
		join(ctx, "net-other", map[string]string{"cni": "other"})
		addon(ctx, "network-system", "pod-network", example("pod-network"), map[string]string{helmchart.KeyValuesTemplate: blockOf("values.tpl", "pools")})
		applyBlock(ctx, "kind: ClusterResourcePlacement")

		pools := func(member string) func() ([]string, error) {
			return func() ([]string, error) {
				work, err := addonWork(ctx, member, "", "pod-network", "network-system", "pod-network")
				var all []string
				for _, name := range []string{"default-ipv4", "default-ipv6"} {
					if pool := manifestOf(work, "IPPool", name); pool != nil {
						cidr, _, _ := unstructured.NestedString(pool, "spec", "cidr")
						all = append(all, cidr)
					}
				}
				return all, client.IgnoreNotFound(err)
			}
		}
		Eventually(pools("net-4")).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"10.1.0.0/16"}))
		Eventually(pools("net-6")).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"fd00:6::/48"}))
		Eventually(pools("net-dual")).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"10.2.0.0/16", "fd00:2::/48"}))
		work, err := addonWork(ctx, "net-dual", "", "pod-network", "network-system", "pod-network")
		Expect(err).NotTo(HaveOccurred())
		Expect(kindsIn(work)).To(Equal([]string{
			"CustomResourceDefinition/ippools.network.example.com", "IPPool/default-ipv4", "IPPool/default-ipv6",
			"ServiceAccount/pod-network", "ClusterRole/pod-network", "ClusterRoleBinding/pod-network", "DaemonSet/pod-network",
		}))
		node := manifestOf(work, "DaemonSet", "pod-network")
		Expect(environment(node)).To(Equal(map[string]string{"CLUSTER": "net-dual", "CLUSTER_CIDR": "10.2.0.0/16,fd00:2::/48"}))
		Expect(node["metadata"]).To(HaveKeyWithValue("namespace", "network-system"))
		Expect(manifestOf(work, "ClusterRole", "pod-network")["metadata"]).NotTo(HaveKey("namespace"))
		rest, err := workOf(ctx, "net-dual", "pod-network")
		Expect(err).NotTo(HaveOccurred())
		Expect(kindsIn(rest)).To(ContainElement("Namespace/network-system"))
		Expect(kindsIn(rest)).NotTo(ContainElement("ConfigMap/pod-network"))

		By("reporting what is missing on one member, without blocking the other")
		Eventually(problemOn(ctx, "pod-network", "net-none")).WithTimeout(soon).WithPolling(often).Should(And(
			HavePrefix(`a chart cannot be rendered: ConfigMap "network-system/pod-network": chart pod-network 0.1.0: `),
			ContainSubstring("values.tpl:3"), ContainSubstring("the member has no pod CIDRs")))
		expectOn(ctx, "pod-network", "net-4", "net-6", "net-dual", "net-none")

		By("reporting the member's networks")
		report(ctx, "net-none", withProperty(podCIDRs, "10.3.0.0/16"))
		Eventually(pools("net-none")).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"10.3.0.0/16"}))
		expectAvailable(ctx, "pod-network", "0")
		crp, err := statusOf(ctx, "pod-network")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.SelectedResources).To(ContainElement(And(HaveField("Kind", "ConfigMap"), HaveField("Name", "pod-network"))))

		By("bringing it to a member that joins later")
		join(ctx, "net-new", map[string]string{"cni": "pod-network"})
		agent("net-new")
		report(ctx, "net-new", withProperty(podCIDRs, "10.4.0.0/16"))
		Eventually(pools("net-new")).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"10.4.0.0/16"}))

		By("removing the label, and so the add-on, from one member")
		edit(ctx, "net-6", func(m *clusterv1beta1.MemberCluster) { delete(m.Labels, "cni") })
		evict(ctx, "pod-network", "net-6")
		Eventually(func() error {
			_, err := addonWork(ctx, "net-6", "", "pod-network", "network-system", "pod-network")
			return err
		}).WithTimeout(soon).WithPolling(often).Should(MatchError(ContainSubstring("not found")))
	})

	It("gets the proxy of each cluster unless an override sets another", func(ctx SpecContext) {
		makeNamespace(ctx, "addons")
		for name, region := range map[string]string{"proxy-1": "closed", "proxy-2": "open"} {
			join(ctx, name, map[string]string{fleetLabel: "proxy", "region": region})
			agent(name)
		}
		report(ctx, "proxy-1", withProperty("infrastructure.fleetgate.io/service-cidrs", "10.96.0.0/12"))
		addon(ctx, "addons", "reporter", example("reporter"), map[string]string{helmchart.KeyValues: blockOf("values.yaml", "httpProxy")})
		applyBlock(ctx, "kind: ResourceOverride")
		place(ctx, "proxy", "addons", nil)
		settings := func(member string) func() (map[string]string, error) {
			return func() (map[string]string, error) {
				work, err := addonWork(ctx, member, "", "proxy", "addons", "reporter")
				return environment(manifestOf(work, "Deployment", "reporter")), client.IgnoreNotFound(err)
			}
		}
		Eventually(settings("proxy-2")).WithTimeout(soon).WithPolling(often).Should(Equal(map[string]string{"CLUSTER": "proxy-2", "NO_PROXY": ".svc,.cluster.local"}))
		Eventually(problemOn(ctx, "proxy", "proxy-1")).WithTimeout(soon).WithPolling(often).Should(ContainSubstring(`member "proxy-1" has no annotation "example.com/http-proxy"`))

		By("annotating the member twice")
		for _, url := range []string{"http://10.0.109.153:3128", "http://10.0.109.154:3128"} {
			edit(ctx, "proxy-1", func(m *clusterv1beta1.MemberCluster) {
				m.Annotations = map[string]string{"example.com/http-proxy": url}
			})
			Eventually(settings("proxy-1")).WithTimeout(soon).WithPolling(often).Should(Equal(map[string]string{
				"CLUSTER": "proxy-1", "HTTP_PROXY": url, "NO_PROXY": ".cluster.local,.svc,10.96.0.0/12",
			}))
		}
		Eventually(summary).WithContext(ctx).WithArguments("proxy").WithTimeout(soon).WithPolling(often).Should(ContainElements(
			"Overridden=True/OverriddenSucceeded", "Available=True/ResourceAvailable"))
	})

	It("is restored when somebody changes its Work, and not rendered again by a gateway that starts", func(ctx SpecContext) {
		makeNamespace(ctx, "kept")
		joinAll(ctx, "kept", nil)
		packed := chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {colour: {{ .Values.colour }}}\n"})
		carrier := addon(ctx, "kept", "a", packed, map[string]string{helmchart.KeyValues: "colour: red"})
		place(ctx, "kept", "kept", nil)
		expectAvailable(ctx, "kept", "0")
		work, err := addonWork(ctx, "kept-1", "", "kept", "kept", "a")
		Expect(err).NotTo(HaveOccurred())
		made := work.Spec.Workload.Manifests[0].Raw
		Expect(string(made)).To(ContainSubstring(`"colour":"red"`))
		Expect(work.Annotations).To(HaveKey(placementv1beta1.RenderedFromAnnotation))

		By("changing its Work")
		work.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(made), "red", "blue", 1))
		Expect(hub.Update(ctx, work)).To(Succeed())
		Eventually(func() (string, error) {
			work, err := addonWork(ctx, "kept-1", "", "kept", "kept", "a")
			return string(work.Spec.Workload.Manifests[0].Raw), err
		}).WithTimeout(soon).WithPolling(often).Should(Equal(string(made)))
		expectAvailable(ctx, "kept", "0")
		work, err = addonWork(ctx, "kept-1", "", "kept", "kept", "a")
		Expect(err).NotTo(HaveOccurred())

		By("restarting the gateway")
		gateway.stop()
		gateway = startGateway()
		shop(ctx, "kept-shop")
		place(ctx, "kept-too", "kept-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"kept-1"}}
		})
		expectAvailable(ctx, "kept-too", "0")
		again, err := addonWork(ctx, "kept-1", "", "kept", "kept", "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Generation).To(Equal(work.Generation))

		By("placing another object, which gives another snapshot with the same chart")
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kept", Name: "plain"}})).To(Succeed())
		expectAvailable(ctx, "kept", "1")
		again, err = addonWork(ctx, "kept-1", "", "kept", "kept", "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Generation).To(Equal(work.Generation))
		Expect(again.Labels).To(HaveKeyWithValue(placementv1beta1.ParentResourceSnapshotIndexLabel, "1"))
		Expect(again.Spec.Workload.Manifests).To(HaveLen(1))

		By("changing its values")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(carrier), carrier)).To(Succeed())
		carrier.Data[helmchart.KeyValues] = "colour: green"
		Expect(hub.Update(ctx, carrier)).To(Succeed())
		Eventually(func() (string, error) {
			work, err := addonWork(ctx, "kept-1", "", "kept", "kept", "a")
			return string(work.Spec.Workload.Manifests[0].Raw), err
		}).WithTimeout(soon).WithPolling(often).Should(ContainSubstring(`"colour":"green"`))
	})

	It("of a ResourcePlacement stays in its namespace, and no override changes the chart", func(ctx SpecContext) {
		makeNamespace(ctx, "apart")
		joinAll(ctx, "apart", nil)
		role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: apart}\n"
		carrier := addon(ctx, "apart", "a", chartOf(map[string]string{"templates/a.yaml": role}), nil)
		placeIn(ctx, "apart", "here", "apart")
		told := func() (string, error) {
			var list placementv1beta1.ResourceBindingList
			err := hub.List(ctx, &list, client.InNamespace("apart"))
			var all []string
			for _, b := range list.Items {
				for _, c := range b.Status.Conditions {
					if c.Status == metav1.ConditionFalse {
						all = append(all, c.Message)
					}
				}
			}
			return strings.Join(all, "\n"), err
		}
		Eventually(told).WithTimeout(soon).WithPolling(often).Should(ContainSubstring(`chart test 0.1.0: test/templates/a.yaml: ClusterRole "apart" is in no namespace`))

		By("rendering an object in the namespace")
		inside := chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rendered}\n"})
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(carrier), carrier)).To(Succeed())
		carrier.BinaryData[helmchart.KeyPackage] = inside
		Expect(hub.Update(ctx, carrier)).To(Succeed())
		Eventually(func() ([]string, error) {
			work, err := addonWork(ctx, "apart-1", "apart", "here", "apart", "a")
			return kindsIn(work), client.IgnoreNotFound(err)
		}).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"ConfigMap/rendered"}))

		By("overriding its namespace")
		o := ofSettings("apart", "elsewhere", sets("", "/data", `{"namespace":"kube-system"}`))
		o.Spec.ResourceSelectors[0].Name = "a"
		create(ctx, o)
		Eventually(told).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("the overrides change more of a chart than values.yaml"))
	})

	It("ignores an override of a field whose name only resembles data", func(ctx SpecContext) {
		makeNamespace(ctx, "disguised")
		joinAll(ctx, "disguised", nil)
		addon(ctx, "disguised", "a", chartOf(map[string]string{"values.yaml": "colour: red\n",
			"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rendered}\ndata: {colour: {{ .Values.colour }}}\n"}), nil)
		placeIn(ctx, "disguised", "here", "disguised")
		rendered := func() (*placementv1beta1.Work, error) {
			return addonWork(ctx, "disguised-1", "disguised", "here", "disguised", "a")
		}
		Eventually(func() error { _, err := rendered(); return err }).WithTimeout(soon).WithPolling(often).Should(Succeed())
		before, err := rendered()
		Expect(err).NotTo(HaveOccurred())

		o := ofSettings("disguised", "values", sets("", "/Data", `{"values.yaml":"colour: green"}`))
		o.Spec.ResourceSelectors[0].Name = "a"
		create(ctx, o)
		overridden := placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation
		Eventually(func() (string, error) {
			work, err := rendered()
			return work.Annotations[overridden], err
		}).WithTimeout(soon).WithPolling(often).ShouldNot(Equal(before.Annotations[overridden]))
		after, err := rendered()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(after.Spec.Workload.Manifests[0].Raw)).To(ContainSubstring(`"colour":"red"`))
	})

	It("that renders indefinitely does not block others", func(ctx SpecContext) {
		makeNamespace(ctx, "endless")
		joinAll(ctx, "endless", nil, nil)
		addon(ctx, "endless", "a", chartOf(map[string]string{"templates/a.yaml": "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}"}), nil)
		place(ctx, "endless", "endless", nil)
		for _, member := range []string{"endless-1", "endless-2"} {
			Eventually(problemOn(ctx, "endless", member)).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("the chart takes more than it may"))
		}
		shop(ctx, "brisk-shop")
		joinAll(ctx, "brisk", nil)
		place(ctx, "brisk", "brisk-shop", nil)
		expectAvailable(ctx, "brisk", "0")
	})
})

var _ = Describe("The examples of docs/how-to/addons.md", func() {
	It("about rights are accepted unchanged", func(ctx SpecContext) {
		makeNamespace(ctx, "network-system")
		applyBlock(ctx, "kind: Role")
	})
})
