// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Manifests of various kinds", func() {
	available := applied()
	untracked := outcome{Applied: "True/Applied", Available: "True/NotTrackable"}
	notYet := outcome{Applied: "True/Applied", Available: "False/ManifestNotAvailableYet"}
	failed := refused("ManifestApplyFailed")

	// All objects are created at once and checked one by one, because each needs time to settle.
	Context("reach the availability of their kind", Ordered, ContinueOnFailure, func() {
		sorts := []*sort{
			become("a Namespace", available, "", `{apiVersion: v1, kind: Namespace, metadata: {name: $ns-more}}`),
			become("a ConfigMap", available, "", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, binaryData: {x: AAE=}}`),
			become("a Secret", available, "", `{apiVersion: v1, kind: Secret, metadata: {namespace: $ns, name: a}, stringData: {x: "1"}}`),
			become("a ServiceAccount", available, "", `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: $ns, name: a}}`),
			become("a Service", available, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {ports: [{port: 80}]}}`),
			become("a headless Service", available, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {clusterIP: None, ports: [{port: 80}]}}`),
			become("a Service of type ExternalName", untracked, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {type: ExternalName, externalName: example.com}}`),
			become("a Service of type LoadBalancer", notYet, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`),
			become("a Deployment", available, "", build.DeploymentText("$ns", "a", "a")),
			become("a Deployment of nothing", available, "", strings.Replace(build.DeploymentText("$ns", "a", "a"), "replicas: 2", "replicas: 0", 1)),
			become("a StatefulSet", available, "", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: $ns, name: a}, spec: {serviceName: a, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("a DaemonSet", available, "", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("a ReplicaSet", untracked, "", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("a Job", untracked, "", `{apiVersion: batch/v1, kind: Job, metadata: {namespace: $ns, name: a}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("a CronJob", untracked, "", `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: $ns, name: a}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}}}`),
			become("a Pod", untracked, "", `{apiVersion: v1, kind: Pod, metadata: {namespace: $ns, name: a}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}`),
			become("a PodDisruptionBudget", available, "", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: $ns, name: a}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: a}}}}`),
			become("a HorizontalPodAutoscaler", untracked, "", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: $ns, name: a}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`),
			become("an Ingress", untracked, "", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: $ns, name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`),
			become("an IngressClass", available, "", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: $ns}, spec: {controller: example.com/controller}}`),
			become("a NetworkPolicy", available, "", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: $ns, name: a}, spec: {podSelector: {}}}`),
			become("a ResourceQuota", available, "", `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: $ns, name: a}, spec: {hard: {pods: "100"}}}`),
			become("a LimitRange", available, "", `{apiVersion: v1, kind: LimitRange, metadata: {namespace: $ns, name: a}, spec: {limits: [{type: Container, default: {cpu: 100m}}]}}`),
			become("a PersistentVolumeClaim that nothing can be bound to", notYet, "", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: $ns, name: a}, spec: {storageClassName: no-such-class, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`),
			become("a PersistentVolume", untracked, "", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: $ns}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}}`),
			become("a StorageClass", available, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: $ns}, provisioner: example.com/none}`),
			become("a PriorityClass", available, "", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $ns}, value: 7}`),
			become("a Role", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $ns, name: a}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
			become("a RoleBinding, before its Role", available, "",
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $ns, name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`,
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: $ns, name: a}}`),
			become("a ClusterRole", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $ns}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
			become("a RoleBinding with an empty group", available, "",
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $ns, name: b}, roleRef: {apiGroup: "", kind: Role, name: a}}`),
			become("a ClusterRoleBinding", available, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: $ns}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`),
			become("a Lease", untracked, "", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: $ns, name: a}, spec: {holderIdentity: nobody}}`),
			become("an EndpointSlice", untracked, "", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: $ns, name: a}, addressType: IPv4, endpoints: []}`),
			become("a RuntimeClass", untracked, "", `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: $ns}, handler: none}`),
			become("a webhook configuration", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: $ns}, webhooks: []}`),
			become("an admission policy", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: $ns}, spec: {failurePolicy: Ignore, matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: "true"}]}}`),
			become("a mutating webhook configuration", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: $ns}, webhooks: []}`),
			become("a binding of an admission policy", untracked, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: $ns}, spec: {policyName: none, validationActions: [Audit]}}`),
			become("a ReplicationController", untracked, "", `{apiVersion: v1, kind: ReplicationController, metadata: {namespace: $ns, name: a}, spec: {replicas: 0, selector: {app: a}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("a PodTemplate", untracked, "", `{apiVersion: v1, kind: PodTemplate, metadata: {namespace: $ns, name: a}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}`),
			become("a ControllerRevision", available, "", `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: $ns, name: a}, revision: 1, data: {x: "1"}}`),
			become("Endpoints", untracked, "", `{apiVersion: v1, kind: Endpoints, metadata: {namespace: $ns, name: a}, subsets: []}`),
			become("a CSIDriver", available, "", `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: $ns.example.com}, spec: {attachRequired: false}}`),
			become("a FlowSchema", untracked, "", `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: $ns}, spec: {priorityLevelConfiguration: {name: catch-all}, matchingPrecedence: 9999}}`),
			become("a PriorityLevelConfiguration", untracked, "", `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: $ns}, spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}}`),
			become("an object before its namespace", available, "",
				`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns-new, name: a}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: $ns-new}}`),
			become("a CustomResourceDefinition", available, "", gadgets("one")),
			become("a custom resource before its definition", untracked, "",
				`{apiVersion: two.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}, spec: {size: 1}}`, gadgets("two")),
			become("a custom resource of no definition", refused("DecodingErred"), "no kind Gadget in none.sorts.example.com/v1",
				`{apiVersion: none.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}}`),
			become("a custom resource that its schema refuses", failed, "spec.size",
				`{apiVersion: three.sorts.example.com/v1, kind: Gadget, metadata: {namespace: $ns, name: a}, spec: {size: large}}`, gadgets("three")),
			become("a kind in a version that is not served", refused("DecodingErred"), "no kind Deployment in apps/v1beta1", `{apiVersion: apps/v1beta1, kind: Deployment, metadata: {namespace: $ns, name: a}}`),
			become("a kind that can only be created", failed, "metadata", `{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: a}, spec: {}}`),
			become("a manifest with what an API server writes", available, "",
				`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a, uid: x, resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z", generation: 7}, status: {x: y}}`),
			become("a manifest with an owner", available, "",
				`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: gone}]}}`),
			become("a manifest with a field that its kind has not", refused("FieldsNotApplied"), "/colour", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, colour: blue}`),
			become("a generated name", refused("FoundGenerateName"), "metadata.name", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, generateName: a-}}`),
			become("no name", refused("DecodingErred"), "metadata.name is missing", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns}}`),
			become("a name that no object can have", failed, "metadata.name", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: "Not_A_Name"}}`),
			become("no namespace where one is needed", failed, "metadata.namespace", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`),
			become("a namespace where none is", failed, "metadata.namespace", `{apiVersion: v1, kind: Namespace, metadata: {namespace: $ns, name: $ns-a}}`),
			become("a namespace that is not there", failed, `-none" not found`, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns-none, name: a}}`),
			become("a list", refused("DecodingErred"), "each of its items", `{apiVersion: v1, kind: List, metadata: {name: a}, items: []}`),
			become("an invalid value", failed, "spec.replicas", strings.Replace(build.DeploymentText("$ns", "a", "a"), "replicas: 2", "replicas: -1", 1)),
			become("a text where a list belongs", failed, "", `{apiVersion: v1, kind: Service, metadata: {namespace: $ns, name: a}, spec: {ports: many}}`),
			become("a selector that does not fit its template", failed, "spec.template.metadata.labels",
				`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: $ns, name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`),
			become("more than an object may hold", failed, "1048576", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, data: {x: "`+strings.Repeat("x", 1<<20+16)+`"}}`),
			become("more than an annotation may hold", available, "", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $ns, name: a}, data: {x: "`+strings.Repeat("x", 300<<10)+`"}}`),
			become("a Secret that its type refuses", failed, "data", `{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {namespace: $ns, name: a}}`),
		}

		BeforeAll(func(ctx SpecContext) {
			for _, s := range sorts {
				s.create(ctx)
			}
			DeferCleanup(func(ctx SpecContext) {
				for _, s := range sorts {
					Expect(client.IgnoreNotFound(hubClient.Delete(ctx, s.work))).To(Succeed())
				}
				for _, s := range sorts {
					if strings.Contains(s.texts[0], "two.sorts.example.com") {
						collect(ctx, s.work.Name, "two.sorts.example.com/v1", "Gadget", strings.TrimPrefix(s.work.Name, "sort-"), "a")
					}
					Eventually(expect.Gone(ctx, hubClient, s.work)).Should(BeTrue(), s.name)
				}
			})
		})

		for _, s := range sorts {
			It(s.name, func(ctx SpecContext) {
				Eventually(func(g Gomega) outcome {
					all := reportedOf(ctx, s.work.Name)(g)
					g.Expect(all).To(HaveLen(len(s.texts)))
					return all[0]
				}).Should(Equal(s.want))
				Expect(message(ctx, s.work.Name, 0, "Applied")).To(ContainSubstring(s.mention))
			})
		}
	})

	It("keep their finalizers and are re-created after a deletion completes", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		held := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + ns + `, name: a, finalizers: [example.com/held]}}`
		createWork(ctx, "finalizers", nil, held)
		Eventually(reported(ctx, "finalizers")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(before.Finalizers).To(HaveExactElements("example.com/held"))

		Expect(memberClient.Delete(ctx, before)).To(Succeed())
		Eventually(reported(ctx, "finalizers")).Should(beRefused())
		Expect(message(ctx, "finalizers", 0, "Applied")).To(And(ContainSubstring("being deleted"), ContainSubstring("example.com/held")))
		Expect(memberClient.Patch(ctx, before, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(reported(ctx, "finalizers")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").UID).NotTo(Equal(before.UID))

		changeWork(ctx, "finalizers", build.ConfigMapText(ns, "a"))
		Eventually(func() []string { return expect.ConfigMap(ctx, memberClient, ns, "a").Finalizers }).Should(BeEmpty())
	})

	It("do not set owner references", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "owned", nil,
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: gone}]}}`)
		Eventually(reported(ctx, "owned")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences).To(HaveExactElements(HaveField("Kind", "AppliedWork")))
	})

	It("are written once, also when the member normalizes them", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "other-form", nil,
			`{apiVersion: v1, kind: Secret, metadata: {namespace: `+ns+`, name: a}, stringData: {x: "1"}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: a}, data: {x: "1"}}`,
			`{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: `+ns+`, name: a}, spec: {hard: {requests.cpu: "1000m"}}}`)
		Eventually(reported(ctx, "other-form")).Should(beDone())
		versions := func() []string {
			var found []string
			for _, kind := range []string{"Secret", "ConfigMap"} {
				object, err := expect.Found(ctx, memberClient, "v1", kind, ns, "a")
				Expect(err).NotTo(HaveOccurred())
				found = append(found, object.GetResourceVersion())
			}
			return append(found, getWork(ctx, "other-form").ResourceVersion)
		}
		before := versions()
		restartAgent()
		createWork(ctx, "after-other-form", nil, build.ConfigMapText(ns, "z"))
		Eventually(reported(ctx, "after-other-form")).Should(beDone())
		Consistently(versions).Should(Equal(before))
	})

	It("are applied in one reconcile if they are a definition and its resources", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		watch, err := watchWorks(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watch.Stop)
		createWork(ctx, "definition", nil,
			`{apiVersion: four.sorts.example.com/v1, kind: Gadget, metadata: {namespace: `+ns+`, name: a}, spec: {size: 1}}`, gadgets("four"))
		DeferCleanup(func(ctx SpecContext) {
			collect(ctx, "definition", "four.sorts.example.com/v1", "Gadget", ns, "a")
		})
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

var _ = Describe("A manifest in another version than its predecessor", func() {
	It("is applied on the server although the version of the predecessor lacks its field", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gizmos.versions.example.com}, spec: {group: versions.example.com,
			scope: Namespaced, names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList}, versions: [
			{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {kept: {type: string}, dropped: {type: string}}}}}}},
			{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {kept: {type: string}, dropped: {type: string}, added: {type: string}}}}}}}]}}`
		gizmo := func(version, spec string) string {
			return `{apiVersion: versions.example.com/` + version + `, kind: Gizmo, metadata: {namespace: ` + ns + `, name: a}, spec: {` + spec + `}}`
		}
		createWork(ctx, "versions", &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}, definition, gizmo("v1", "kept: a, dropped: a"))
		DeferCleanup(func(ctx SpecContext) { collect(ctx, "versions", "versions.example.com/v2", "Gizmo", ns, "a") })
		Eventually(reportedOf(ctx, "versions")).Should(HaveEach(HaveField("Applied", "True/Applied")))
		changeWork(ctx, "versions", definition, gizmo("v2", "kept: b, added: b"))
		Eventually(func(g Gomega) any {
			object, err := expect.Found(ctx, memberClient, "versions.example.com/v2", "Gizmo", ns, "a")
			g.Expect(err).NotTo(HaveOccurred())
			return object.Object["spec"]
		}).Should(Equal(map[string]any{"kept": "b", "added": "b"}))
		Eventually(reportedOf(ctx, "versions")).Should(HaveEach(HaveField("Applied", "True/Applied")))
	})
})

var _ = Describe("A kind that was removed from the member", func() {
	It("is reported as not installed to a later Work and applied once it is installed again", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		gadget := `{apiVersion: five.sorts.example.com/v1, kind: Gadget, metadata: {namespace: ` + ns + `, name: a}, spec: {size: 1}}`
		createWork(ctx, "removed-kind", nil, gadgets("five"), gadget)
		Eventually(reportedOf(ctx, "removed-kind")).Should(HaveEach(HaveField("Applied", "True/Applied")))
		collect(ctx, "removed-kind", "five.sorts.example.com/v1", "Gadget", ns, "a")

		createWork(ctx, "after-removed-kind", nil, gadget)
		DeferCleanup(func(ctx SpecContext) {
			collect(ctx, "after-removed-kind", "five.sorts.example.com/v1", "Gadget", ns, "a")
		})
		Eventually(reportedOf(ctx, "after-removed-kind")).Should(HaveExactElements(refused("DecodingErred")))
		Expect(message(ctx, "after-removed-kind", 0, "Applied")).To(ContainSubstring("no kind Gadget in five.sorts.example.com/v1"))

		createWork(ctx, "kind-is-back", nil, gadgets("five"))
		Eventually(reportedOf(ctx, "after-removed-kind")).Should(HaveExactElements(HaveField("Applied", "True/Applied")))
	})
})

// sort is a kind of manifest with its expected outcome.
type sort struct {
	name    string
	want    outcome
	mention string // part of the refusal's message
	texts   []string
	work    *placementv1beta1.Work
}

// become expects an outcome of the first manifest. $ns stands for an existing namespace, whose name
// is also used for cluster-scoped objects.
func become(name string, want outcome, mention string, texts ...string) *sort {
	return &sort{name: name, want: want, mention: mention, texts: texts}
}

// create creates the Work of a sort, like createWork without cleanup.
func (s *sort) create(ctx context.Context) {
	GinkgoHelper()
	ns := expect.FreshNamespace(ctx, memberClient)
	var texts []string
	for _, text := range s.texts {
		texts = append(texts, strings.ReplaceAll(text, "$ns", ns))
	}
	s.work = &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "sort-" + ns}}
	s.work.Spec.Workload.Manifests = manifests(texts...)
	Expect(hubClient.Create(ctx, s.work)).To(Succeed())
}

// gadgets returns a CustomResourceDefinition in its own group.
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
