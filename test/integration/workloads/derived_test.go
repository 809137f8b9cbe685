// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// templated is a Deployment with fields in the Pod's spec and in its container.
func templated(pod, container string) string {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: NAMESPACE, name: web, annotations: null, finalizers: null}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {POD volumes: null, containers: [{name: web, CONTAINER}]}
`
	return strings.NewReplacer("POD", pod, "CONTAINER", container).Replace(deployment)
}

// podSpecOf describes the template of a Deployment.
func podSpecOf(d *appsv1.Deployment) string {
	pod, container := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	text := fmt.Sprintf("account %q/%q, %s %s", pod.ServiceAccountName, pod.DeprecatedServiceAccount, container.Image, container.ImagePullPolicy)
	for _, port := range container.Ports {
		text += fmt.Sprintf(", %s %d", port.Protocol, port.ContainerPort)
	}
	return text
}

var _ = Describe("Fields that an API server derived from an earlier manifest", func() {
	It("derives them again when the manifest changes", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "derived", templated("serviceAccountName: first,", "image: example.org/web"))
		template := memberHas("derived/web", &appsv1.Deployment{}, podSpecOf)
		Eventually(template).WithContext(ctx).Should(Equal(`account "first"/"first", example.org/web Always`))
		envelop(ctx, "derived", templated("", "image: example.org/web:1"))
		Eventually(template).WithContext(ctx).Should(Equal(`account ""/"", example.org/web:1 IfNotPresent`))
		waitAvailable(ctx, "derived")
	})

	It("keeps those that the manifest sets", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "derived-set", templated("serviceAccountName: first,", "image: example.org/web"))
		template := memberHas("derived-set/web", &appsv1.Deployment{}, podSpecOf)
		Eventually(template).WithContext(ctx).Should(Equal(`account "first"/"first", example.org/web Always`))
		envelop(ctx, "derived-set", templated("serviceAccount: first,", "image: example.org/web:1, imagePullPolicy: Always"))
		Eventually(template).WithContext(ctx).Should(Equal(`account "first"/"first", example.org/web:1 Always`))
	})

	It("removes the service account with server-side apply", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "derived-ssa", templated("serviceAccountName: first,", "image: example.org/web:1"), placementv1beta1.ServerSideApply)
		template := memberHas("derived-ssa/web", &appsv1.Deployment{}, podSpecOf)
		Eventually(template).WithContext(ctx).Should(HavePrefix(`account "first"/"first"`))
		envelop(ctx, "derived-ssa", templated("", "image: example.org/web:2"))
		Eventually(template).WithContext(ctx).Should(HavePrefix(`account ""/"", example.org/web:2`))
		envelop(ctx, "derived-ssa", templated("serviceAccountName: second,", "image: example.org/web:3"))
		Eventually(template).WithContext(ctx).Should(HavePrefix(`account "second"/"second", example.org/web:3`))
	})

	It("isolates Pods for egress once a NetworkPolicy has such rules, and no longer without them", func(ctx SpecContext) {
		const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {namespace: NAMESPACE, name: web}
spec: {podSelector: {}, ingress: [{}]`
		for name, strategy := range map[string]placementv1beta1.ApplyStrategyType{
			"derived-policy": placementv1beta1.ClientSideApply, "derived-policy-ssa": placementv1beta1.ServerSideApply,
		} {
			placeWithEnvelope(ctx, name, policy+"}", strategy)
			types := memberHas(name+"/web", &networkingv1.NetworkPolicy{}, func(p *networkingv1.NetworkPolicy) []networkingv1.PolicyType { return p.Spec.PolicyTypes })
			Eventually(types).WithContext(ctx).Should(ConsistOf(networkingv1.PolicyTypeIngress))
			envelop(ctx, name, policy+", egress: [{}]}")
			Eventually(types).WithContext(ctx).Should(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
			envelop(ctx, name, policy+"}")
			Eventually(types).WithContext(ctx).Should(ConsistOf(networkingv1.PolicyTypeIngress))
			Expect(failedOn(name)(ctx)).To(BeEmpty())
		}
	})

	It("removes the timeout of session affinity, with which the member would refuse the Service", func(ctx SpecContext) {
		const service = `
apiVersion: v1
kind: Service
metadata: {namespace: NAMESPACE, name: web}
spec: {selector: {app: web}, ports: [{port: 80}], sessionAffinity: AFFINITY}
`
		placeWithEnvelope(ctx, "derived-affinity", strings.Replace(service, "AFFINITY", "ClientIP", 1))
		spec := memberHas("derived-affinity/web", &corev1.Service{}, func(s *corev1.Service) corev1.ServiceSpec { return s.Spec })
		Eventually(spec).WithContext(ctx).Should(HaveField("SessionAffinityConfig", Not(BeNil())))
		envelop(ctx, "derived-affinity", strings.Replace(service, "AFFINITY", "None", 1))
		Eventually(spec).WithContext(ctx).Should(SatisfyAll(HaveField("SessionAffinity", corev1.ServiceAffinityNone), HaveField("SessionAffinityConfig", BeNil())))
	})
})

var _ = Describe("A port whose number was changed on the member", func() {
	It("is reverted, although both ports have one name", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "ports", `
apiVersion: v1
kind: Service
metadata: {namespace: NAMESPACE, name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80, nodePort: 30480}]}
`)
		ports := memberHas("ports/web", &corev1.Service{}, func(s *corev1.Service) string {
			var all []string
			for _, port := range s.Spec.Ports {
				all = append(all, fmt.Sprintf("%s %d %d", port.Name, port.Port, port.NodePort))
			}
			return strings.Join(all, ", ")
		})
		Eventually(ports).WithContext(ctx).Should(Equal("http 80 30480"))
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ports", Name: "web"}}
		Expect(member1.Patch(ctx, service, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/ports/0/port","value":81}]`)))).To(Succeed())
		Eventually(ports).WithContext(ctx).Should(Equal("http 80 30480"))
		Eventually(failedOn("ports")).WithContext(ctx).Should(BeEmpty())
	})

	It("is reverted in a Service with one port without a name, and in a container", func(ctx SpecContext) {
		placeWithEnvelope(ctx, "ports-unnamed", `
apiVersion: v1
kind: Service
metadata: {namespace: NAMESPACE, name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`)
		ports := memberHas("ports-unnamed/web", &corev1.Service{}, func(s *corev1.Service) []corev1.ServicePort { return s.Spec.Ports })
		Eventually(ports).WithContext(ctx).Should(ConsistOf(HaveField("Port", BeEquivalentTo(80))))
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ports-unnamed", Name: "web"}}
		Expect(member1.Patch(ctx, service, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/ports/0/port","value":81}]`)))).To(Succeed())
		Eventually(ports).WithContext(ctx).Should(ConsistOf(HaveField("Port", BeEquivalentTo(80))))

		envelop(ctx, "ports-unnamed", templated("", "image: example.org/web:1, ports: [{name: http, containerPort: 8080}]"))
		template := memberHas("ports-unnamed/web", &appsv1.Deployment{}, podSpecOf)
		Eventually(template).WithContext(ctx).Should(HaveSuffix("IfNotPresent, TCP 8080"))
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ports-unnamed", Name: "web"}}
		Expect(member1.Patch(ctx, web, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/ports/0/containerPort","value":8081}]`)))).To(Succeed())
		Eventually(template).WithContext(ctx).Should(HaveSuffix("IfNotPresent, TCP 8080"))
	})
})
