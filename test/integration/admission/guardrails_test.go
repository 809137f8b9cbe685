// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/expect"
)

// newNamespace creates a namespace with labels and returns its name.
func newNamespace(ctx context.Context, labels ...string) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	Expect(masters.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

func podIn(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func replicaSetIn(namespace string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podIn("").Spec,
		}},
	}
}

// everyUser returns a user with all verbs on each named kind but without the verb bypass.
func everyUser(ctx context.Context, name string) client.Client {
	GinkgoHelper()
	config, err := hub.ConfigFor(name)
	Expect(err).NotTo(HaveOccurred())
	verbs := []string{"create", "update", "patch", "delete", "get", "list"}
	groups := []string{
		"", "apps", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io",
		clusterv1beta1.GroupName, placementv1beta1.GroupName, "networking.fleet.azure.com",
	}
	bindClusterRole(ctx, name, name, rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: append(verbs, "escalate", "bind", "set-identity")})
	c := clientFor(config)
	Eventually(func() error { return c.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed())
	return c
}

// networkingDefinition is the CRD of a kind of the upstream networking agents.
func networkingDefinition() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "internalserviceexports.networking.fleet.azure.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "networking.fleet.azure.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "internalserviceexports", Singular: "internalserviceexport", Kind: "InternalServiceExport", ListKind: "InternalServiceExportList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
			}}},
		},
	}
}

// beForbidden matches 403 with a text.
func beForbidden(text string) OmegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(text)))
}

var _ = Describe("The guard rail of selected namespaces", func() {
	var developer client.Client

	BeforeEach(func(ctx SpecContext) { developer = everyUser(ctx, "developer-"+newNamespace(ctx)) })

	selected := func(ctx context.Context, term placementv1beta1.ResourceSelectorTerm) {
		GinkgoHelper()
		term.Version, term.Kind = "v1", "Namespace"
		placement := clusterPlacement(placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{term}})
		Expect(masters.Create(ctx, placement)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, placement)).To(Succeed()) })
	}
	refusedIn := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Eventually(func() error { return developer.Create(ctx, podIn(namespace), client.DryRunAll) }).
			Should(beForbidden("Pod " + namespace + "/web creation is disallowed in the fleet hub cluster"))
		Eventually(func() error { return developer.Create(ctx, replicaSetIn(namespace), client.DryRunAll) }).
			Should(beForbidden("ReplicaSet " + namespace + "/web creation is disallowed in the fleet hub cluster."))
	}
	allowedIn := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Consistently(func() error { return developer.Create(ctx, replicaSetIn(namespace), client.DryRunAll) }, "1s").Should(Succeed())
	}

	It("rejects Pods and ReplicaSets in a namespace that a placement selects by name, and in no other", func(ctx SpecContext) {
		chosen, other := newNamespace(ctx), newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{Name: chosen})
		refusedIn(ctx, chosen)
		allowedIn(ctx, other)
		Expect(developer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: chosen, Name: "settings"}})).To(Succeed())
	})

	It("protects namespaces that a placement selects by label", func(ctx SpecContext) {
		key := newNamespace(ctx)
		chosen, other, without := newNamespace(ctx, key, "a"), newNamespace(ctx, key, "b", "stage", "x"), newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
				{Key: "stage", Operator: metav1.LabelSelectorOpDoesNotExist},
			},
		}})
		refusedIn(ctx, chosen)
		allowedIn(ctx, other)
		allowedIn(ctx, without)

		third := newNamespace(ctx, "only-"+key, "v")
		selected(ctx, placementv1beta1.ResourceSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"only-" + key: "v"}}})
		refusedIn(ctx, third)
	})

	It("ignores a namespace that is placed without its contents", func(ctx SpecContext) {
		empty := newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{Name: empty, SelectionScope: placementv1beta1.NamespaceOnly})
		allowedIn(ctx, empty)
	})

	It("rejects the ReplicaSets of a placed Deployment", func(ctx SpecContext) {
		chosen := newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{Name: chosen})
		refusedIn(ctx, chosen)
		set := replicaSetIn(chosen)
		Expect(masters.Create(ctx, &appsv1.Deployment{ObjectMeta: set.ObjectMeta, Spec: appsv1.DeploymentSpec{Selector: set.Spec.Selector, Template: set.Spec.Template}})).To(Succeed())
		Eventually(func(g Gomega) {
			var deployment appsv1.Deployment
			g.Expect(masters.Get(ctx, client.ObjectKeyFromObject(set), &deployment)).To(Succeed())
			g.Expect(deployment.Status.Conditions).To(ContainElement(And(
				HaveField("Type", appsv1.DeploymentProgressing), HaveField("Reason", "ReplicaSetCreateError"), HaveField("Message", ContainSubstring("creation is disallowed in the fleet hub cluster")))))
		}).Should(Succeed())
	})

	It("is enforced while the gateway is down", Serial, func(ctx SpecContext) {
		chosen := newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{Name: chosen})
		gateway.stop()
		DeferCleanup(func() { gateway.start() })
		refusedIn(ctx, chosen)
	})

	It("exempts a user with the verb bypass, and no user by name or label", func(ctx SpecContext) {
		chosen := newNamespace(ctx)
		selected(ctx, placementv1beta1.ResourceSelectorTerm{Name: chosen})
		refusedIn(ctx, chosen)
		pod := podIn(chosen)
		pod.Labels = map[string]string{webhook.AnnotationBypass: "yes"}
		pod.Annotations = pod.Labels
		Expect(developer.Create(ctx, pod, client.DryRunAll)).To(beForbidden("disallowed"))
		Expect(masters.Create(ctx, replicaSetIn(chosen), client.DryRunAll)).To(Succeed())
	})
})

// confirmDeletion annotates an object until the spec ends.
func confirmDeletion(ctx context.Context, object client.Object) {
	GinkgoHelper()
	set := func(ctx context.Context, value string) {
		Expect(masters.Patch(ctx, object, expect.MergePatch(`{"metadata":{"annotations":{"`+policies.ConfirmDeleteAnnotation+`":`+value+`}}}`))).To(Succeed())
	}
	set(ctx, `"true"`)
	DeferCleanup(func(ctx SpecContext) { set(ctx, "null") })
}

var _ = Describe("A CustomResourceDefinition that the gateway installed", func() {
	It("is deleted only after a confirmation, also by an administrator", func(ctx SpecContext) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(masters.Get(ctx, client.ObjectKey{Name: "clusterresourceplacements.placement.kubernetes-fleet.io"}, definition)).To(Succeed())
		try := func() error { return masters.Delete(ctx, definition, client.DryRunAll) }
		Eventually(try).Should(beForbidden("deleting CustomResourceDefinition clusterresourceplacements.placement.kubernetes-fleet.io deletes all its objects; " +
			"annotate it fleetgate.io/confirm-delete=true first"))
		Expect(masters.DeleteAllOf(ctx, definition, client.DryRunAll, client.MatchingLabels{install.LabelManagedBy: install.ManagedBy})).To(
			beForbidden("deletes all its objects"))
		confirmDeletion(ctx, definition)
		Eventually(try).Should(Succeed())

		foreign := networkingDefinition()
		Expect(masters.Create(ctx, foreign)).To(Succeed())
		Expect(masters.Delete(ctx, foreign)).To(Succeed())
	})
})

var _ = Describe("The guard rails of the upstream project", Serial, Ordered, func() {
	var user client.Client
	const name = "reference-user"

	BeforeAll(func(ctx SpecContext) {
		user = everyUser(ctx, name)
		gateway.guardRails = policies.GuardRailsReference
		gateway.want(ctx)
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			gateway.guardRails = policies.GuardRailsSelected
			gateway.want(ctx)
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			Eventually(func() error { return masters.Create(ctx, replicaSetIn("default"), client.DryRunAll) }).Should(Succeed())
		})
		Eventually(func() error { return masters.Create(ctx, podIn("default"), client.DryRunAll) }).Should(beForbidden("disallowed"))
	})

	refusal := func(operation, kind, subresource, object string) OmegaMatcher {
		return beForbidden(fmt.Sprintf("user: '%s' in 'groups: [system:authenticated]' is not allowed to %s resource %s/%s: %s", name, operation, kind, subresource, object))
	}

	It("reject Pods and ReplicaSets in every namespace from every user", func(ctx SpecContext) {
		Expect(masters.Create(ctx, podIn("default"))).To(beForbidden("Pod default/web creation is disallowed in the fleet hub cluster"))
		Expect(user.Create(ctx, replicaSetIn("default"))).To(beForbidden("ReplicaSet default/web creation is disallowed in the fleet hub cluster."))
		Expect(masters.Create(ctx, replicaSetIn("kube-system"), client.DryRunAll)).To(Succeed())
	})

	It("reserve the fleet's CRDs for administrators", func(ctx SpecContext) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(masters.Get(ctx, client.ObjectKey{Name: "memberclusters.cluster.kubernetes-fleet.io"}, definition)).To(Succeed())
		Eventually(func() error { return user.Delete(ctx, definition, client.DryRunAll) }).Should(
			refusal("DELETE", "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition", "", "/memberclusters.cluster.kubernetes-fleet.io"))
		Eventually(func() error { return masters.Delete(ctx, definition, client.DryRunAll) }).Should(beForbidden("annotate it fleetgate.io/confirm-delete=true first"))
		confirmDeletion(ctx, definition)
		Eventually(func() error { return masters.Delete(ctx, definition, client.DryRunAll) }).Should(Succeed())
	})

	It("reserve fleet and kube namespaces and their contents for the cluster's own users", func(ctx SpecContext) {
		reserved := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-mine"}}
		Eventually(func() error { return user.Create(ctx, reserved, client.DryRunAll) }).Should(refusal("CREATE", "/v1, Kind=Namespace", "", "/kube-mine"))
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: "settings"}}
		Eventually(func() error { return user.Create(ctx, settings, client.DryRunAll) }).Should(
			refusal("CREATE", "/v1, Kind=ConfigMap", "", clusterv1beta1.SystemNamespace+"/settings"))
		Expect(masters.Create(ctx, settings)).To(Succeed())
		Expect(user.Delete(ctx, settings)).To(refusal("DELETE", "/v1, Kind=ConfigMap", "", clusterv1beta1.SystemNamespace+"/settings"))
		Expect(user.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "free"}}, client.DryRunAll)).To(Succeed())
	})

	It("reserve accounts in those namespaces, and their tokens, for the cluster's own users", func(ctx SpecContext) {
		const sentence = "writing service accounts in reserved namespaces or requesting tokens from such service accounts is disallowed"
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", GenerateName: "account-"}}
		Eventually(func() error { return user.Create(ctx, account.DeepCopy(), client.DryRunAll) }).Should(beForbidden(sentence))
		Expect(user.Create(ctx, account.DeepCopy(), client.DryRunAll)).To(refusal("CREATE", "/v1, Kind=ServiceAccount", "", "kube-system/"))
		Expect(masters.Create(ctx, account)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, account)).To(Succeed()) })
		Expect(user.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})).To(beForbidden(sentence))
		Expect(user.Delete(ctx, account)).To(beForbidden(sentence))
		Expect(user.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "free"}}, client.DryRunAll)).To(Succeed())
	})

	It("allow agents' reports and networking objects in members' namespaces only", func(ctx SpecContext) {
		imc := &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: "stray"},
			Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
		}
		Eventually(func() error { return user.Create(ctx, imc.DeepCopy(), client.DryRunAll) }).Should(
			refusal("CREATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=InternalMemberCluster", "", clusterv1beta1.SystemNamespace+"/stray"))
		// A policy with parameters rejects all requests until the API server has listed them. A
		// slow API server takes seconds.
		Eventually(func() error { return masters.Create(ctx, imc.DeepCopy(), client.DryRunAll) }).Should(Succeed())

		exports := networkingDefinition()
		Expect(masters.Create(ctx, exports)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, exports)).To(Succeed()) })
		member := memberCluster("networked")
		member.Spec.Identity = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "networked-identity"}
		Expect(masters.Create(ctx, member)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, member)).To(Succeed()) })
		namespace := clusterv1beta1.MemberNamespace("networked")
		Expect(masters.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		identity := everyUser(ctx, "networked-identity")
		in := func(namespace string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "InternalServiceExport", "metadata": map[string]any{"namespace": namespace, "name": "web"},
			}}
		}
		const kind = "networking.fleet.azure.com/v1alpha1, Kind=InternalServiceExport"
		Eventually(func() error { return user.Create(ctx, in(namespace), client.DryRunAll) }).Should(refusal("CREATE", kind, "", namespace+"/web"))
		Expect(user.Create(ctx, in("kube-system"), client.DryRunAll)).To(refusal("CREATE", kind, "", "kube-system/web"))
		Expect(identity.Create(ctx, in(namespace), client.DryRunAll)).To(Succeed())
		Expect(user.Create(ctx, in("default"), client.DryRunAll)).To(Succeed())
	})

	It("allow Pods and ReplicaSets on a hub with its own workloads, and enforce the rest", func(ctx SpecContext) {
		gateway.guardRails = policies.GuardRailsReferenceWorkloads
		gateway.want(ctx)
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			gateway.guardRails = policies.GuardRailsReference
			gateway.want(ctx)
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
			Eventually(func() error { return masters.Create(ctx, podIn("default"), client.DryRunAll) }).Should(beForbidden("disallowed"))
		})
		Eventually(func() error { return user.Create(ctx, replicaSetIn("default"), client.DryRunAll) }).Should(Succeed())
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: "settings"}}
		Expect(user.Create(ctx, settings, client.DryRunAll)).To(refusal("CREATE", "/v1, Kind=ConfigMap", "", clusterv1beta1.SystemNamespace+"/settings"))
	})

	It("allow everybody to write Leases and Events", func(ctx SpecContext) {
		Expect(user.Create(ctx, leaseIn("kube-system"), client.DryRunAll)).To(Succeed())
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: "kube-system"}}
		Expect(user.Create(ctx, event, client.DryRunAll)).To(Succeed())
	})

	It("allow a member's identity, and no other user, to write in its namespace", func(ctx SpecContext) {
		member := memberCluster("guarded")
		member.Spec.Identity = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "guarded-identity"}
		Expect(masters.Create(ctx, member)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, member)).To(Succeed()) })
		namespace := clusterv1beta1.MemberNamespace("guarded")
		Expect(masters.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		report := func() *clusterv1beta1.InternalMemberCluster {
			return &clusterv1beta1.InternalMemberCluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guarded"},
				Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
			}
		}
		Eventually(func() error { return user.Create(ctx, report(), client.DryRunAll) }).Should(
			refusal("CREATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=InternalMemberCluster", "", namespace+"/guarded"))
		identity := everyUser(ctx, "guarded-identity")
		Expect(identity.Create(ctx, report(), client.DryRunAll)).To(Succeed())
		// Upstream lets this identity write Works. In fleetgate only the gateway writes what the
		// member applies.
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w"}}
		Expect(identity.Create(ctx, work, client.DryRunAll)).To(MatchError(ContainSubstring("cannot write works")))
	})

	It("protect members of a managed service except for labels and taints", func(ctx SpecContext) {
		const annotation = "fleet.azure.com/cluster-resource-id"
		managed, own := memberCluster("managed"), memberCluster("own")
		managed.Annotations = map[string]string{annotation: "x"}
		Eventually(func() error { return user.Create(ctx, managed.DeepCopy(), client.DryRunAll) }).Should(
			refusal("CREATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster", "", "/managed"))
		Expect(masters.Create(ctx, managed)).To(Succeed())
		Expect(user.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(masters.Delete(ctx, managed)).To(Succeed())
			Expect(user.Delete(ctx, own)).To(Succeed())
		})
		set := func(member *clusterv1beta1.MemberCluster, alter func(*clusterv1beta1.MemberCluster)) error {
			return change(ctx, user, member, alter)
		}
		Expect(set(managed, func(m *clusterv1beta1.MemberCluster) {
			m.Labels = map[string]string{"stage": "prod"}
			m.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		})).To(Succeed())
		Expect(set(managed, func(m *clusterv1beta1.MemberCluster) { m.Spec.HeartbeatPeriodSeconds = 30 })).To(
			refusal("UPDATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster", "", "/managed"))
		Expect(set(managed, func(m *clusterv1beta1.MemberCluster) { m.Annotations[annotation] = "y" })).To(
			refusal("UPDATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster", "", "/managed"))
		Expect(set(managed, func(m *clusterv1beta1.MemberCluster) { m.Annotations = nil })).To(
			beForbidden("no user is allowed to remove all fleet pre-fixed annotations from a fleet member cluster"))
		Expect(user.Delete(ctx, managed)).To(refusal("DELETE", "cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster", "", "/managed"))

		Expect(set(own, func(m *clusterv1beta1.MemberCluster) { m.Spec.HeartbeatPeriodSeconds = 30 })).To(Succeed())
		Expect(set(own, func(m *clusterv1beta1.MemberCluster) { m.Annotations = map[string]string{annotation: "x"} })).To(
			beForbidden("no user is allowed to add a fleet pre-fixed annotation to an upstream member cluster"))
		own.Status.Namespaces = map[string]string{"a": ""}
		current := memberCluster("own")
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(own), current)).To(Succeed())
		current.Status.Namespaces = own.Status.Namespaces
		Expect(user.Status().Update(ctx, current)).To(
			refusal("UPDATE", "cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster", "status", "/own"))
	})
})
