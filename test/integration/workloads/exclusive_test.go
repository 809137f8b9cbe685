// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// placeWithEnvelope places a namespace, with an envelope that has this manifest. The default strategy is
// ClientSideApply.
func placeWithEnvelope(ctx context.Context, name, manifest string, strategy ...placementv1beta1.ApplyStrategyType) {
	GinkgoHelper()
	cleanUp(name)
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	envelop(ctx, name, manifest)
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	crp.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"member-1"}}
	crp.Spec.Strategy.RollingUpdate = soonAvailable()
	if len(strategy) > 0 {
		crp.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: strategy[0]}
	}
	Expect(hub.Create(ctx, crp)).To(Succeed())
}

// envelop replaces the manifest in the envelope, which unlike an object of the hub has no defaults.
func envelop(ctx context.Context, namespace, manifest string) {
	GinkgoHelper()
	text := "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\nmetadata: {name: objects, namespace: " + namespace + "}\ndata:\n  a.yaml:\n    " +
		strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(manifest, "NAMESPACE", namespace)), "\n", "\n    ")
	applyText(ctx, running.Hub, text)
}

// failedOn is the first failure of a placement on member-1; empty if there is none.
func failedOn(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		crp, err := placement(ctx, name)
		for _, status := range crp.Status.PlacementStatuses {
			for _, failed := range status.FailedPlacements {
				return failed.Condition.Reason + ": " + failed.Condition.Message, err
			}
		}
		return "", err
	}
}

var _ = Describe("Fields that exclude each other", func() {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: NAMESPACE, name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.org/web:1
        livenessProbe: {httpGet: {path: /, port: 80}}
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
`
	It("reverts another handler of a probe, and a value instead of a reference", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "exclusive", deployment)
		container := memberHas("exclusive/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) corev1.Container { return d.Spec.Template.Spec.Containers[0] })
		Eventually(container).WithContext(ctx).Should(HaveField("LivenessProbe.HTTPGet", Not(BeNil())))
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "exclusive", Name: "web"}}
		Expect(member1.Patch(ctx, web, client.RawPatch(types.JSONPatchType, []byte(`[
			{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe","value":{"exec":{"command":["true"]}}},
			{"op":"replace","path":"/spec/template/spec/containers/0/env/0","value":{"name":"POD","value":"other"}}]`)))).To(Succeed())
		Eventually(container).WithContext(ctx).Should(SatisfyAll(
			HaveField("LivenessProbe.HTTPGet", Not(BeNil())), HaveField("LivenessProbe.Exec", BeNil()),
			HaveField("Env", ConsistOf(SatisfyAll(HaveField("Value", ""), HaveField("ValueFrom", Not(BeNil())))))))
		waitAvailable(ctx, "exclusive")
		Expect(failedOn("exclusive")(ctx)).To(BeEmpty())
	})

	It("reverts the other limit of a PodDisruptionBudget, and session affinity of a Service", func(ctx SpecContext) {
		const name = "exclusive-spec"
		placeWithEnvelope(ctx, name, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: NAMESPACE, name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
`)
		budget := memberHas(name+"/web", &policyv1.PodDisruptionBudget{}, func(b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetSpec { return b.Spec })
		Eventually(budget).WithContext(ctx).Should(HaveField("MaxUnavailable", Not(BeNil())))
		Expect(member1.Patch(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxUnavailable":null,"minAvailable":1}}`)))).To(Succeed())
		Eventually(budget).WithContext(ctx).Should(SatisfyAll(HaveField("MaxUnavailable", Not(BeNil())), HaveField("MinAvailable", BeNil())))
		envelop(ctx, name, `
apiVersion: v1
kind: Service
metadata: {namespace: NAMESPACE, name: web}
spec: {selector: {app: web}, ports: [{port: 80}], sessionAffinity: None}
`)
		service := memberHas(name+"/web", &corev1.Service{}, func(s *corev1.Service) corev1.ServiceSpec { return s.Spec })
		Eventually(service).WithContext(ctx).Should(HaveField("SessionAffinity", corev1.ServiceAffinityNone))
		Expect(member1.Patch(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sessionAffinity":"ClientIP"}}`)))).To(Succeed())
		Eventually(service).WithContext(ctx).Should(SatisfyAll(HaveField("SessionAffinity", corev1.ServiceAffinityNone), HaveField("SessionAffinityConfig", BeNil())))
	})

	It("replaces the default update strategy of a Deployment with server-side apply", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "exclusive-ssa", templated("", "image: example.org/web:1"), placementv1beta1.ServerSideApply)
		strategy := memberHas("exclusive-ssa/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) appsv1.DeploymentStrategy { return d.Spec.Strategy })
		Eventually(strategy).WithContext(ctx).Should(HaveField("RollingUpdate", Not(BeNil())))
		envelop(ctx, "exclusive-ssa", templated("", "image: example.org/web:1")+"  strategy: {type: Recreate}\n")
		Eventually(strategy).WithContext(ctx).Should(SatisfyAll(HaveField("Type", appsv1.RecreateDeploymentStrategyType), HaveField("RollingUpdate", BeNil())))
		waitAvailable(ctx, "exclusive-ssa")
		Expect(failedOn("exclusive-ssa")(ctx)).To(BeEmpty())
	})

	It("replaces the default update strategy of a StatefulSet", func(ctx SpecContext) {
		const set = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: NAMESPACE, name: db}
spec:
  serviceName: db
  replicas: 0
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.org/db:1"}]}
`
		placeWithEnvelope(ctx, "exclusive-strategy", set)
		strategy := memberHas("exclusive-strategy/db", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) appsv1.StatefulSetUpdateStrategy { return s.Spec.UpdateStrategy })
		Eventually(strategy).WithContext(ctx).Should(HaveField("RollingUpdate", Not(BeNil())))
		envelop(ctx, "exclusive-strategy", set+"  updateStrategy: {type: OnDelete}\n")
		Eventually(strategy).WithContext(ctx).Should(SatisfyAll(HaveField("Type", appsv1.OnDeleteStatefulSetStrategyType), HaveField("RollingUpdate", BeNil())))
	})
})

var _ = Describe("A Service that is no longer headless", func() {
	const service = `
apiVersion: v1
kind: Service
metadata: {namespace: NAMESPACE, name: db ANNOTATIONS}
spec: {selector: {app: db}, ports: [{port: 80}] ADDRESS}
`
	manifest := func(annotations, address string) string {
		return strings.NewReplacer("ANNOTATIONS", annotations, "ADDRESS", address).Replace(service)
	}
	It("is reported, because the member's API server keeps it headless, and re-created if its author says so", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "headless", manifest("", ", clusterIP: None"))
		address := memberHas("headless/db", &corev1.Service{}, func(s *corev1.Service) string { return s.Spec.ClusterIP })
		Eventually(address).WithContext(ctx).Should(Equal(corev1.ClusterIPNone))
		waitAvailable(ctx, "headless")
		envelop(ctx, "headless", manifest("", ""))
		Eventually(failedOn("headless")).WithContext(ctx).Should(SatisfyAll(HavePrefix("ManifestApplyFailed: "), ContainSubstring("spec.clusterIP"),
			ContainSubstring(placementv1beta1.ImmutableChangeAnnotation)))
		Expect(address(ctx)).To(Equal(corev1.ClusterIPNone))
		envelop(ctx, "headless", manifest(", annotations: {"+placementv1beta1.ImmutableChangeAnnotation+": Recreate}", ""))
		Eventually(address).WithContext(ctx).Should(SatisfyAll(Not(BeEmpty()), Not(Equal(corev1.ClusterIPNone))))
		waitAvailable(ctx, "headless")
	})
})

var _ = Describe("Objects that API servers maintain", func() {
	It("leaves default roles, priority classes and APIServices on the hub when a placement selects all of their kinds", func(ctx SpecContext) {
		cleanUp("defaults")
		applyText(ctx, running.Hub, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: defaults-mine}, value: 7}`)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, running.Hub, "delete", "priorityclass", "defaults-mine")
		})
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{
			{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
			{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
			{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		}
		Expect(hub.Create(ctx, crp)).To(Succeed())
		Eventually(selectedBy("defaults")).WithContext(ctx).Should(ContainElement("PriorityClass/defaults-mine"))
		Expect(selectedBy("defaults")(ctx)).NotTo(ContainElement(SatisfyAny(
			HavePrefix("APIService/"), HavePrefix("PriorityClass/system-"), HavePrefix("FlowSchema/system"), HavePrefix("ClusterRole/system:"),
			HavePrefix("ClusterRoleBinding/system:"), Equal("ClusterRole/cluster-admin"), Equal("ClusterRole/edit"), Equal("ClusterRoleBinding/cluster-admin"))))
	})
})
