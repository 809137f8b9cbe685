// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

// as returns a client of a hub for a user with the rights of cluster-wide rules.
func as(ctx context.Context, at *env.Cluster, admin client.Client, user string, rules ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	config, err := at.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(unlimited(config), client.Options{Scheme: kinds()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func may(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// workOf returns a ManifestWork with these manifests in namespace cluster1.
func workOf(name string, manifests ...string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name}}
	for _, manifest := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	return work
}

// setOf returns a set with the spec of a ManifestWork.
func setOf(name string, work *workv1.ManifestWork) *workv1alpha1.ManifestWorkReplicaSet {
	return &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
		ManifestWorkTemplate: work.Spec, PlacementRefs: []workv1alpha1.LocalPlacementReference{everywhere("p")},
	}}
}

const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"}}`

// executor returns an account of a cluster as executor.
func executor(work *workv1.ManifestWork) *workv1.ManifestWork {
	work.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "default", Name: "deployer"},
	}}
	return work
}

var _ = Describe("A hub with works only", Ordered, func() {
	var bare *env.Cluster
	var admin client.Client
	var process *env.Process

	BeforeAll(func(ctx SpecContext) {
		var err error
		bare, err = env.Start(ctx, env.Options{Name: "bare"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(bare.Stop(ctx)).To(Succeed()) })
		process = program.Gateway(ctx, bare, "--ocm=works", "--install", "--external-name=localhost", program.Configuration("placement: {manifestLimit: 2000}"))
		admin, err = client.New(unlimited(bare.Config()), client.Options{Scheme: kinds()})
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"cluster1", "team-a"} {
			Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		}
		for _, name := range []string{webhook.ManifestWorkConfiguration, webhook.ReplicaSetConfiguration} {
			Eventually(func() error {
				return admin.Get(ctx, client.ObjectKey{Name: name}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
			}).Should(Succeed())
		}
	})

	It("gets the kinds of works and no others", func(ctx SpecContext) {
		definitions := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(admin.List(ctx, definitions)).To(Succeed())
		var found []string
		for _, definition := range definitions.Items {
			found = append(found, definition.Name)
		}
		Expect(found).To(ConsistOf("manifestworks.work.open-cluster-management.io", "manifestworkreplicasets.work.open-cluster-management.io"))
	})

	It("rejects invalid ManifestWorks with the status and messages of OCM", func(ctx SpecContext) {
		good := workOf("good", settings)
		Eventually(func() error { return admin.Create(ctx, good.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		Expect(admin.Create(ctx, good)).To(Succeed())
		for want, work := range map[string]*workv1.ManifestWork{
			"manifests should not be empty":                                                    workOf("a"),
			"name must be set in manifest":                                                     workOf("b", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}}`),
			"generateName must not be set in manifest":                                         workOf("c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","generateName":"y"}}`),
			"duplicate manifest for resource default/settings with resource type v1.ConfigMap": workOf("d", settings, settings),
			"bytes which exceeds the 2000 limit":                                               workOf("e", strings.Replace(settings, `}}`, fmt.Sprintf(`},"data":{"x":%q}}`, strings.Repeat("x", 2000)), 1)),
		} {
			err := admin.Create(ctx, work)
			Expect(apierrors.IsBadRequest(err)).To(BeTrue(), "%s: %v", want, err)
			Expect(err).To(MatchError(And(ContainSubstring(want), ContainSubstring(`admission webhook "manifestworkvalidators.admission.work.open-cluster-management.io" denied the request: `))))
		}
		good.Spec.Workload.Manifests = nil
		Expect(apierrors.IsBadRequest(admin.Update(ctx, good))).To(BeTrue(), "an update too")
	})

	It("lets an agent set finalizers and status of its ManifestWorks and nothing else", func(ctx SpecContext) {
		rules := []rbacv1.PolicyRule{may(workv1.GroupName, "manifestworks", "get", "update", "patch"), may(workv1.GroupName, "manifestworks/status", "update", "patch")}
		agent := as(ctx, bare, admin, "system:open-cluster-management:cluster1:agent", rules...)
		work := executor(workOf("held", settings))
		work.Labels = map[string]string{"team": "a"}
		Expect(admin.Create(ctx, work)).To(Succeed())
		change := func(how func(*workv1.ManifestWork)) error {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
			how(work)
			return agent.Update(ctx, work)
		}
		steal := func(w *workv1.ManifestWork) { w.Spec.Executor = nil }
		attempt := 0
		Eventually(func() error {
			attempt++ // an earlier attempt may have been accepted
			return change(func(w *workv1.ManifestWork) {
				w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(settings, `}}`, fmt.Sprintf(`},"data":{"attempt":"%d"}}`, attempt), 1))
			})
		}).Should(MatchError(ContainSubstring("what is in a ManifestWork is the hub's")))
		for want, how := range map[string]func(*workv1.ManifestWork){
			"what is in a ManifestWork is the hub's":           steal,
			"labels, annotations and owners of a ManifestWork": func(w *workv1.ManifestWork) { w.Labels = nil },
			"an agent holds a ManifestWork, and lets it go, with finalizer cluster.open-cluster-management.io/manifest-work-cleanup only": func(w *workv1.ManifestWork) {
				w.Finalizers = append(w.Finalizers, "example.com/for-ever")
			},
		} {
			err := change(how)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", want, err)
			Expect(err).To(MatchError(ContainSubstring(want)))
		}
		Expect(change(func(w *workv1.ManifestWork) { w.Finalizers = []string{workv1.ManifestWorkFinalizer} })).To(Succeed())
		work.Status.Conditions = []metav1.Condition{{Type: workv1.ConditionApplied, Status: metav1.ConditionTrue, Reason: workv1.ReasonWorkApplied, LastTransitionTime: metav1.Now()}}
		Expect(agent.Status().Update(ctx, work)).To(Succeed())
		Expect(change(func(w *workv1.ManifestWork) { w.Finalizers = nil })).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
		Expect(work.Spec.Executor).NotTo(BeNil())
		Expect(work.Status.Conditions).To(HaveLen(1))
	})

	It("authorizes the use of an executor", func(ctx SpecContext) {
		works := may(workv1.GroupName, "manifestworks", "create", "get", "update")
		mayNot := as(ctx, bare, admin, "writer", works)
		err := mayNot.Create(ctx, executor(workOf("writers", settings)))
		Expect(apierrors.IsBadRequest(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("user writer cannot manipulate the Manifestwork with executor default/deployer in namespace cluster1")))
		Expect(mayNot.Create(ctx, workOf("writers", settings))).To(Succeed())

		deploys := may(workv1.GroupName, "manifestworks", "execute-as")
		deploys.ResourceNames = []string{"system:serviceaccount:default:deployer"}
		Expect(as(ctx, bare, admin, "deployer", works, deploys).Create(ctx, executor(workOf("deployers", settings)))).To(Succeed())

		By("an author who does not change it")
		work := &workv1.ManifestWork{}
		Expect(mayNot.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: "deployers"}, work)).To(Succeed())
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workOf("", strings.Replace(settings, "settings", "more", 1)).Spec.Workload.Manifests...)
		Expect(mayNot.Update(ctx, work)).To(Succeed())
	})

	It("rejects a template that makes no valid ManifestWork", func(ctx SpecContext) {
		for want, work := range map[string]*workv1.ManifestWork{
			"Workload manifests should not be empty": workOf("a"),
			"name must be set in manifest":           workOf("b", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}}`),
			"duplicate manifest for resource":        workOf("c", settings, settings),
		} {
			err := admin.Create(ctx, setOf(work.Name, work))
			Expect(apierrors.IsBadRequest(err)).To(BeTrue(), "%s: %v", want, err)
			Expect(err).To(MatchError(ContainSubstring(want)))
		}
		Expect(admin.Create(ctx, setOf("good", workOf("good", settings)))).To(Succeed())
	})

	It("authorizes the author of a set for its manifests unless it has an executor", func(ctx SpecContext) {
		sets := may(workv1.GroupName, "manifestworkreplicasets", "create", "get", "update")
		author := as(ctx, bare, admin, "author", sets)
		err := author.Create(ctx, setOf("authors", workOf("", settings)))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring("spec.manifestWorkTemplate.workload.manifests[0]"),
			ContainSubstring(`user "author" cannot create or update configmaps "settings" in namespace "default" on the hub, and a ManifestWorkReplicaSet does not bypass that`))))

		By("an author who could not overwrite a ConfigMap that a cluster has")
		creator := as(ctx, bare, admin, "creator", sets, may("", "configmaps", "create"))
		Expect(creator.Create(ctx, setOf("creators", workOf("", settings)))).To(MatchError(ContainSubstring(`cannot update configmaps "settings"`)))

		By("an author with the rights to write ConfigMaps only")
		maker := as(ctx, bare, admin, "maker", sets, may("", "configmaps", "create", "update"), may(rbacv1.GroupName, "clusterrolebindings", "create", "update"))
		Expect(maker.Create(ctx, setOf("makers", workOf("", settings)))).To(Succeed())
		err = maker.Create(ctx, setOf("escalating", workOf("", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`)))
		Expect(err).To(MatchError(ContainSubstring(`cannot bind clusterroles.rbac.authorization.k8s.io "cluster-admin"`)))
		err = maker.Create(ctx, setOf("unknown", workOf("", `{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"x"}}`)))
		Expect(err).To(MatchError(ContainSubstring(`cannot create or update *.x.io`)))

		By("a user who changes the set of another, and one who only labels it")
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		Expect(author.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "makers"}, set)).To(Succeed())
		set.Labels = map[string]string{"seen": "true"}
		Expect(author.Update(ctx, set)).To(Succeed())
		set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, everywhere("q"))
		Expect(apierrors.IsInvalid(author.Update(ctx, set))).To(BeTrue())

		By("an executor, for which the author needs a right in all clusters")
		bounded := setOf("bounded", executor(workOf("", settings)))
		err = author.Create(ctx, bounded.DeepCopy())
		Expect(err).To(MatchError(ContainSubstring(`cannot execute-as manifestworks.work.open-cluster-management.io "system:serviceaccount:default:deployer"`)))
		deploys := may(workv1.GroupName, "manifestworks", "execute-as")
		deploys.ResourceNames = []string{"system:serviceaccount:default:deployer"}
		Expect(as(ctx, bare, admin, "bounded", sets, deploys).Create(ctx, bounded)).To(Succeed())
	})

	It("rejects a namespace owner's cluster-scoped manifest that names the namespace", func(ctx SpecContext) {
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "owner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "owner"}},
		})).To(Succeed())
		owner := as(ctx, bare, admin, "owner")
		Eventually(func() error {
			return owner.Create(ctx, setOf("owned", workOf("", strings.Replace(settings, `"default"`, `"team-a"`, 1))))
		}).Should(Succeed(), "objects in the namespace")
		const ofCluster = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x","namespace":"team-a"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`
		Expect(owner.Create(ctx, setOf("whole-cluster", workOf("", ofCluster)))).To(MatchError(And(
			ContainSubstring(`cannot create or update clusterrolebindings.rbac.authorization.k8s.io "x" on the hub`),
			ContainSubstring(`cannot bind clusterroles.rbac.authorization.k8s.io "cluster-admin" on the hub`))))
		Expect(owner.Create(ctx, setOf("unknown-scope", workOf("", `{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"x","namespace":"team-a"}}`)))).
			To(MatchError(ContainSubstring(`cannot create or update *.x.io on the hub`)))

		By("a set inside the set, which a cluster that is itself a hub would accept from its agent")
		inner := setOf("inner", workOf("", ofCluster))
		inner.APIVersion, inner.Kind = workv1alpha1.GroupVersion.String(), "ManifestWorkReplicaSet"
		raw, err := json.Marshal(inner)
		Expect(err).NotTo(HaveOccurred())
		Expect(owner.Create(ctx, setOf("nested", workOf("", string(raw))))).To(MatchError(ContainSubstring("cannot create or update everything (*) in all namespaces on the hub")))
	})

	It("does not authorize the ManifestWorks that the gateway creates", func(ctx SpecContext) {
		serve(bare, ocmclusterv1beta1.GroupName)
		makeSetOfAll(ctx, admin)
		bindSetOfAll(ctx, admin, "team-a")
		makeCluster(ctx, admin, "cluster1", nil)
		Expect(admin.Create(ctx, setOf("rolled-out", executor(workOf("", settings))))).To(Succeed())
		Expect(admin.Create(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"}})).To(Succeed())
		decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "p-decision-1", Labels: map[string]string{ocmclusterv1beta1.PlacementLabel: "p"},
		}}
		Expect(admin.Create(ctx, decision)).To(Succeed())
		decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{{ClusterName: "cluster1"}}
		Expect(admin.Status().Update(ctx, decision)).To(Succeed())
		made := client.MatchingLabels{workv1alpha1.ReplicaSetLabel: "team-a.rolled-out"}
		Eventually(func(g Gomega) {
			works := &workv1.ManifestWorkList{}
			g.Expect(admin.List(ctx, works, made)).To(Succeed())
			g.Expect(works.Items).To(HaveLen(1), "although the gateway lacks execute-as")
		}).Should(Succeed())

		By("another user setting that label on a ManifestWork")
		work := workOf("posing")
		work.Labels = made
		err := as(ctx, bare, admin, "poser", may(workv1.GroupName, "manifestworks", "create")).Create(ctx, work)
		Expect(err).To(MatchError(ContainSubstring("manifests should not be empty")))
	})

	It("is bypassed by break-glass access, also while no gateway is available", func(ctx SpecContext) {
		word := func(work *workv1.ManifestWork) *workv1.ManifestWork {
			work.Annotations = map[string]string{webhook.AnnotationBypass: "no gateway"}
			return work
		}
		creates := may(workv1.GroupName, "manifestworks", "create")
		Expect(process.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(process.Restart(ctx)).To(Succeed()) })
		Expect(as(ctx, bare, admin, "wordy", creates).Create(ctx, word(workOf("wordy", settings)))).NotTo(Succeed(), "the annotation alone")
		Expect(admin.Create(ctx, workOf("rightful", settings))).NotTo(Succeed(), "the right alone")
		breaks := may(webhook.BypassGroup, webhook.BypassWebhooks, webhook.BypassVerb)
		breaks.ResourceNames = []string{webhook.ManifestWorkConfiguration}
		breaker := as(ctx, bare, admin, "breaker", creates, may(workv1alpha1.GroupVersion.Group, "manifestworkreplicasets", "create"), breaks)
		Expect(breaker.Create(ctx, word(workOf("broken-in", settings)))).To(Succeed())
		set := setOf("broken-in", workOf("", settings))
		set.Annotations = map[string]string{webhook.AnnotationBypass: "no gateway"}
		Expect(breaker.Create(ctx, set)).NotTo(Succeed(), "the right is for another kind")
	})

	It("lets agents write everything but the spec while no gateway is available", func(ctx SpecContext) {
		Eventually(func() error { return admin.Create(ctx, workOf("agents", settings)) }).Should(Succeed(), "the restarted gateway answers")
		Expect(process.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(process.Restart(ctx)).To(Succeed()) })
		work := &workv1.ManifestWork{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: "agents"}, work)).To(Succeed())
		work.Finalizers = []string{workv1.ManifestWorkFinalizer}
		Expect(admin.Update(ctx, work)).To(Succeed())
		Expect(admin.Delete(ctx, work)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
		work.Finalizers = nil
		Expect(admin.Update(ctx, work)).To(Succeed())
		Expect(admin.Create(ctx, workOf("late", settings))).NotTo(Succeed(), "a new one waits for a gateway")
	})
})
