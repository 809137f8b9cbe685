// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/test/support/chartpack"
	"fleetgate.io/fleetgate/test/support/env"
)

const (
	gatewayApplication   = "fleetgate-gateway"
	uninstallApplication = "fleetgate-gateway-uninstall"
	agentApplication     = "fleetgate-agent"
	memberName           = "member-1"
)

// least is what the agent may place in this suite: its own rights have to do for the rest.
const least = `
rbac:
  placement:
    clusterAdmin: false
    rules:
    - {apiGroups: [""], resources: [namespaces, configmaps, limitranges], verbs: [get, list, watch, create, patch, update, delete]}
`

var _ = Describe("The charts", Ordered, func() {
	var gateway, agent *container
	var started []*container // all that ran, for their logs and their end
	var values, limits, agentPorts string
	var onHub, onMember []string // names of the CustomResourceDefinitions of the release

	BeforeAll(func() {
		dir := GinkgoT().TempDir()
		values, limits = filepath.Join(dir, "values.yaml"), filepath.Join(dir, "limits.yaml")
		Expect(os.WriteFile(limits, []byte(least), 0o600)).To(Succeed())
		ports, err := env.FreePorts(2)
		Expect(err).NotTo(HaveOccurred())
		agentPorts = fmt.Sprintf("ports.metrics=%d,ports.probes=%d", ports[0], ports[1])
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			for _, c := range started {
				GinkgoWriter.Printf("%s of Pod %s:\n%s\n", c.Name(), c.pod.Name, c.log())
			}
		}
	})

	AfterAll(func() {
		for _, c := range started {
			Expect(c.Kill()).To(Succeed())
		}
	})

	It("come from a release with checksums, whose images and charts are in a registry", func(ctx SpecContext) {
		run(ctx, released.folder, "sha256sum", "--check", "--strict", "SHA256SUMS")
		released.publish(ctx)
	})

	It("install where the CustomResourceDefinitions of the release were applied before", func(ctx SpecContext) {
		applyDefinitions(ctx, hub, released.path("gateway-crds.yaml"))
		applyDefinitions(ctx, member, released.path("agent-crds.yaml"))
		onHub, onMember = definitionsOn(ctx, hubClient), definitionsOn(ctx, memberClient)
	})

	It("install a gateway, whose account may do what it has to", func(ctx SpecContext) {
		ports, err := env.FreePorts(5)
		Expect(err).NotTo(HaveOccurred())
		ended := inBackground(ctx, hub, "install", "gateway", chart("gateway"), "--wait", "--timeout=4m",
			"--set=hubURL="+hub.URL+",replicas=1", "--set=helmCharts.enabled=true",
			fmt.Sprintf("--set=ports.api=%d,ports.webhooks=%d,ports.peers=%d,ports.metrics=%d,ports.probes=%d", ports[0], ports[1], ports[2], ports[3], ports[4]))
		leadToLoopback(ctx, hubClient)
		gateway = prepare(ctx, hub, hubClient, findPod(ctx, hubClient, gatewayApplication), "gateway", "--kubeconfig")
		started = append(started, gateway)
		expectPublished(ctx, "gateway", gateway.pod)
		gateway.startReady(ctx)
		Eventually(ended, patience).Should(Receive(Succeed()))
		Expect(definitionsOn(ctx, hubClient)).To(ConsistOf(onHub), "the release has what the gateway installs")

		Eventually(func(g Gomega) {
			for _, name := range []string{"v1alpha1.cluster.core.oam.dev", "v1alpha1.tunnel.fleetgate.io", "v1alpha1.webhook.fleetgate.io"} {
				api := &apiregistrationv1.APIService{}
				g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: name}, api)).To(Succeed())
				g.Expect(api.Status.Conditions).To(ContainElement(And(HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))))
			}
		}).Should(Succeed())
	})

	It("install an agent with the values as the hub gave them, and wait until it is registered", func(ctx SpecContext) {
		makeToken(ctx, values)
		ended := inBackground(ctx, member, "install", "fleet-agent", chart("agent"), "--wait", "--timeout=4m",
			"--values="+values, "--values="+limits, "--set="+agentPorts, "--set=clientID=client-of-member-1", "--set-string=labels.env=dev")
		agent = prepare(ctx, member, memberClient, findPod(ctx, memberClient, agentApplication), "agent", "--member-kubeconfig")
		started = append(started, agent)
		Expect(agent.pod.Labels).To(HaveKeyWithValue("app", "fleet-agent"))
		expectPublished(ctx, "agent", agent.pod)
		agent.startReady(ctx)
		Eventually(ended, patience).Should(Receive(Succeed()))

		bootstrap := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: enroll.BootstrapSecret}}
		Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(bootstrap), bootstrap)).To(Satisfy(apierrors.IsNotFound), "the token is forgotten")
		expectJoined(ctx)
		Expect(definitionsOn(ctx, memberClient)).To(ConsistOf(onMember), "the release has what the agent installs")

		By("having asked for it at the level of agents, and not at that of everybody's accounts")
		toHub, err := kubernetes.NewForConfig(hub.Config())
		Expect(err).NotTo(HaveOccurred())
		metrics, err := toHub.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(metrics)).To(MatchRegexp(
			`apiserver_flowcontrol_dispatched_requests_total\{flow_schema="fleetgate-[a-z-]+-registration",priority_level="fleetgate-[a-z-]+-agents"\} [1-9]`))
	})

	It("let the hub place what the agent may apply, and no more", func(ctx SpecContext) {
		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"greeting": "hello"}})
		Eventually(func(g Gomega) { g.Expect(placed(ctx, "shop")).To(BeTrue()) }).Should(Succeed())
		greeting := &corev1.ConfigMap{}
		Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, greeting)).To(Succeed())

		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "accounts"}},
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "accounts", Name: "forbidden"}})
		Eventually(func(g Gomega) {
			crp := &placementv1beta1.ClusterResourcePlacement{}
			g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: "accounts"}, crp)).To(Succeed())
			status, err := json.Marshal(crp.Status)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(status)).To(ContainSubstring("its role lacks the rule"))
		}).Should(Succeed())
	})

	It("reject the deletion of records that own placed objects", func(ctx SpecContext) {
		records := &placementv1beta1.AppliedWorkList{}
		Expect(memberClient.List(ctx, records)).To(Succeed())
		Expect(records.Items).NotTo(BeEmpty())
		record := &records.Items[0]
		Eventually(func() error { return memberClient.Delete(ctx, record, client.DryRunAll) }).Should(MatchError(ContainSubstring(
			"deleting AppliedWork " + record.Name + " deletes the objects that were placed on this member; use --cascade=orphan, or annotate it")))
		Expect(memberClient.DeleteAllOf(ctx, &placementv1beta1.AppliedWork{})).To(MatchError(ContainSubstring("deleting AppliedWork")))
		account, err := member.ConfigFor("system:serviceaccount:tools:dashboard", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		dashboard, err := client.New(account, client.Options{Scheme: memberClient.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(dashboard.Delete(ctx, record, client.DryRunAll)).To(MatchError(ContainSubstring("deleting AppliedWork")))
		Expect(memberClient.Delete(ctx, record, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Expect(memberClient.Delete(ctx, record, client.DryRunAll, client.Preconditions{UID: &record.UID})).To(Succeed(), "as agents and the garbage collector do")
		for _, name := range []string{crds.AppliedWorks, crds.AppliedManifestWorks} {
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
			err := memberClient.Delete(ctx, definition, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			if name == crds.AppliedManifestWorks && apierrors.IsNotFound(err) {
				continue // The agent serves no ManifestWorks.
			}
			Expect(err).To(MatchError(ContainSubstring("annotate it fleetgate.io/confirm-delete=true first")))
		}
		Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, &corev1.ConfigMap{})).To(Succeed())
	})

	It("bring a network add-on to a cluster that gets its label", func(ctx SpecContext) {
		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "calico-system"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "calico-system", Name: "cni-config"}, Data: map[string]string{"mtu": "1400"}},
			&placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"cni": "calico"}}},
			}})
		Eventually(func(g Gomega) {
			crp := &placementv1beta1.ClusterResourcePlacement{}
			g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: "calico-system"}, crp)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementScheduled")).To(BeTrue())
		}).Should(Succeed())
		config := &corev1.ConfigMap{}
		Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: "calico-system", Name: "cni-config"}, config)).To(Satisfy(apierrors.IsNotFound))

		Eventually(func() error {
			cluster := &registrationv1alpha1.Cluster{}
			if err := hubClient.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: memberName}, cluster); err != nil {
				return err
			}
			metav1.SetMetaDataLabel(&cluster.ObjectMeta, "cni", "calico")
			return hubClient.Update(ctx, cluster)
		}).Should(Succeed())
		Eventually(func() error {
			return memberClient.Get(ctx, client.ObjectKey{Namespace: "calico-system", Name: "cni-config"}, config)
		}).Should(Succeed())
	})

	It("give a cloud provider's add-on the networks and the proxy of its cluster", func(ctx SpecContext) {
		// As it is known of a cluster that Cluster API made.
		ofCluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: memberName}}
		annotate(ctx, ofCluster, clusterv1beta1.AnnotationProperties, `{"infrastructure.fleetgate.io/pod-cidrs":"192.168.0.0/16,fd00:10::/48"}`)
		ofMember := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: memberName}}
		annotate(ctx, ofMember, "example.com/https-proxy", "http://10.0.109.153:3129")
		annotate(ctx, ofMember, "example.com/no-proxy", ".svc,10.96.0.1")
		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cloud-provider"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cloud-provider", Name: "environment"}})

		override := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "cloud-provider", Name: "environment"}}
		override.Spec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "environment"}}
		override.Spec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}},
			OverrideType:    placementv1beta1.JSONPatchOverrideType,
			JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{Operator: placementv1beta1.JSONPatchAdd, Path: "/data", Value: apiextensionsv1.JSON{Raw: []byte(`{
				"CCM_CIDR_BLOCK": "${MEMBER-CLUSTER-PROPERTY-infrastructure.fleetgate.io/pod-cidrs}",
				"HTTPS_PROXY": "${MEMBER-CLUSTER-ANNOTATION-KEY-example.com/https-proxy}",
				"NO_PROXY": "${MEMBER-CLUSTER-ANNOTATION-KEY-example.com/no-proxy}"
			}`)}}},
		}}}
		Expect(hubClient.Create(ctx, override)).To(Succeed())
		environment := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cloud-provider", Name: "environment"}}
		onMember := func() (map[string]string, error) {
			err := memberClient.Get(ctx, client.ObjectKeyFromObject(environment), environment)
			return environment.Data, client.IgnoreNotFound(err)
		}
		want := map[string]string{"CCM_CIDR_BLOCK": "192.168.0.0/16,fd00:10::/48", "HTTPS_PROXY": "http://10.0.109.153:3129", "NO_PROXY": ".svc,10.96.0.1"}
		Eventually(onMember).Should(Equal(want))

		By("following what changes")
		annotate(ctx, ofMember, "example.com/no-proxy", ".svc")
		annotate(ctx, ofCluster, clusterv1beta1.AnnotationProperties, `{"infrastructure.fleetgate.io/pod-cidrs":"192.168.0.0/16"}`)
		want["NO_PROXY"], want["CCM_CIDR_BLOCK"] = ".svc", "192.168.0.0/16"
		Eventually(onMember).Should(Equal(want))
	})

	It("have the gateway render a chart with what is known of the cluster", func(ctx SpecContext) {
		packed, err := chartpack.Files(map[string]string{"templates/network.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-network}\n" +
			"data: {member: {{ .Values.global.fleetgate.member.name }}, cidrs: {{ .Values.cidrs }}}\n"})
		Expect(err).NotTo(HaveOccurred())
		cidrs := "${MEMBER-CLUSTER-PROPERTY-infrastructure.fleetgate.io/pod-cidrs}"
		addon := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "cni", Annotations: map[string]string{placementv1beta1.HelmChartAnnotation: "cni"}},
			Data:       map[string]string{"values.yaml": "cidrs: " + cidrs}, BinaryData: map[string][]byte{"chart.tgz": packed},
		}
		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "addons"}}, addon)
		network := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "cni-network"}}
		Eventually(func() (map[string]string, error) {
			err := memberClient.Get(ctx, client.ObjectKeyFromObject(network), network)
			return network.Data, client.IgnoreNotFound(err)
		}).Should(Equal(map[string]string{"member": memberName, "cidrs": "192.168.0.0/16"}))
		Eventually(func(g Gomega) { g.Expect(placed(ctx, "addons")).To(BeTrue()) }).Should(Succeed())
		Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(addon), &corev1.ConfigMap{})).To(Satisfy(apierrors.IsNotFound))

		By("taking it away")
		Expect(hubClient.Delete(ctx, addon)).To(Succeed())
		Eventually(func() error { return memberClient.Get(ctx, client.ObjectKeyFromObject(network), network) }).Should(Satisfy(apierrors.IsNotFound))
	})

	It("let a user of the hub in, as whom the member knows", func(ctx SpecContext) {
		for _, of := range []client.Client{hubClient, memberClient} {
			Expect(of.Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-admins"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "fleetgate:admins"}},
			})).To(Succeed())
		}
		config, err := hub.ConfigFor("admin", "fleetgate:admins")
		Expect(err).NotTo(HaveOccurred())
		config.Host += "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/" + memberName + "/proxy"
		through, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := through.CoreV1().Pods(namespace).Get(ctx, agent.pod.Name, metav1.GetOptions{})
			return err
		}).Should(Succeed())
	})

	It("upgrade an agent without a token, and it is the same member", func(ctx SpecContext) {
		before := memberCluster(ctx)
		ended := inBackground(ctx, member, "upgrade", "fleet-agent", chart("agent"), "--wait", "--timeout=4m", "--reset-values",
			"--values="+limits, "--set="+agentPorts, "--set=logging.verbosity=2")
		agent.stopWithPod(ctx)
		former := agent
		agent = prepare(ctx, member, memberClient, findPod(ctx, memberClient, agentApplication, former), "agent", "--member-kubeconfig")
		started = append(started, agent)
		agent.startReady(ctx)
		Eventually(ended, patience).Should(Receive(Succeed()))
		Expect(memberCluster(ctx).UID).To(Equal(before.UID))
		expectJoined(ctx)
	})

	It("show the fleet on one page, without a credential", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			command := exec.CommandContext(ctx, filepath.Join(home, ".fleetgate", "bin", "gateway"), "diagnose",
				"--kubeconfig="+filepath.Join(hub.Dir, env.BreakGlass+".kubeconfig"))
			page, err := command.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(page))
			g.Expect(string(page)).To(MatchRegexp(`(?m)^member-1 +True +True .* connected `))
			g.Expect(string(page)).To(MatchRegexp(`(?m)^v1alpha1.tunnel.fleetgate.io +True`))
			g.Expect(string(page)).NotTo(Or(ContainSubstring("could not be read"), ContainSubstring("eyJ")))
		}).Should(Succeed())
	})

	It("have refused nothing that the two needed", func() {
		// Only what is placed without the right to it may have been refused, and the question
		// whether this hub has a ManagedCluster of the agent.
		for _, c := range started {
			for _, line := range strings.Split(c.log(), "\n") {
				if strings.Contains(line, "cannot ") && strings.Contains(line, "is forbidden") {
					Expect(line).To(MatchRegexp(`resource \\?"roles|does not show its ManagedCluster`), c.Name())
				}
			}
		}
	})

	It("have the gateway place, with rbac.placeable=aggregated, what the aggregated role lets it read, and name the rest", func(ctx SpecContext) {
		_, err := helm(ctx, hub, "upgrade", "gateway", chart("gateway"), "--reuse-values", "--set=rbac.placeable=aggregated", "--wait", "--timeout=4m")
		Expect(err).NotTo(HaveOccurred())
		Expect(gateway.Restart(ctx)).To(Succeed(), gateway.log)
		allowed := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "placeable-limits", Labels: map[string]string{placementv1beta1.PlaceableLabel: "true"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"limitranges"}, Verbs: []string{"list", "watch"}}},
		}
		Expect(hubClient.Create(ctx, allowed)).To(Succeed())
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "limited", Name: "some"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod}}}}
		place(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "limited"}}, limits)
		Expect(hubClient.Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "limited", Name: "closed"}})).To(Succeed())
		Eventually(func() error { return memberClient.Get(ctx, client.ObjectKeyFromObject(limits), limits) }, patience).Should(Succeed())
		unreadable := func() (string, error) {
			crp := &placementv1beta1.ClusterResourcePlacement{}
			err := hubClient.Get(ctx, client.ObjectKey{Name: "limited"}, crp)
			condition := meta.FindStatusCondition(crp.Status.Conditions, placementv1beta1.ConditionResourcesUnreadable)
			if err != nil || condition == nil {
				return "", err
			}
			return string(condition.Status) + ": " + condition.Message, nil
		}
		Eventually(unreadable, patience).Should(And(HavePrefix("True: "), ContainSubstring("networkpolicies.networking.k8s.io"), Not(ContainSubstring("limitranges"))))

		By("upgrading again, when the hub has written the rules of the aggregated role")
		_, err = helm(ctx, hub, "upgrade", "gateway", chart("gateway"), "--reuse-values", "--wait", "--timeout=4m")
		Expect(err).NotTo(HaveOccurred())
	})

	It("leave nothing of the agent but its key, its credential, and the record of what it applied", func(ctx SpecContext) {
		Eventually(inBackground(ctx, member, "uninstall", "fleet-agent", "--wait"), patience).Should(Receive(Succeed()))
		agent.stopWithPod(ctx)
		Eventually(func(g Gomega) {
			var secrets corev1.SecretList
			g.Expect(memberClient.List(ctx, &secrets, client.InNamespace(namespace))).To(Succeed())
			g.Expect(secrets.Items).To(ConsistOf(HaveField("Name", enroll.KeySecret), HaveField("Name", enroll.CredentialSecret)))
		}).Should(Succeed())
		for _, left := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-impersonate"}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-impersonate"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet-agent"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management-managed-serviceaccount"}},
		} {
			Eventually(func() error { return memberClient.Get(ctx, client.ObjectKeyFromObject(left), left) }).Should(Satisfy(apierrors.IsNotFound))
		}
	})

	It("stop the gateway and remove all that leads to it before it is gone", func(ctx SpecContext) {
		ended := inBackground(ctx, hub, "uninstall", "gateway", "--wait", "--timeout=3m")
		gateway.uninstall(ctx, hub)
		Eventually(ended, patience).Should(Receive(Succeed()))

		ours := client.MatchingLabels{install.LabelManagedBy: install.ManagedBy}
		for _, list := range []client.ObjectList{
			&admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
			&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
			&apiregistrationv1.APIServiceList{},
		} {
			Expect(hubClient.List(ctx, list, ours)).To(Succeed())
			Expect(meta.LenList(list)).To(BeZero(), fmt.Sprintf("%T", list))
		}
		var roles rbacv1.ClusterRoleList
		Expect(hubClient.List(ctx, &roles, client.MatchingLabels{"app.kubernetes.io/instance": "gateway"})).To(Succeed())
		Expect(roles.Items).To(BeEmpty(), "the hook's own rights go too")
		Expect(memberCluster(ctx).UID).NotTo(BeEmpty(), "what users stored stays")
	})
})

// leadToLoopback is what kube-proxy would do: the Service leads to the process.
func leadToLoopback(ctx context.Context, hub client.Client) {
	GinkgoHelper()
	Eventually(func() error {
		service := &corev1.Service{}
		if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "gateway"}, service); err != nil {
			return err
		}
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "127.0.0.1"
		service.Spec.ClusterIP, service.Spec.ClusterIPs, service.Spec.Selector = "", nil, nil
		return hub.Update(ctx, service)
	}).Should(Succeed())
}

// makeToken makes what an administrator makes, and writes the values to a file.
func makeToken(ctx context.Context, file string) {
	GinkgoHelper()
	clusters := "clusters"
	Expect(hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusters}})).To(Succeed())
	Expect(hubClient.Create(ctx, &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: memberName}, Spec: registrationv1alpha1.ClusterSpec{ClientID: "client-of-member-1"},
	})).To(Succeed())
	token := &registrationv1alpha1.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: "new-token"},
		Spec:       registrationv1alpha1.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: time.Hour}},
	}
	Expect(hubClient.Create(ctx, token)).To(Succeed())
	secret := &corev1.Secret{}
	Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(token), secret) }).Should(Succeed())
	Expect(os.WriteFile(file, secret.Data[registrationv1alpha1.RegistrationValuesKey], 0o600)).To(Succeed())
}

func memberCluster(ctx context.Context) *clusterv1beta1.MemberCluster {
	GinkgoHelper()
	mc := &clusterv1beta1.MemberCluster{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Name: memberName}, mc)).To(Succeed())
	return mc
}

func expectJoined(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		mc := &clusterv1beta1.MemberCluster{}
		g.Expect(hubClient.Get(ctx, client.ObjectKey{Name: memberName}, mc)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1beta1.ConditionJoined)).To(BeTrue())
	}).Should(Succeed())
}

// place makes a namespace with an object in it, and a placement of that name that takes
// both to every member, or to those that are required.
func place(ctx context.Context, of *corev1.Namespace, object client.Object, required ...*placementv1beta1.ClusterSelector) {
	GinkgoHelper()
	var policy *placementv1beta1.PlacementPolicy
	for _, selector := range required {
		policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll, Affinity: &placementv1beta1.Affinity{
			ClusterAffinity: &placementv1beta1.ClusterAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector},
		}}
	}
	Expect(hubClient.Create(ctx, of)).To(Succeed())
	Expect(hubClient.Create(ctx, object)).To(Succeed())
	// Reviews of placements wait until the hub has found the gateway that has just begun.
	Eventually(func() error {
		return hubClient.Create(ctx, &placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: of.Name},
			Spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
				{Group: "", Version: "v1", Kind: "Namespace", Name: of.Name},
			}, Policy: policy},
		})
	}).Should(Succeed())
}

func annotate(ctx context.Context, object client.Object, key, value string) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	Expect(hubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func placed(ctx context.Context, name string) bool {
	crp := &placementv1beta1.ClusterResourcePlacement{}
	if err := hubClient.Get(ctx, client.ObjectKey{Name: name}, crp); err != nil {
		return false
	}
	return meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementAvailable")
}
