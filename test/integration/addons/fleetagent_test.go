// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
	"fleetgate.io/fleetgate/test/support/transcript"
)

const agentWork = "addon-fleetgate-agent-deploy-0"

// bridged is a hub with the gateway's program, a cluster of a klusterlet, and members if asked for.
type bridged struct {
	fleet *fleet.Fleet
	hub   client.Client
	spoke *program.Newcomer
	// cluster reads and writes on the spoke.
	cluster client.Client
}

func newBridged(ctx context.Context, members ...string) *bridged {
	GinkgoHelper()
	configuration, err := env.ConfigFlag(GinkgoT().TempDir(), configv1alpha1.GatewayKind,
		"registration: {agentImage: 'registry.example.com/agent:test'}\nplacement: {snapshotMinimumInterval: 0s, changesCollectionDuration: 0s}")
	Expect(err).NotTo(HaveOccurred())
	b := &bridged{fleet: program.Fleet(ctx, fleet.Options{Members: members, Patience: 5 * time.Minute, OCM: true, GatewayArgs: []string{configuration}})}
	known := kinds()
	Expect(registrationv1alpha1.AddToScheme(known)).To(Succeed())
	b.hub = expect.Client(build.Unlimited(b.fleet.Hub.Config()), known)
	b.spoke = program.StartNewcomer(ctx, env.Options{Name: "spoke"})
	b.cluster = expect.Client(build.Unlimited(b.spoke.Config()), known)
	return b
}

// accepted creates a ManagedCluster that the hub accepts.
func (b *bridged) accepted(ctx context.Context, name string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
	cluster.Labels = map[string]string{"tier": name}
	cluster.Spec = clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 3600}
	expect.Created(ctx, b.hub, cluster)
	Eventually(func(g Gomega) {
		g.Expect(b.hub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)).To(BeTrue())
	}).Should(Succeed())
}

// connected reports in place of the cluster's registration agent.
func (b *bridged) connected(ctx context.Context, name string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{}
	Eventually(func(g Gomega) {
		g.Expect(b.hub.Get(ctx, client.ObjectKey{Name: name}, cluster)).To(Succeed())
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined"})
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable"})
		g.Expect(b.hub.Status().Update(ctx, cluster)).To(Succeed())
	}).Should(Succeed())
}

// available is condition Available of an add-on, as status and reason.
func (b *bridged) available(ctx context.Context, cluster, addOn string) (string, error) {
	object := &addonv1alpha1.ManagedClusterAddOn{}
	err := b.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addOn}, object)
	condition := expect.Condition(object.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return string(condition.Status) + " " + condition.Reason, err
}

// manifests are those of the agent of a cluster.
func (b *bridged) manifests(ctx context.Context, cluster string) ([]*unstructured.Unstructured, error) {
	work := &workv1.ManifestWork{}
	if err := b.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: agentWork}, work); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, manifest := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(manifest.Raw, &object.Object); err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

func hasBootstrap(manifests []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(manifests, func(o *unstructured.Unstructured) bool { return o.GetName() == "fleet-agent-bootstrap" })
}

// enable creates the add-on for the clusters with a label.
func (b *bridged) enable(ctx context.Context) {
	GinkgoHelper()
	out, err := program.Kubectl(ctx, b.fleet.Hub, `
apiVersion: v1
kind: Namespace
metadata: {name: bridge}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {namespace: bridge, name: global}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {namespace: bridge, name: spokes}
spec:
  predicates:
  - requiredClusterSelector: {labelSelector: {matchLabels: {tier: spoke}}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: fleetgate-agent}
spec:
  installStrategy: {type: Placements, placements: [{namespace: bridge, name: spokes}]}
`, "apply", "--filename=-")
	Expect(err).NotTo(HaveOccurred(), out)
}

// place places a ConfigMap on members that have a label of their ManagedCluster.
func (b *bridged) place(ctx context.Context) {
	GinkgoHelper()
	out, err := program.Kubectl(ctx, b.fleet.Hub, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: settings}
data: {a: b}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy:
    placementType: PickAll
    affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {tier: spoke}}}]}}}
`, "apply", "--filename=-")
	Expect(err).NotTo(HaveOccurred(), out)
}

// delivered creates a ManifestWork of somebody else.
func (b *bridged) delivered(ctx context.Context) {
	GinkgoHelper()
	work := &workv1.ManifestWork{ObjectMeta: build.In("spoke", "other")}
	one := workv1.Manifest{}
	one.Raw = []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "of-a-work"}}`)
	work.Spec.Workload.Manifests = []workv1.Manifest{one}
	expect.Created(ctx, b.hub, work)
}

// ledgers are the works that agents applied on the spoke, once for each agent.
func (b *bridged) ledgers(ctx context.Context) ([]string, error) {
	list := &workv1.AppliedManifestWorkList{}
	err := b.cluster.List(ctx, list)
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Spec.ManifestWorkName)
	}
	slices.Sort(names)
	return names, err
}

func (b *bridged) exists(ctx context.Context, at client.Client, object client.Object) func() (bool, error) {
	return func() (bool, error) {
		err := at.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil, client.IgnoreNotFound(err)
	}
}

var _ = Describe("A cluster with a klusterlet", Serial, func() {
	It("becomes a member by add-on fleetgate-agent, and stays as it was when the add-on is removed", SpecTimeout(8*time.Minute), func(ctx SpecContext) {
		b := newBridged(ctx, "member-1")
		b.accepted(ctx, "spoke")
		b.runKlusterlet(ctx)
		cluster := &clusterv1.ManagedCluster{}
		Eventually(func(g Gomega) {
			g.Expect(b.hub.Get(ctx, client.ObjectKey{Name: "spoke"}, cluster)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionAvailable)).To(BeTrue())
			g.Expect(cluster.Spec.Taints).To(BeEmpty())
		}).Should(Succeed())
		b.delivered(ctx)
		b.enable(ctx)
		Eventually(b.available).WithArguments(ctx, "spoke", "fleetgate-agent").Should(Equal("False WaitingForAgent"))
		Expect(b.manifests(ctx, "spoke")).To(WithTransform(hasBootstrap, BeTrue()))

		By("running the agent that the klusterlet installed")
		b.spoke.RunAgentIn(ctx, addonv1alpha1.FleetgateAgentNamespace)
		Eventually(b.available).WithArguments(ctx, "spoke", "fleetgate-agent").Should(Equal("True FeatureAvailable"))
		for _, feature := range []string{"managed-serviceaccount", "cluster-proxy", "cluster-gateway"} {
			Eventually(b.available).WithArguments(ctx, "spoke", feature).Should(Equal("True FeatureAvailable"))
		}
		Eventually(func() (string, error) {
			return b.fleet.Kubectl(ctx, b.fleet.HubKubeconfig(), "", "get", "--raw", "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/spoke/proxy/healthz")
		}).Should(Equal("ok"))

		By("the credential is gone from the hub")
		Eventually(b.manifests).WithArguments(ctx, "spoke").Should(WithTransform(hasBootstrap, BeFalse()))
		token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: build.In(fleet.RegistrationNamespace, "import-token-spoke")}
		Eventually(b.exists(ctx, b.hub, token)).Should(BeFalse())
		Eventually(b.progress).WithArguments(ctx).Should(Equal("completed with no errors."))

		By("placing resources by a label of the ManagedCluster")
		b.place(ctx)
		settings := &corev1.ConfigMap{ObjectMeta: build.In("shop", "settings")}
		Eventually(b.exists(ctx, b.cluster, settings)).Should(BeTrue())

		By("printing what the page about add-ons shows")
		page, err := transcript.Read("../../../docs/how-to/ocm-addons.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Commands).To(HaveLen(3))
		for _, command := range page.Commands {
			By(command.Line)
			args := strings.Fields(strings.ReplaceAll(command.Line, `"`, ""))
			Eventually(func() (string, error) { return b.fleet.Kubectl(ctx, b.fleet.HubKubeconfig(), "", args[1:]...) }).Should(MatchRegexp(command.Pattern()))
		}

		By("leaving ManifestWorks to the klusterlet")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: accountUser("spoke"), ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: workv1.GroupName, Resource: "manifestworks", Namespace: "spoke", Verb: "list",
		}}}
		Expect(b.hub.Create(ctx, review)).To(Succeed())
		Expect(review.Status.Allowed).To(BeFalse())
		Expect(b.ledgers(ctx)).To(Equal([]string{agentWork, "other"}))

		By("removing the add-on")
		Expect(b.hub.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named("fleetgate-agent")})).To(Succeed())
		Eventually(b.exists(ctx, b.hub, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("spoke", "fleetgate-agent")})).Should(BeFalse())
		Eventually(b.exists(ctx, b.hub, &clusterv1beta1.MemberCluster{ObjectMeta: build.Named("spoke")})).Should(BeFalse())
		Expect(b.exists(ctx, b.hub, &registrationv1alpha1.Cluster{ObjectMeta: build.In(fleet.RegistrationNamespace, "spoke")})()).To(BeFalse())
		b.spoke.StopAgent(ctx)
		for _, namespace := range []string{addonv1alpha1.FleetgateAgentNamespace, addonv1alpha1.FleetgateAgentAccounts} {
			Eventually(b.exists(ctx, b.cluster, &corev1.Namespace{ObjectMeta: build.Named(namespace)})).Should(BeFalse())
		}
		Expect(b.exists(ctx, b.cluster, settings)()).To(BeTrue(), "what was placed stays")
		Expect(b.exists(ctx, b.cluster, &corev1.ConfigMap{ObjectMeta: build.In("default", "of-a-work")})()).To(BeTrue())
		Eventually(func(g Gomega) {
			now := &clusterv1.ManagedCluster{}
			g.Expect(b.hub.Get(ctx, client.ObjectKeyFromObject(cluster), now)).To(Succeed())
			g.Expect(now.UID).To(Equal(cluster.UID))
			g.Expect(now.Spec).To(Equal(cluster.Spec))
			g.Expect(now.Annotations).NotTo(HaveKey(addonv1alpha1.AgentMemberAnnotation))
			g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, clusterv1.ConditionAvailable)).To(BeTrue())
			g.Expect(now.Labels).NotTo(HaveKey(ContainSubstring("addon-")))
		}).Should(Succeed())
	})

	It("gets exactly the gateway's agent, whichever user installs the add-on", SpecTimeout(8*time.Minute), func(ctx SpecContext) {
		b := newBridged(ctx)
		b.accepted(ctx, "other")
		b.connected(ctx, "other")
		expect.Created(ctx, b.hub, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named("fleetgate-agent")})
		expect.Created(ctx, b.hub, &rbacv1.ClusterRole{ObjectMeta: build.Named("installers"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{addonv1alpha1.GroupName}, Resources: []string{"managedclusteraddons", "clustermanagementaddons"}, Verbs: []string{"create", "update"}},
		}}, &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named("installers"), Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "installer"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "installers"}})
		config, err := b.fleet.Hub.ConfigFor("installer")
		Expect(err).NotTo(HaveOccurred())
		installer := expect.Client(build.Unlimited(config), kinds())
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("other", "fleetgate-agent")}
		addOn.Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "bridge"}
		addOn.Spec.InstallNamespace = "kube-system"
		refused := installer.Create(ctx, addOn.DeepCopy())
		Expect(apierrors.IsForbidden(refused)).To(BeTrue(), "%v", refused)
		Expect(refused).To(MatchError(ContainSubstring("needs the verb create on manifestworks in namespace other")))

		By("granting the right to deliver to that cluster")
		role, binding := build.Grant("other", "installers", "installer", []rbacv1.PolicyRule{{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"create"}}})
		expect.Created(ctx, b.hub, role, binding)
		Eventually(func() error { return installer.Create(ctx, addOn.DeepCopy()) }).Should(Succeed())
		var manifests []*unstructured.Unstructured
		Eventually(func() (err error) {
			manifests, err = b.manifests(ctx, "other")
			return err
		}).Should(Succeed())
		for _, manifest := range manifests {
			namespace := manifest.GetNamespace()
			if manifest.GetKind() == "Namespace" {
				namespace = manifest.GetName()
			}
			Expect(namespace).To(BeElementOf("", addonv1alpha1.FleetgateAgentNamespace, addonv1alpha1.FleetgateAgentAccounts), manifest.GetName())
			if manifest.GetKind() == "Deployment" {
				text, err := manifest.MarshalJSON()
				Expect(err).NotTo(HaveOccurred())
				Expect(strings.Count(string(text), `"image":`)).To(Equal(1))
				Expect(string(text)).To(ContainSubstring(`"image":"registry.example.com/agent:test"`))
			}
		}
		Eventually(b.available).WithArguments(ctx, "other", "fleetgate-agent").Should(Equal("False WaitingForKlusterlet"))

		By("removing it before its agent ran")
		Expect(b.hub.Delete(ctx, addOn)).To(Succeed())
		Eventually(b.exists(ctx, b.hub, addOn)).Should(BeFalse())
		Expect(b.exists(ctx, b.hub, &registrationv1alpha1.Cluster{ObjectMeta: build.In(fleet.RegistrationNamespace, "other")})()).To(BeFalse())
	})
})

// progress is the message of condition Progressing.
func (b *bridged) progress(ctx context.Context) (string, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := b.hub.Get(ctx, client.ObjectKey{Namespace: "spoke", Name: "fleetgate-agent"}, addOn)
	return expect.Condition(addOn.Status.Conditions, addonv1alpha1.ConditionProgressing).Message, err
}
