// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("Manifests of all sorts", func() {
	available := applied()
	untracked := outcome{Applied: "True/Applied", Available: "True/NotTrackable"}
	notYet := outcome{Applied: "True/Applied", Available: "False/ManifestNotAvailableYet"}
	failed := refused("ManifestApplyFailed")

	// Each text is one manifest, with $ns for a namespace that is there, whose name is
	// good for naming what is in none too. What is expected is that of the first, with
	// words of its message if it is refused.
	DescribeTable("become what their kind can be", func(ctx SpecContext, want outcome, mention string, texts ...string) {
		ns := freshNamespace(ctx)
		for i, text := range texts {
			texts[i] = strings.ReplaceAll(text, "$ns", ns)
		}
		createWork(ctx, "sort-"+ns, nil, texts...)
		Eventually(func(g Gomega) outcome {
			all := reportedOf(ctx, "sort-"+ns)(g)
			g.Expect(all).To(HaveLen(len(texts)))
			return all[0]
		}).Should(Equal(want))
		Expect(message(ctx, "sort-"+ns, 0, "Applied")).To(ContainSubstring(mention))
	},
		Entry("a Namespace", available, "", `{apiVersion: v1, kind: Namespace, metadata: {name: $ns-more}}`),
		Entry("a ConfigMap", available, "", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, binaryData: {x: AAE=}}`),
		Entry("a Secret", available, "", `{apiVersion: v1, kind: Secret, metadata: {namespace: $ns, name: a}, stringData: {x: "1"}}`),
		Entry("a ServiceAccount", available, "", `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: $ns, name: a}}`),
		Entry("a Service", available, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {ports: [{port: 80}]}}`),
		Entry("a headless Service", available, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {clusterIP: None, ports: [{port: 80}]}}`),
		Entry("a Service of type ExternalName", untracked, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {type: ExternalName, externalName: example.com}}`),
		Entry("a Service of type LoadBalancer", notYet, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`),
		Entry("a Deployment", available, "", deployment("$ns", "a", "a")),
		Entry("a Deployment of nothing", available, "", strings.Replace(deployment("$ns", "a", "a"), "replicas: 2", "replicas: 0", 1)),
		Entry("a StatefulSet", available, "", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: $ns, name: a}, spec: {serviceName: a, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
		Entry("a DaemonSet", available, "", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
		Entry("a ReplicaSet", untracked, "", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
		Entry("a Job", untracked, "", `{apiVersion: batch/v1, kind: Job, metadata: {namespace: $ns, name: a}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}`),
		Entry("a CronJob", untracked, "", `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: $ns, name: a}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}}}`),
		Entry("a Pod", untracked, "", `{apiVersion: v1, kind: Pod, metadata: {namespace: $ns, name: a}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}`),
		Entry("a PodDisruptionBudget", available, "", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: $ns, name: a}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: a}}}}`),
		Entry("a HorizontalPodAutoscaler", untracked, "", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: $ns, name: a}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`),
		Entry("an Ingress", untracked, "", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: $ns, name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`),
		Entry("an IngressClass", available, "", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: $ns}, spec: {controller: example.com/controller}}`),
		Entry("a NetworkPolicy", available, "", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: $ns, name: a}, spec: {podSelector: {}}}`),
		Entry("a ResourceQuota", available, "", `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: $ns, name: a}, spec: {hard: {pods: "100"}}}`),
		Entry("a LimitRange", available, "", `{apiVersion: v1, kind: LimitRange, metadata: {namespace: $ns, name: a}, spec: {limits: [{type: Container, default: {cpu: 100m}}]}}`),
		Entry("a PersistentVolumeClaim", untracked, "", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: $ns, name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`),
		Entry("a PersistentVolume", untracked, "", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: $ns}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}}`),
		Entry("a StorageClass", available, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: $ns}, provisioner: example.com/none}`),
		Entry("a PriorityClass", available, "", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $ns}, value: 7}`),
		Entry("a Role", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $ns, name: a}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
		Entry("a RoleBinding, before its Role", available, "",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $ns, name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $ns, name: a}}`),
		Entry("a ClusterRole", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $ns}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
		Entry("a ClusterRoleBinding", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: $ns}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`),
		Entry("a Lease", untracked, "", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: $ns, name: a}, spec: {holderIdentity: nobody}}`),
		Entry("an EndpointSlice", untracked, "", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: $ns, name: a}, addressType: IPv4, endpoints: []}`),
		Entry("a RuntimeClass", untracked, "", `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: $ns}, handler: none}`),
		Entry("a webhook configuration", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: $ns}, webhooks: []}`),
		Entry("an admission policy", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: $ns}, spec: {failurePolicy: Ignore, matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: "true"}]}}`),
		Entry("an object before its namespace", available, "",
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns-new, name: a}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: $ns-new}}`),
		Entry("a CustomResourceDefinition", available, "", gadgets("one")),
		Entry("a custom resource before its definition", untracked, "",
			`{apiVersion: two.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}, spec: {size: 1}}`, gadgets("two")),
		Entry("a custom resource of no definition", failed, "no kind Gadget in none.sorts.example.com/v1",
			`{apiVersion: none.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}}`),
		Entry("a custom resource that its schema refuses", failed, "spec.size",
			`{apiVersion: three.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}, spec: {size: large}}`, gadgets("three")),
		Entry("a kind in a version that is not served", failed, "no kind Deployment in apps/v1beta1", `{apiVersion: apps/v1beta1, kind: Deployment, metadata: {namespace: $ns, name: a}}`),
		Entry("a kind that can only be created", failed, "metadata", `{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: a}, spec: {}}`),
		Entry("a manifest with what an API server writes", available, "",
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a, uid: x, resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z", generation: 7}, status: {x: y}}`),
		Entry("a manifest with an owner", available, "",
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: gone}]}}`),
		Entry("a manifest with a field that its kind has not", available, "", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, colour: blue}`),
		Entry("a generated name", refused("FoundGenerateName"), "metadata.name", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, generateName: a-}}`),
		Entry("no name", refused("DecodingErred"), "metadata.name is missing", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns}}`),
		Entry("a name that no object can have", failed, "metadata.name", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: "Not_A_Name"}}`),
		Entry("no namespace where one is needed", failed, "metadata.namespace", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`),
		Entry("a namespace where none is", failed, "metadata.namespace", `{apiVersion: v1, kind: Namespace, metadata: {namespace: $ns, name: $ns-a}}`),
		Entry("a namespace that is not there", failed, `-none" not found`, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns-none, name: a}}`),
		Entry("a list", refused("DecodingErred"), "each of its items", `{apiVersion: v1, kind: List, metadata: {name: a}, items: []}`),
		Entry("an invalid value", failed, "spec.replicas", strings.Replace(deployment("$ns", "a", "a"), "replicas: 2", "replicas: -1", 1)),
		Entry("a text where a list belongs", failed, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {ports: many}}`),
		Entry("a selector that does not fit its template", failed, "spec.template.metadata.labels",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
		Entry("more than an object may hold", failed, "1048576", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, data: {x: "`+strings.Repeat("x", 1<<20+16)+`"}}`),
		Entry("more than an annotation may hold", available, "", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, data: {x: "`+strings.Repeat("x", 300<<10)+`"}}`),
		Entry("a Secret that its type refuses", failed, "data", `{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {namespace: $ns, name: a}}`),
	)

	It("keep their finalizers, and what is going is made again when it is gone", func(ctx SpecContext) {
		ns := freshNamespace(ctx)
		held := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + ns + `, name: a, finalizers: [example.com/held]}}`
		createWork(ctx, "finalizers", nil, held)
		Eventually(reported(ctx, "finalizers")).Should(beDone())
		before := getConfigMap(ctx, ns, "a")
		Expect(before.Finalizers).To(HaveExactElements("example.com/held"))

		Expect(memberClient.Delete(ctx, before)).To(Succeed())
		Eventually(reported(ctx, "finalizers")).Should(beRefused())
		Expect(message(ctx, "finalizers", 0, "Applied")).To(And(ContainSubstring("being deleted"), ContainSubstring("example.com/held")))
		Expect(memberClient.Patch(ctx, before, mergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(reported(ctx, "finalizers")).Should(beDone())
		Expect(getConfigMap(ctx, ns, "a").UID).NotTo(Equal(before.UID))

		changeWork(ctx, "finalizers", configMap(ns, "a"))
		Eventually(func() []string { return getConfigMap(ctx, ns, "a").Finalizers }).Should(BeEmpty())
	})

	It("do not bring owners of theirs", func(ctx SpecContext) {
		ns := freshNamespace(ctx)
		createWork(ctx, "owned", nil,
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: gone}]}}`)
		Eventually(reported(ctx, "owned")).Should(beDone())
		Expect(getConfigMap(ctx, ns, "a").OwnerReferences).To(HaveExactElements(HaveField("Kind", "AppliedWork")))
	})

	It("are written once, also when the member keeps them in another form", func(ctx SpecContext) {
		ns := freshNamespace(ctx)
		createWork(ctx, "other-form", nil,
			`{apiVersion: v1, kind: Secret, metadata: {namespace: `+ns+`, name: a}, stringData: {x: "1"}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: a}, colour: blue}`,
			`{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: `+ns+`, name: a}, spec: {hard: {requests.cpu: "1000m"}}}`)
		Eventually(reported(ctx, "other-form")).Should(beDone())
		versions := func() []string {
			var found []string
			for _, kind := range []string{"Secret", "ConfigMap"} {
				object, err := onMember(ctx, "v1", kind, ns, "a")
				Expect(err).NotTo(HaveOccurred())
				found = append(found, object.GetResourceVersion())
			}
			return append(found, getWork(ctx, "other-form").ResourceVersion)
		}
		before := versions()
		restartAgent()
		createWork(ctx, "after-other-form", nil, configMap(ns, "z"))
		Eventually(reported(ctx, "after-other-form")).Should(beDone())
		Consistently(versions).Should(Equal(before))
	})

	It("arrive in one look, a definition and its resources, without a refusal in between", func(ctx SpecContext) {
		ns := freshNamespace(ctx)
		watch, err := watchWorks(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watch.Stop)
		createWork(ctx, "definition", nil,
			`{apiVersion: four.sorts.example.com/v1, kind: Gadget, metadata: {namespace: `+ns+`, name: a}, spec: {size: 1}}`, gadgets("four"))
		seen := map[string]bool{}
		Eventually(func() string {
			event := <-watch.ResultChan()
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || object.GetName() != "definition" {
				return ""
			}
			applied := statusOf(object, "Applied")
			seen[applied] = true
			return applied
		}).Should(Equal(string(metav1.ConditionTrue)))
		Expect(seen).NotTo(HaveKey(string(metav1.ConditionFalse)))
	})
})

// gadgets is a CustomResourceDefinition in a group of its own.
func gadgets(group string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.` + group + `.sorts.example.com}
spec:
  group: ` + group + `.sorts.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`
}
