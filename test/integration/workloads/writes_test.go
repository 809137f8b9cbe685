// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

// memberHas gets an object of member-1 and returns the result of read.
func memberHas[T client.Object, V any](key string, object T, read func(T) V) func(context.Context) (V, error) {
	namespace, name, _ := strings.Cut(key, "/")
	return func(ctx context.Context) (V, error) {
		err := member1.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if err != nil {
			var none V
			return none, err
		}
		return read(object), nil
	}
}

// applyText applies one object with kubectl.
func applyText(ctx context.Context, at *env.Cluster, object string) {
	GinkgoHelper()
	output, err := program.Kubectl(ctx, at, object, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), output)
}

func keysOf[V any](values map[string]V) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	return keys
}

var _ = Describe("Fields that a later manifest removes", func() {
	It("removes a key from members when a ConfigMap of more than 256 KiB becomes small", func(ctx SpecContext) {
		cleanUp("r02")
		applyFile(ctx, running.Hub, "02-shrink-configmap.yaml")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "r02", Name: "large"},
			Data: map[string]string{"kept": "1", "revoked": "secret", "large": strings.Repeat("x", 300<<10)}}
		Expect(hub.Create(ctx, object)).To(Succeed())
		keys := memberHas("r02/large", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) []string { return keysOf(c.Data) })
		Eventually(keys).WithContext(ctx).Should(ConsistOf("kept", "revoked", "large"))
		object.Data = map[string]string{"kept": "2"}
		Expect(hub.Update(ctx, object)).To(Succeed())
		Eventually(memberHas("r02/large", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) string { return c.Data["kept"] })).
			WithContext(ctx).Should(Equal("2"))
		Eventually(keys).WithContext(ctx).Should(ConsistOf("kept"))
	})

	It("removes a key of a Secret's stringData from members", func(ctx SpecContext) {
		cleanUp("r03")
		applyFile(ctx, running.Hub, "03-stringdata-a.yaml")
		keys := memberHas("r03/creds", &corev1.Secret{}, func(s *corev1.Secret) []string { return keysOf(s.Data) })
		Eventually(keys).WithContext(ctx).Should(ConsistOf("user", "old-password", "password"))
		applyFile(ctx, running.Hub, "03-stringdata-b.yaml")
		Eventually(keys).WithContext(ctx).Should(ConsistOf("user", "password"))
	})

	It("keeps the replicas of members when an override removes the field", func(ctx SpecContext) {
		cleanUp("r26")
		applyFile(ctx, running.Hub, "26-replicas.yaml")
		replicas := memberHas("r26/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) int32 { return *d.Spec.Replicas })
		Eventually(replicas).WithContext(ctx).Should(BeEquivalentTo(5))
		applyFile(ctx, running.Hub, "26-override.yaml")
		Eventually(func(g Gomega, ctx context.Context) {
			work := &placementv1beta1.WorkList{}
			g.Expect(hub.List(ctx, work, client.InNamespace("fleet-member-member-1"),
				client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "r26"})).To(Succeed())
			g.Expect(work.Items).NotTo(BeEmpty())
			for _, w := range work.Items {
				for _, m := range w.Spec.Workload.Manifests {
					g.Expect(string(m.Raw)).NotTo(ContainSubstring(`"replicas"`))
				}
			}
		}).WithContext(ctx).Should(Succeed())
		waitAvailable(ctx, "r26")
		applyAgain(ctx, "r26")
		Expect(replicas(ctx)).To(BeEquivalentTo(5))
	})
})

var _ = Describe("An object that was applied with kubectl and taken over with ServerSideApply", func() {
	It("loses a field that the manifest drops, and keeps one that only kubectl set", func(ctx SpecContext) {
		const name = "adopted"
		manifest := func(data string) string {
			return "\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: NAMESPACE, name: c}\ndata: {" + data + "}\n"
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(member1.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		})
		Expect(member1.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		applyText(ctx, running.Members[0].Cluster, strings.ReplaceAll(manifest(`a: "1", b: "1", theirs: "1"`), "NAMESPACE", name))
		placeWithEnvelope(ctx, name, manifest(`a: "1", b: "1"`), placementv1beta1.ServerSideApply)
		data := memberHas(name+"/c", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) map[string]string { return c.Data })
		waitAvailable(ctx, name)
		Expect(data(ctx)).To(Equal(map[string]string{"a": "1", "b": "1", "theirs": "1"}))
		envelop(ctx, name, manifest(`a: "1"`))
		Eventually(data).WithContext(ctx).Should(Equal(map[string]string{"a": "1", "theirs": "1"}))
		Expect(failedOn(name)(ctx)).To(BeEmpty())
	})
})

var _ = Describe("Lists whose merge key is not unique", func() {
	It("applies a port for UDP beside one for TCP with the same number", func(ctx SpecContext) {
		cleanUp("r06")
		applyFile(ctx, running.Hub, "06-dns-service.yaml")
		ports := memberHas("r06/dns", &corev1.Service{}, func(s *corev1.Service) []string {
			var all []string
			for _, p := range s.Spec.Ports {
				all = append(all, fmt.Sprintf("%s %s %d %s", p.Name, p.Protocol, p.Port, p.TargetPort.String()))
			}
			return all
		})
		Eventually(ports).WithContext(ctx).Should(ConsistOf("dns-tcp TCP 53 53"))
		service := &corev1.Service{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "r06", Name: "dns"}, service)).To(Succeed())
		service.Spec.Ports = append(service.Spec.Ports,
			corev1.ServicePort{Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)})
		Expect(hub.Update(ctx, service)).To(Succeed())
		Eventually(ports).WithContext(ctx).Should(ConsistOf("dns-tcp TCP 53 53", "dns-udp UDP 53 5353"))
		service.Spec.Ports = service.Spec.Ports[1:]
		Expect(hub.Update(ctx, service)).To(Succeed())
		Eventually(ports).WithContext(ctx).Should(ConsistOf("dns-udp UDP 53 5353"))
	})
})

// duplicated creates a namespace with a Deployment that has two variables of one name, and places it.
func duplicated(ctx context.Context, name string, strategy placementv1beta1.ApplyStrategy) {
	GinkgoHelper()
	cleanUp(name)
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Expect(hub.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1",
				Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}}}},
	}})).To(Succeed())
	Expect(hub.Create(ctx, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}},
			Strategy:          placementv1beta1.RolloutStrategy{ApplyStrategy: &strategy},
		}})).To(Succeed())
}

var _ = Describe("Variables with the same name", func() {
	It("finds and reports their drift when whenToApply is IfNotDrifted", func(ctx SpecContext) {
		duplicated(ctx, "twice", placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.ApplyIfNotDrifted})
		waitAvailable(ctx, "twice")
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "twice", Name: "web"}}
		Expect(member1.Patch(ctx, web, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/env/1/value","value":"3"}]`)))).To(Succeed())
		Eventually(func(ctx context.Context) (string, error) {
			crp, err := placement(ctx, "twice")
			for _, status := range crp.Status.PlacementStatuses {
				for _, failed := range status.FailedPlacements {
					return failed.Condition.Reason + ": " + failed.Condition.Message, err
				}
			}
			return "", err
		}).WithContext(ctx).Should(And(HavePrefix("FoundDrifts: "), ContainSubstring("/spec/template/spec/containers/0/env/1/value")))
	})

	It("compares them when the type is ReportDiff", func(ctx SpecContext) {
		duplicated(ctx, "twice-reported", placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff})
		web := &appsv1.Deployment{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "twice-reported", Name: "web"}, web)).To(Succeed())
		Expect(member1.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twice-reported"}})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(member1.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twice-reported"}})).To(Succeed())
		})
		there := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "twice-reported", Name: "web"}, Spec: web.Spec}
		there.Spec.Template.Spec.Containers[0].Env[1].Value = "3"
		Expect(member1.Create(ctx, there)).To(Succeed())
		Eventually(func(ctx context.Context) ([]string, error) {
			crp, err := placement(ctx, "twice-reported")
			var found []string
			for _, status := range crp.Status.PlacementStatuses {
				for _, diffed := range status.DiffedPlacements {
					for _, field := range diffed.ObservedDiffs {
						if diffed.Kind == "Deployment" && status.ClusterName == "member-1" {
							found = append(found, field.Path+" "+field.ValueInMember)
						}
					}
				}
			}
			return found, err
		}).WithContext(ctx).Should(ContainElement("/spec/template/spec/containers/0/env/1/value 3"))
	})
})

var _ = Describe("Values of a member's controllers", func() {
	It("leaves replicas to an autoscaler of the member", func(ctx SpecContext) {
		cleanUp("r08")
		applyFile(ctx, running.Hub, "08-hpa.yaml")
		replicas := memberHas("r08/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) int32 { return *d.Spec.Replicas })
		Eventually(replicas).WithContext(ctx).WithTimeout(time.Minute).Should(BeEquivalentTo(3))
		// Each write of the spec increments the generation, so a revert between two checks is seen too.
		generation := memberHas("r08/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) int64 { return d.Generation })
		scaled, err := generation(ctx)
		Expect(err).NotTo(HaveOccurred())
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "r08", Name: "web"}}
		Expect(hub.Patch(ctx, web, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.org/web:2"}]`)))).To(Succeed())
		Eventually(memberHas("r08/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image })).
			WithContext(ctx).Should(Equal("example.org/web:2"))
		Expect(replicas(ctx)).To(BeEquivalentTo(3))
		applyAgain(ctx, "r08")
		Expect(generation(ctx)).To(Equal(scaled + 1))
	})

	It("updates a Deployment by server-side apply whose replicas an autoscaler of the member manages", func(ctx SpecContext) {
		cleanUp("r08ssa")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "r08ssa"}})).To(Succeed())
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "r08ssa", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}}},
		}}
		Expect(hub.Create(ctx, web)).To(Succeed())
		Expect(hub.Create(ctx, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "r08ssa"},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "r08ssa"}},
				Strategy:          placementv1beta1.RolloutStrategy{ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}},
			}})).To(Succeed())
		replicas := memberHas("r08ssa/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) int32 { return *d.Spec.Replicas })
		Eventually(replicas).WithContext(ctx).Should(BeEquivalentTo(1))
		Expect(member1.SubResource("scale").Patch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "r08ssa", Name: "web"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`)), client.FieldOwner("autoscaler"))).To(Succeed())
		Expect(hub.Patch(ctx, web, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.org/web:2"}]`)))).To(Succeed())
		Eventually(memberHas("r08ssa/web", &appsv1.Deployment{}, func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image })).
			WithContext(ctx).Should(Equal("example.org/web:2"))
		applyAgain(ctx, "r08ssa")
		Expect(replicas(ctx)).To(BeEquivalentTo(4))
	})

	It("leaves the rules of an aggregated ClusterRole to the member", func(ctx SpecContext) {
		cleanUp("r16")
		DeferCleanup(func(ctx SpecContext) {
			for _, name := range []string{"r16-monitoring", "r16-hub-part"} {
				Expect(client.IgnoreNotFound(hub.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
			}
		})
		applyFile(ctx, running.Members[0].Cluster, "16-member-part.yaml")
		applyFile(ctx, running.Hub, "16-aggregated-role.yaml")
		resources := memberHas("/r16-monitoring", &rbacv1.ClusterRole{}, func(r *rbacv1.ClusterRole) []string {
			var all []string
			for _, rule := range r.Rules {
				all = append(all, rule.Resources...)
			}
			return all
		})
		Eventually(resources).WithContext(ctx).Should(ConsistOf("pods"))
		Consistently(resources).WithContext(ctx).WithTimeout(8 * time.Second).WithPolling(50 * time.Millisecond).Should(ConsistOf("pods"))
		Eventually(condition("r16", placementv1beta1.ConditionApplied)).WithContext(ctx).Should(HavePrefix("True/"))
	})

	It("leaves a CA that an injector of the member wrote over a placeholder", func(ctx SpecContext) {
		cleanUp("r17")
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(hub.Delete(ctx, &placementv1beta1.ClusterResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Name: "r17"}}))).To(Succeed())
		})
		applyFile(ctx, running.Hub, "17-webhook-cabundle.yaml")
		ca := memberHas("/r17", &admissionregistrationv1.ValidatingWebhookConfiguration{}, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) string {
			return string(c.Webhooks[0].ClientConfig.CABundle)
		})
		Eventually(ca).WithContext(ctx).Should(Equal("\n"))
		waitAvailable(ctx, "r17")
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "r17"}}
		authority := string(running.Members[0].Cluster.CABundle)
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
		config.Webhooks[0].ClientConfig.CABundle = []byte(authority)
		Expect(member1.Update(ctx, config, client.FieldOwner("cainjector"))).To(Succeed())
		envelope := &placementv1beta1.ClusterResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Name: "r17"}}
		Expect(hub.Patch(ctx, envelope, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/data/webhook.yaml/webhooks/0/timeoutSeconds","value":7}]`)))).To(Succeed())
		seconds := memberHas("/r17", config, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) int32 {
			return *c.Webhooks[0].TimeoutSeconds
		})
		Eventually(seconds).WithContext(ctx).Should(BeEquivalentTo(7))
		Expect(ca(ctx)).To(Equal(authority))
	})

	It("leaves the failure policy of a webhook to the manager that wrote its CA", func(ctx SpecContext) {
		const name = "failure-policy"
		const envelope = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourceEnvelope","metadata":{"name":"failure-policy"},"data":{"w.yaml":
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"failure-policy"},"webhooks":[{"name":"a.failure-policy.example.org",
"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore","timeoutSeconds":5,"clientConfig":{"url":"https://127.0.0.1:1"},
"rules":[{"apiGroups":["failure-policy.example.org"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["none"]}]}]}}}`
		cleanUp(name)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(hub.Delete(ctx, &placementv1beta1.ClusterResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		})
		applyText(ctx, running.Hub, envelope)
		Expect(hub.Create(ctx, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "ClusterResourceEnvelope", Name: name}},
				Strategy:          placementv1beta1.RolloutStrategy{RollingUpdate: soonAvailable()},
			}})).To(Succeed())
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		webhook := memberHas("/"+name, config, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) string {
			return fmt.Sprint(*c.Webhooks[0].FailurePolicy, " ", *c.Webhooks[0].TimeoutSeconds)
		})
		Eventually(webhook).WithContext(ctx).Should(Equal("Ignore 5"))
		config.Webhooks[0].ClientConfig.CABundle = running.Members[0].Cluster.CABundle
		config.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		Expect(member1.Update(ctx, config, client.FieldOwner("pilot-discovery"))).To(Succeed())
		applyText(ctx, running.Hub, strings.Replace(envelope, `"timeoutSeconds":5`, `"timeoutSeconds":6`, 1))
		Eventually(webhook).WithContext(ctx).Should(Equal("Fail 6"))

		By("removing a CA with the manifest that set it")
		ca := memberHas("/"+name, config, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) string {
			return fmt.Sprint(*c.Webhooks[0].TimeoutSeconds, string(c.Webhooks[0].ClientConfig.CABundle))
		})
		timed := func(seconds, clientConfig string) string {
			return strings.NewReplacer(`"timeoutSeconds":5`, `"timeoutSeconds":`+seconds, `"clientConfig":{`, `"clientConfig":{`+clientConfig).Replace(envelope)
		}
		authority := running.Members[0].Cluster.CABundle
		applyText(ctx, running.Hub, timed("7", `"caBundle":"`+base64.StdEncoding.EncodeToString(authority)+`",`))
		Eventually(ca).WithContext(ctx).Should(Equal("7" + string(authority)))
		applyText(ctx, running.Hub, timed("8", ""))
		Eventually(ca).WithContext(ctx).Should(Equal("8"))
	})

	It("leaves it to Kueue whether a job of a queue is suspended", func(ctx SpecContext) {
		const name = "queued"
		cleanUp(name)
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "train", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "q"}}}
		job.Spec.Parallelism = ptr.To[int32](0)
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/train:1"}}}
		Expect(hub.Create(ctx, job)).To(Succeed())
		placeUntracked(ctx, name)
		suspended := memberHas(name+"/train", &batchv1.Job{}, func(j *batchv1.Job) string { return fmt.Sprint(*j.Spec.Suspend, " ", *j.Spec.Parallelism) })
		Eventually(suspended).WithContext(ctx).Should(Equal("false 0"))
		Expect(member1.Patch(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "train"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true,"parallelism":1}}`)), client.FieldOwner("kueue"))).To(Succeed())
		Eventually(suspended).WithContext(ctx).Should(Equal("true 0"))
		applyAgain(ctx, name)
		Expect(suspended(ctx)).To(Equal("true 0"))
		Expect(failedOn(name)(ctx)).To(BeEmpty())
	})

	It("finds no drift in the addresses of a Service with FullComparison", func(ctx SpecContext) {
		cleanUp("r18")
		applyFile(ctx, running.Hub, "18-full-comparison.yaml")
		waitAvailable(ctx, "r18")
		applyAgain(ctx, "r18")
		waitAvailable(ctx, "r18")
		crp, err := placement(ctx, "r18")
		Expect(err).NotTo(HaveOccurred())
		var found []string
		for _, status := range crp.Status.PlacementStatuses {
			for _, drifted := range status.DriftedPlacements {
				for _, field := range drifted.ObservedDrifts {
					found = append(found, drifted.Kind+field.Path)
				}
			}
		}
		Expect(found).To(BeEmpty())
	})

	It("leaves a field to the member that its author or the placement names, and reverts a change of another", func(ctx SpecContext) {
		cleanUp("leave-field")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leave-field"}})).To(Succeed())
		onHub := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leave-field", Name: "c",
			Annotations: map[string]string{"fleetgate.io/leave-to-member": "/data/author"}},
			Data: map[string]string{"hub": "1", "author": "1", "present": "1", "change": "1"}}
		Expect(hub.Create(ctx, onHub)).To(Succeed())
		ignore := func(condition placementv1beta1.IgnoreFieldsCondition, pointer string) placementv1beta1.IgnoreFieldsRule {
			return placementv1beta1.IgnoreFieldsRule{Kind: "ConfigMap", Condition: condition, JSONPointers: []string{pointer}}
		}
		Expect(hub.Create(ctx, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "leave-field"},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "leave-field"}},
				Strategy: placementv1beta1.RolloutStrategy{ApplyStrategy: &placementv1beta1.ApplyStrategy{IgnoreFields: []placementv1beta1.IgnoreFieldsRule{
					ignore(placementv1beta1.IgnoreOnSpokePresent, "/data/present"), ignore(placementv1beta1.IgnoreOnSpokeChange, "/data/change"),
				}}},
			}})).To(Succeed())
		data := memberHas("leave-field/c", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) string {
			return c.Data["hub"] + c.Data["author"] + c.Data["present"] + c.Data["change"]
		})
		Eventually(data).WithContext(ctx).Should(Equal("1111"))
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leave-field", Name: "c"}}
		Expect(member1.Patch(ctx, object, client.RawPatch(types.MergePatchType,
			[]byte(`{"data":{"hub":"2","author":"2","present":"2","change":"2"}}`)))).To(Succeed())
		Eventually(data).WithContext(ctx).Should(Equal("1222"))
		Expect(hub.Patch(ctx, onHub, client.RawPatch(types.MergePatchType, []byte(`{"data":{"hub":"3"}}`)))).To(Succeed())
		Eventually(data).WithContext(ctx).Should(Equal("3221"))
	})
})

var _ = Describe("A write with a result that differs from the manifest", func() {
	It("names the field that the member's version of a kind lacks", func(ctx SpecContext) {
		cleanUp("pruned")
		const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.pruned.example.org"},
"spec":{"group":"pruned.example.org","names":{"kind":"Widget","plural":"widgets","singular":"widget","listKind":"WidgetList"},"scope":"Namespaced",
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`
		for _, m := range running.Members {
			applyText(ctx, m.Cluster, definition)
		}
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pruned"}})).To(Succeed())
		applyText(ctx, running.Hub, `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"namespace":"pruned","name":"e"},
"data":{"w.yaml":{"apiVersion":"pruned.example.org/v1","kind":"Widget","metadata":{"namespace":"pruned","name":"w"},"spec":{"size":1,"color":"red"}}}}`)
		Expect(hub.Create(ctx, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "pruned"},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "pruned"}},
			}})).To(Succeed())
		Eventually(condition("pruned", placementv1beta1.ConditionApplied)).WithContext(ctx).Should(HavePrefix("False/"))
		Eventually(func(ctx context.Context) (string, error) {
			crp, err := placement(ctx, "pruned")
			for _, status := range crp.Status.PlacementStatuses {
				for _, failed := range status.FailedPlacements {
					return failed.Condition.Reason + ": " + failed.Condition.Message, err
				}
			}
			return "", err
		}).WithContext(ctx).Should(And(HavePrefix("FieldsNotApplied: "), ContainSubstring("/spec/color")))
	})
})
