// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: agents}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: main, image: "quay.io/ocm/agent:v1", args: ["--cluster={{CLUSTER_NAME}}", "--hub={{HUB_KUBECONFIG}}", "--level={{LEVEL}}"]}
`

// templated creates an AddOnTemplate and describes the add-on with it, and with an AddOnDeploymentConfig
// unless that is nil.
func (b *bed) templated(ctx context.Context, spec addonv1alpha1.AddOnTemplateSpec, config *addonv1alpha1.AddOnDeploymentConfigSpec, manifests ...string) {
	GinkgoHelper()
	template := &addonv1alpha1.AddOnTemplate{ObjectMeta: build.Named(b.name("template")), Spec: spec}
	template.Spec.AddonName = b.name("addon")
	for _, text := range manifests {
		raw, err := yaml.YAMLToJSON([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		manifest := workv1.Manifest{}
		manifest.Raw = raw
		template.Spec.AgentSpec.Workload.Manifests = append(template.Spec.AgentSpec.Workload.Manifests, manifest)
	}
	expect.CreatedForSpec(ctx, hubClient, template)
	if config != nil {
		expect.Created(ctx, hubClient, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In(b.namespace, "config"), Spec: *config})
	}
	b.described(ctx, func(addOn *addonv1alpha1.ClusterManagementAddOn) {
		addOn.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{
			{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}, DefaultConfig: &addonv1alpha1.ConfigReferent{Name: template.Name}},
			{ConfigGroupResource: deploys},
		}
		if config != nil {
			addOn.Spec.SupportedConfigs[1].DefaultConfig = &addonv1alpha1.ConfigReferent{Namespace: b.namespace, Name: "config"}
		}
		b.placed("p")(addOn)
	})
}

// oneByOne has configurations rolled out to one cluster after the other.
func (b *bed) oneByOne(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		addOn, err := b.description(ctx)
		if err != nil {
			return err
		}
		addOn.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.RolloutProgressive, Progressive: &clusterv1alpha1.RolloutProgressiveConfig{MaxConcurrency: intstr.FromInt32(1)},
		}
		return hubClient.Update(ctx, addOn)
	}).Should(Succeed())
}

// work is a ManifestWork of the add-on of a cluster.
func (b *bed) work(ctx context.Context, cluster, suffix string) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{}
	return work, hubClient.Get(ctx, client.ObjectKey{Namespace: b.name(cluster), Name: "addon-" + b.name("addon") + suffix}, work)
}

// applied reports that a cluster has applied its ManifestWork, with these values of its only workload or
// Job.
func (b *bed) applied(ctx context.Context, cluster, suffix string, id workv1.ManifestResourceMeta, values ...workv1.FeedbackValue) {
	GinkgoHelper()
	Eventually(func() error {
		work, err := b.work(ctx, cluster, suffix)
		if err != nil {
			return err
		}
		for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: work.Generation})
		}
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{ResourceMeta: id, Conditions: []metav1.Condition{}, StatusFeedback: workv1.StatusFeedbackResult{Values: values}}}
		return hubClient.Status().Update(ctx, work)
	}).Should(Succeed())
}

func (b *bed) message(ctx context.Context, cluster, kind string) (string, error) {
	conditions, err := b.conditions(ctx, cluster)
	return expect.Condition(conditions, kind).Message, err
}

// managerMay grants the account with whose rights templates are served, in a namespace or everywhere.
func managerMay(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: addonv1alpha1.HubNamespace, Name: addonv1alpha1.ManagerAccount}}
	if namespace != "" {
		role := &rbacv1.Role{ObjectMeta: build.In(namespace, name), Rules: rules}
		expect.Created(ctx, hubClient, role, &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
		return
	}
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: rules})
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(name), Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
}

func readsConfigMaps() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}
}

func kubeClient(permissions ...addonv1alpha1.HubPermissionConfig) addonv1alpha1.AddOnTemplateSpec {
	return addonv1alpha1.AddOnTemplateSpec{Registration: []addonv1alpha1.RegistrationSpec{
		{Type: addonv1alpha1.RegistrationKubeClient, KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions}},
	}}
}

func inItsNamespace(role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.PermissionCurrentCluster, CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: role}}
}

var _ = Describe("An add-on with a template", func() {
	It("reaches the member as configured, and a changed configuration changes its ManifestWork once", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		m.appliesWorks()
		config := &addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: m.addOns, CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "LEVEL", Value: `"1"`}},
			NodePlacement: &addonv1alpha1.NodePlacement{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []addonv1alpha1.Toleration{{Key: "infra", Operator: "Exists"}}},
			ProxyConfig:   addonv1alpha1.ProxyConfig{HTTPSProxy: "http://proxy.example:3128", NoProxy: "10.0.0.0/8", CABundle: []byte("certificates")},
			Registries:    []addonv1alpha1.ImageMirror{{Source: "quay.io/ocm", Mirror: "mirror.example/ocm"}},
		}
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, config, deployment)
		b.selected(ctx, "p", "edge")
		agent := &appsv1.Deployment{ObjectMeta: build.In(m.addOns, "agent")}
		current := func(ctx context.Context) (corev1.PodSpec, error) {
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(agent), agent)
			return agent.Spec.Template.Spec, client.IgnoreNotFound(err)
		}
		Eventually(current).WithArguments(ctx).Should(HaveField("Containers", HaveExactElements(And(
			HaveField("Image", "mirror.example/ocm/agent:v1"), HaveField("Args", []string{"--cluster=" + m.name, "--hub=", `--level="1"`}),
			HaveField("Env", ContainElements(corev1.EnvVar{Name: "CLUSTER_NAME", Value: m.name}, corev1.EnvVar{Name: "INSTALL_NAMESPACE", Value: m.addOns},
				corev1.EnvVar{Name: "https_proxy", Value: "http://proxy.example:3128"}, corev1.EnvVar{Name: "NO_PROXY", Value: "10.0.0.0/8"},
				corev1.EnvVar{Name: "CA_BUNDLE_FILE_PATH", Value: "/managed/proxy-ca/ca-bundle.crt"})),
		))))
		Expect(agent.Spec.Template.Spec).To(And(HaveField("NodeSelector", map[string]string{"disk": "ssd"}), HaveField("Tolerations", []corev1.Toleration{{Key: "infra", Operator: "Exists"}})))
		Eventually(expect.Data(ctx, hubClient, m.addOns, b.name("addon")+"-proxy-ca")).Should(HaveKeyWithValue("ca-bundle.crt", "certificates"))
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(And(
			expect.HaveCondition("RegistrationApplied", "True/SetPermissionApplied"), expect.HaveCondition("ManifestApplied", "True/AddonManifestApplied"),
			expect.HaveCondition("Progressing", "False/Completed"), expect.HaveCondition("Available", "False/ProbeUnavailable")))
		addOn, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(addOn.Status).To(And(HaveField("Namespace", m.addOns), HaveField("HealthCheck.Mode", addonv1alpha1.HealthCheckCustomized), HaveField("Registrations", BeEmpty())))

		By("running its Pods")
		pods := &corev1.PodList{}
		Eventually(func() ([]corev1.Pod, error) {
			return pods.Items, hubClient.List(ctx, pods, client.InNamespace(m.addOns))
		}).Should(HaveLen(1))
		Expect(hubClient.Status().Patch(ctx, &pods.Items[0], expect.MergePatch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))).To(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("Available", "True/ProbeAvailable"))

		By("changing the configuration")
		before, err := b.work(ctx, "edge", "-deploy-0")
		Expect(err).NotTo(HaveOccurred())
		Expect(before.Generation).To(BeEquivalentTo(1), "a ManifestWork is written once, although its cluster reports about it")
		updates := writes.of(http.MethodPut, "/manifestworks/")
		Expect(hubClient.Patch(ctx, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In(b.namespace, "config")}, expect.MergePatch(`{"spec":{"customizedVariables":[{"name":"LEVEL","value":"2"}]}}`))).To(Succeed())
		Eventually(current).WithArguments(ctx).Should(HaveField("Containers", HaveExactElements(HaveField("Args", ContainElement("--level=2")))))
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(And(expect.HaveCondition("Progressing", "False/Completed"), expect.HaveCondition("Configured", "True/ConfigurationsConfigured")))
		Eventually(b.progress).WithArguments(ctx, 0).Should(ContainSubstring("1/1 completed with no errors"))
		Consistently(b.work).WithArguments(ctx, "edge", "-deploy-0").Should(HaveField("Generation", BeEquivalentTo(2)))
		Expect(writes.of(http.MethodPut, "/manifestworks/")).To(Equal(updates + 1))

		By("deleting the template, and creating it again")
		template := &addonv1alpha1.AddOnTemplate{ObjectMeta: build.Named(b.name("template"))}
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		Expect(hubClient.Delete(ctx, template)).To(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("ManifestApplied", "False/ManifestWorkApplyFailed"))
		Expect(b.message(ctx, "edge", "ManifestApplied")).To(Equal(`AddOnTemplate "` + template.Name + `" does not exist: create it, or configure another one`))
		Expect(hubClient.Create(ctx, &addonv1alpha1.AddOnTemplate{ObjectMeta: build.Named(template.Name), Spec: template.Spec})).To(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("ManifestApplied", "True/AddonManifestApplied"))
		Consistently(b.work).WithArguments(ctx, "edge", "-deploy-0").Should(And(HaveField("UID", before.UID), HaveField("Generation", BeEquivalentTo(2))))

		By("selecting no cluster")
		b.selected(ctx, "p")
		Eventually(expect.Gone(ctx, hubClient, before)).Should(BeTrue())
		Eventually(expect.Gone(ctx, hubClient, agent)).Should(BeTrue())
	})

	It("gets the proxy of its cluster's network from the configuration that its spec names", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "core")
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, &addonv1alpha1.AddOnDeploymentConfigSpec{}, deployment)
		expect.Created(ctx, hubClient, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In(b.name("edge"), "network"), Spec: addonv1alpha1.AddOnDeploymentConfigSpec{ProxyConfig: addonv1alpha1.ProxyConfig{
			HTTPProxy: "http://10.0.0.1:3128", HTTPSProxy: "https://10.0.0.1:3129", NoProxy: ".cluster.local,.svc,10.96.0.1", CABundle: []byte("certificates"),
		}}})
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(b.name("edge"), b.name("addon"))}
		addOn.Spec.InstallNamespace = "open-cluster-management-agent-addon"
		addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: deploys, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: b.name("edge"), Name: "network"}}}
		expect.Created(ctx, hubClient, addOn)
		b.selected(ctx, "p", "edge", "core")
		manifests := func(cluster string) func() (string, error) {
			return func() (string, error) {
				work, err := b.work(ctx, cluster, "-deploy-0")
				var all strings.Builder
				for i := range work.Spec.Workload.Manifests {
					all.Write(work.Spec.Workload.Manifests[i].Raw)
				}
				return all.String(), err
			}
		}
		variables := []string{
			`{"name":"HTTP_PROXY","value":"http://10.0.0.1:3128"}`, `{"name":"HTTPS_PROXY","value":"https://10.0.0.1:3129"}`,
			`{"name":"NO_PROXY","value":".cluster.local,.svc,10.96.0.1"}`, `"CA_BUNDLE_FILE_PATH"`, `"ca-bundle.crt":"certificates"`,
		}
		for _, variable := range variables {
			Eventually(manifests("edge")).Should(ContainSubstring(variable))
		}
		Eventually(manifests("core")).Should(And(ContainSubstring("quay.io/ocm/agent:v1"), Not(ContainSubstring("PROXY"))))
	})

	It("is rolled out cluster by cluster", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, &addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "LEVEL", Value: "1"}}}, deployment)
		b.oneByOne(ctx)
		b.selected(ctx, "p", "a", "b")
		id := workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: addonv1alpha1.DefaultInstallNamespace, Name: "agent"}
		ready := []workv1.FeedbackValue{
			{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.ValueInteger, Integer: ptr.To[int64](1)}}, {Name: "Replicas", Value: workv1.FieldValue{Type: workv1.ValueInteger, Integer: ptr.To[int64](1)}},
		}
		b.applied(ctx, "a", "-deploy-0", id, ready...)
		b.applied(ctx, "b", "-deploy-0", id, ready...)
		for _, cluster := range []string{"a", "b"} {
			Eventually(b.conditions).WithArguments(ctx, cluster).Should(And(expect.HaveCondition("Progressing", "False/Completed"), expect.HaveCondition("Available", "True/ProbeAvailable")))
		}
		By("changing the template")
		template := &addonv1alpha1.AddOnTemplate{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: b.name("template")}, template)).To(Succeed())
		template.Spec.AgentSpec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(template.Spec.AgentSpec.Workload.Manifests[0].Raw), "--level", "--new"))
		Expect(hubClient.Update(ctx, template)).To(Succeed())
		Eventually(b.work).WithArguments(ctx, "a", "-deploy-0").Should(HaveField("Generation", BeEquivalentTo(2)))
		Consistently(b.work).WithArguments(ctx, "b", "-deploy-0").Should(HaveField("Generation", BeEquivalentTo(1)))
		Eventually(b.conditions).WithArguments(ctx, "b").Should(And(expect.HaveCondition("Configured", "False/ConfigurationsNotConfigured"), expect.HaveCondition("Available", "True/ProbeAvailable")))
		b.applied(ctx, "a", "-deploy-0", id, ready...)
		Eventually(b.work).WithArguments(ctx, "b", "-deploy-0").Should(HaveField("Generation", BeEquivalentTo(2)))
	})

	It("runs what is for before the deletion, and ends after it", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, nil, deployment,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: cleanup, namespace: agents, annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}, spec: {}}`)
		b.selected(ctx, "p", "edge")
		Eventually(b.work).WithArguments(ctx, "edge", "-deploy-0").Should(HaveField("Spec.Workload.Manifests", HaveLen(1)))
		addOn, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(addOn.Finalizers).To(ConsistOf("addon.open-cluster-management.io/addon-pre-delete"))
		By("deleting its ClusterManagementAddOn, which says what to run")
		description, err := b.description(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(hubClient.Delete(ctx, description)).To(Succeed())
		id := workv1.ManifestResourceMeta{Group: "batch", Resource: "jobs", Namespace: "agents", Name: "cleanup"}
		b.applied(ctx, "edge", "-pre-delete", id)
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("HookManifestCompleted", "False/HookManifestIsNotCompleted"))
		Consistently(b.work).WithArguments(ctx, "edge", "-deploy-0").Should(HaveField("DeletionTimestamp", BeNil()))
		Expect(expect.Gone(ctx, hubClient, description)()).To(BeFalse())
		b.applied(ctx, "edge", "-pre-delete", id, workv1.FeedbackValue{Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.ValueString, String: ptr.To("True")}})
		Eventually(expect.Gone(ctx, hubClient, addOn)).Should(BeTrue())
		Eventually(expect.Gone(ctx, hubClient, description)).Should(BeTrue())
		for _, suffix := range []string{"-deploy-0", "-pre-delete"} {
			Eventually(func() error {
				_, err := b.work(ctx, "edge", suffix)
				return err
			}).Should(Satisfy(apierrors.IsNotFound))
		}
	})
})

var _ = Describe("The agent of an add-on with a template", func() {
	It("gets the rights that the template asks for, with certificate and token, on its own cluster only", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m := b.joined(ctx, "edge")
		role := b.name("reads")
		managerMay(ctx, "", role, readsConfigMaps())
		single := addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.PermissionSingleNamespace, SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
			Namespace: b.namespace, RoleRef: addonv1alpha1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}}
		b.templated(ctx, kubeClient(inItsNamespace(role), single), &addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: m.addOns}, deployment)
		b.selected(ctx, "p", "edge", "edge-1")
		kubeconfig := b.name("addon") + "-hub-kubeconfig"
		for _, driver := range []addonv1alpha1.KubeClientDriver{addonv1alpha1.DriverCSR, addonv1alpha1.DriverToken} {
			By(fmt.Sprintf("with driver %s", driver))
			m.start(driver)
			Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(map[addonv1alpha1.KubeClientDriver]types.GomegaMatcher{
				addonv1alpha1.DriverCSR: byCertificate, addonv1alpha1.DriverToken: byToken,
			}[driver])
			for _, namespace := range []string{m.name, b.namespace} {
				Eventually(func() error { return mayRead(m.as(ctx, kubeconfig), namespace)(ctx) }).Should(Succeed())
			}
			Expect(mayRead(m.as(ctx, kubeconfig), b.name("edge-1"))(ctx)).To(Satisfy(apierrors.IsForbidden))
			Eventually(b.of).WithArguments(ctx, "edge").Should(HaveField("Status.Registrations", ConsistOf(HaveField("Subject.User", map[addonv1alpha1.KubeClientDriver]string{
				addonv1alpha1.DriverCSR:   groupOf(m.name, b.name("addon")) + ":agent:" + b.name("addon") + "-agent",
				addonv1alpha1.DriverToken: "system:serviceaccount:" + m.name + ":" + b.name("addon") + "-agent",
			}[driver]))))
			m.agent.Stop()
		}
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("RegistrationApplied", "True/SetPermissionApplied"))

		By("changing a binding, and removing the add-on from the cluster")
		binding := &rbacv1.RoleBinding{ObjectMeta: build.In(b.namespace, "open-cluster-management:"+b.name("addon")+":clusterrole:agent:"+m.name)}
		Expect(hubClient.Patch(ctx, binding, expect.MergePatch(`{"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`))).To(Succeed())
		Eventually(func() ([]rbacv1.Subject, error) {
			return binding.Subjects, hubClient.Get(ctx, client.ObjectKeyFromObject(binding), binding)
		}).Should(ConsistOf(HaveField("Namespace", m.name)))
		b.selected(ctx, "p", "edge-1")
		Eventually(expect.Gone(ctx, hubClient, binding)).Should(BeTrue())
		Eventually(expect.Gone(ctx, hubClient, &rbacv1.RoleBinding{ObjectMeta: build.In(m.name, "open-cluster-management:"+b.name("addon")+":clusterrole:agent")})).Should(BeTrue())
	})

	It("gets no right that the account of add-ons does not have, and the condition names it", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		role := b.name("secrets")
		expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRole{ObjectMeta: build.Named(role), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}})
		b.templated(ctx, kubeClient(inItsNamespace(role)), nil, deployment)
		b.selected(ctx, "p", "edge")
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("RegistrationApplied", "False/SetPermissionFailed"))
		Expect(b.message(ctx, "edge", "RegistrationApplied")).To(And(HavePrefix("Failed to set permission for hub agent: RoleBinding "+b.name("edge")+"/open-cluster-management:"), ContainSubstring(`Resources:["secrets"], Verbs:["get"]`),
			HaveSuffix(`Bind ClusterRole "`+role+`" to ServiceAccount open-cluster-management-hub/addon-manager-controller-sa, or remove it from the AddOnTemplate`)))
		bindings := &rbacv1.RoleBindingList{}
		Expect(hubClient.List(ctx, bindings, client.MatchingLabels{addonv1alpha1.AddOnNameLabel: b.name("addon")})).To(Succeed())
		Expect(bindings.Items).To(BeEmpty())
		addOn, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(addOn.Status.Registrations).To(BeEmpty())

		By("binding the ClusterRole to the account")
		expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: addonv1alpha1.HubNamespace, Name: addonv1alpha1.ManagerAccount}}})
		Eventually(func() ([]metav1.Condition, error) {
			Expect(hubClient.Patch(ctx, addOn, expect.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"retry":%q}}}`, time.Now())))).To(Succeed())
			return b.conditions(ctx, "edge")
		}).WithPolling(time.Second).Should(expect.HaveCondition("RegistrationApplied", "True/SetPermissionApplied"))
	})

	It("gets a certificate of the template's signer with exactly the subject of the template", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m, thief := b.joined(ctx, "edge"), b.joined(ctx, "edge-1")
		signer := b.namespace + ".example.com/agents"
		authority := newManager(b.name("addon"), m.addOns)
		key, err := x509.MarshalPKCS8PrivateKey(authority.key)
		Expect(err).NotTo(HaveOccurred())
		expect.Created(ctx, hubClient, &corev1.Secret{ObjectMeta: build.In(b.namespace, "authority"), Data: map[string][]byte{
			"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.certificate.Raw}), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		}})
		managerMay(ctx, "", b.name("signs"), rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{signer}, Verbs: []string{"approve", "sign"}})
		managerMay(ctx, b.namespace, "authority", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"authority"}, Verbs: []string{"get"}})
		spec := addonv1alpha1.AddOnTemplateSpec{Registration: []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
			SignerName: signer, SigningCA: addonv1alpha1.SigningCARef{Namespace: b.namespace, Name: "authority"},
			Subject: &addonv1alpha1.Subject{User: "user1", Groups: []string{"g1", "g2"}, OrganizationUnits: []string{"o1"}},
		}}}}
		b.templated(ctx, spec, &addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: m.addOns}, deployment)
		b.selected(ctx, "p", "edge", "edge-1")
		m.start(addonv1alpha1.DriverCSR)
		secret := b.name("addon") + "-" + strings.ReplaceAll(signer, "/", "-") + "-client-cert"
		Eventually(m.keys).WithArguments(ctx, secret).Should(Equal([]string{"agent-name", "cluster-name", "tls.crt", "tls.key"}))
		kept, err := m.secret(ctx, secret)
		Expect(err).NotTo(HaveOccurred())
		block, _ := pem.Decode(kept.Data["tls.crt"])
		got, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.CheckSignatureFrom(authority.certificate)).To(Succeed())
		Expect(got.Subject.CommonName).To(Equal("user1"))
		Expect(got.Subject.Organization).To(ConsistOf("g1", "g2"))
		Expect(got.Subject.OrganizationalUnit).To(ConsistOf("o1"))
		Expect(got.NotAfter).To(BeTemporally("<=", time.Now().Add(24*time.Hour)))
		Expect(got.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))

		By("requesting another subject, and the certificate of another cluster")
		_, err = thief.requests().Create(ctx, requestFor(m.name, b.name("addon"), m.name), metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("of its own cluster")))
		stolen := requestFor(m.name, b.name("addon"), thief.name)
		stolen.Spec.SignerName = signer
		b.refused(ctx, thief, stolen, "its subject is")
	})
})

var _ = Describe("The author of an AddOnTemplate", func() {
	It("gets no certificate of a user that the template chooses on the hub", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{Registration: []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Subject: &addonv1alpha1.Subject{User: "administrator"},
		}}}}, nil, deployment)
		b.selected(ctx, "p", "edge")
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("RegistrationApplied", "False/SetPermissionFailed"))
		b.refused(ctx, m, requestOf(m.name, b.name("addon"), pkix.Name{CommonName: "administrator"}), "has no registration for signer")
	})
})

// refused creates a request that is reported and gets neither an approval nor a certificate.
func (b *bed) refused(ctx context.Context, from *member, csr *certificatesv1.CertificateSigningRequest, why string) {
	GinkgoHelper()
	created, err := from.requests().Create(ctx, csr, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(eventsAbout).WithArguments(ctx, created.Name).Should(ContainElement(ContainSubstring(why)))
	Consistently(func(ctx context.Context) (certificatesv1.CertificateSigningRequestStatus, error) {
		live, err := from.requests().Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			return certificatesv1.CertificateSigningRequestStatus{}, err
		}
		return live.Status, nil
	}).WithContext(ctx).Should(And(HaveField("Conditions", BeEmpty()), HaveField("Certificate", BeEmpty())))
}

var _ = Describe("An agent of another cluster, whose name begins like the cluster's,", func() {
	It("gets no approval for an add-on of that cluster from its template", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m, thief := b.joined(ctx, "edge"), b.joined(ctx, "edge-1")
		b.templated(ctx, kubeClient(), nil, deployment)
		b.selected(ctx, "p", "edge", "edge-1")
		Eventually(b.conditions).WithArguments(ctx, "edge-1").Should(expect.HaveCondition("RegistrationApplied", "True/SetPermissionApplied"))
		_, err := thief.requests().Create(ctx, requestFor(m.name, b.name("addon"), m.name), metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("of its own cluster")))
		b.refused(ctx, thief, requestFor(m.name, b.name("addon"), thief.name), "its subject is")
	})
})
