// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/test/support/expect"
)

// attempts are requests with real credentials; each must be forbidden.
type attempts map[string]func(context.Context, client.Client) error

func (all attempts) expectForbidden(ctx context.Context, c client.Client) {
	GinkgoHelper()
	for what, try := range all {
		err := try(ctx, c)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: got %v", what, err)
	}
}

func getting(obj client.Object, namespace, name string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	}
}

func listing(list client.ObjectList, namespace string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.List(ctx, list, client.InNamespace(namespace))
	}
}

func creating(obj client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, obj) }
}

func deleting(obj client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) }
}

// patching merges a document, in the status if subresource is set.
func patching(obj client.Object, document, subresource string) func(context.Context, client.Client) error {
	patch := client.RawPatch(types.MergePatchType, []byte(document))
	return func(ctx context.Context, c client.Client) error {
		if subresource != "" {
			return c.SubResource(subresource).Patch(ctx, obj, patch)
		}
		return c.Patch(ctx, obj, patch)
	}
}

func minting(namespace, account string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
		return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, request)
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// mayTunnel checks the client's own rights; without a namespace, for the whole hub.
func mayTunnel(ctx context.Context, c client.Client, namespace, name string) bool {
	GinkgoHelper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "tunnel.fleetgate.io", Version: "v1alpha1", Resource: "tunnels", Subresource: "proxy", Namespace: namespace, Name: name, Verb: "create",
		},
	}}
	Expect(c.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

var _ = Describe("A hostile", Label("hostile"), func() {
	var namespace, name string
	var victim *agent

	BeforeEach(func(ctx SpecContext) {
		namespace = makeNamespace(ctx)
		startGateway(gatewayOptions{})
		victim = startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name = expectEnrolled(ctx, victim)
		expectJoined(ctx, name)
	})

	It("bearer of a registration token can create a request, and nothing else", func(ctx SpecContext) {
		values := makeTokenWith(ctx, namespace, "leaked", time.Hour, nil)
		thief := expect.Client(hubConfigWith(values.Token), scheme)
		var requests registrationv1alpha1.ClusterRegistrationList
		Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
		Expect(requests.Items).To(HaveLen(1))
		granted := &requests.Items[0]
		elsewhere, memberNamespace := makeNamespace(ctx), clusterv1beta1.MemberNamespace(name)
		attempts{
			"listing requests":              listing(&registrationv1alpha1.ClusterRegistrationList{}, namespace),
			"request in another namespace":  creating(&registrationv1alpha1.ClusterRegistration{ObjectMeta: named(elsewhere, "request-x")}),
			"granting":                      patching(granted.DeepCopy(), `{"status":{"granted":true}}`, "status"),
			"changing a request":            patching(granted.DeepCopy(), `{"metadata":{"labels":{"a":"b"}}}`, ""),
			"deleting another's request":    deleting(granted.DeepCopy()),
			"reading Secrets":               listing(&corev1.SecretList{}, namespace),
			"reading the values of a token": getting(&corev1.Secret{}, namespace, "token"),
			"a token of its own":            creating(&registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: named(namespace, "more")}),
			"changing its token's terms": patching(&registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: named(namespace, "leaked")},
				`{"metadata":{"annotations":{"fleetgate.io/for-cluster":"`+name+`"}}}`, ""),
			"reading Clusters":       listing(&registrationv1alpha1.ClusterList{}, namespace),
			"changing a Cluster":     patching(&registrationv1alpha1.Cluster{ObjectMeta: named(namespace, name)}, `{"spec":{"clientID":"x"}}`, ""),
			"reading MemberClusters": listing(&clusterv1beta1.MemberClusterList{}, ""),
			"making a MemberCluster": creating(&clusterv1beta1.MemberCluster{
				ObjectMeta: named("", "mine"), Spec: clusterv1beta1.MemberClusterSpec{Identity: subject("User", "me")},
			}),
			"a member's Works":      listing(&placementv1beta1.WorkList{}, memberNamespace),
			"a member's credential": minting(memberNamespace, clusterv1beta1.AgentAccount),
			"another token":         minting(namespace, "default"),
		}.expectForbidden(ctx, thief)
		Expect(mayTunnel(ctx, thief, "", name)).To(BeFalse())
		Expect(mayTunnel(ctx, thief, memberNamespace, name)).To(BeFalse())

		By("reading the one request whose name it knows: only its author can decrypt the answer")
		seen := granted.DeepCopy()
		Expect(thief.Get(ctx, client.ObjectKeyFromObject(granted), seen)).To(Succeed())
		key, err := sealing.NewKey()
		Expect(err).NotTo(HaveOccurred())
		_, err = key.Open(seen.Status.SealedToken, seen.UID, seen.Spec.ClientID)
		Expect(err).To(MatchError(sealing.ErrSealed))

		By("requesting with the victim's client ID and with reserved labels")
		agent := startAgent(agentOptions{
			namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(values), labels: map[string]string{"kubernetes-fleet.io/member-name": name},
		})
		expectProblem(agent, enroll.RegistrationRefused, "has registered with another key")
		Expect(victim.enroller.Ready()).To(Succeed())

		By("requesting with the name of a token that it does not have")
		forged := &registrationv1alpha1.ClusterRegistration{
			ObjectMeta: named(namespace, registrationv1alpha1.RequestName(key.PublicKey())),
			Spec:       registrationv1alpha1.ClusterRegistrationSpec{ClientID: "forged", PublicKey: key.PublicKey()},
		}
		forged.Labels = map[string]string{registrationv1alpha1.LabelRegistrationToken: "token"}
		forged.Spec.TokenProof, err = registrationv1alpha1.TokenProof(values.Token, forged)
		Expect(err).NotTo(HaveOccurred())
		Expect(thief.Create(ctx, forged)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(thief.Get(ctx, client.ObjectKeyFromObject(forged), forged)).To(Succeed())
			g.Expect(expect.Condition(forged.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted).Reason).
				To(Equal(registrationv1alpha1.RegistrationReasonUnproven))
		}).Should(Succeed())
		Expect(forged.Status.SealedToken).To(BeEmpty())
	})

	It("user of the hub cannot change what only the member reports", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: named("", "relabels-"+namespace), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"get", "update", "patch"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
		}
		for _, object := range []client.Object{role, binding} {
			expect.Created(ctx, hubClient, object)
		}
		user := asUser(role.Name)
		property := func() string {
			return getMember(ctx, name).Status.Properties[clusterv1beta1.PropertyKubernetesVersion].Value
		}
		Eventually(property).Should(HavePrefix("v1."))
		known := property()
		lie := `{"metadata":{"annotations":{"seen-by":"user"}},"status":{"properties":{"k8s.io/k8s-version":{"value":"v0.0.0","observationTime":"2026-01-01T00:00:00Z"}}}}`
		Expect(patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", name)}, lie, "")(ctx, user)).To(Succeed(), "they can change the rest")
		Expect(getMember(ctx, name).Annotations).To(HaveKeyWithValue("seen-by", "user"))
		Expect(property()).To(Equal(known))
		attempts{"the status": patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", name)}, lie, "status")}.expectForbidden(ctx, user)
	})

	It("joined member cannot access foreign objects", func(ctx SpecContext) {
		other := makeMember(ctx, namespace, subject("User", "somebody")).Name
		expectReadyToJoin(ctx, other)
		config, err := victim.enroller.HubConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		hostile := expect.Client(config, scheme)
		own, foreign := clusterv1beta1.MemberNamespace(name), clusterv1beta1.MemberNamespace(other)
		for _, in := range []string{own, foreign} {
			Expect(hubClient.Create(ctx, &placementv1beta1.Work{ObjectMeta: named(in, "placed")})).To(Succeed())
		}
		attempts{
			"another member's Works":      listing(&placementv1beta1.WorkList{}, foreign),
			"one Work of another member":  getting(&placementv1beta1.Work{}, foreign, "placed"),
			"another member's report":     patching(&clusterv1beta1.InternalMemberCluster{ObjectMeta: named(foreign, other)}, `{"status":{}}`, "status"),
			"another member's Lease":      patching(&coordinationv1.Lease{ObjectMeta: named(foreign, clusterv1beta1.AgentLease)}, `{"spec":{"holderIdentity":"x"}}`, ""),
			"another member's credential": getting(&corev1.Secret{}, foreign, clusterv1beta1.AgentCredentialSecret),
			"another member's token":      minting(foreign, clusterv1beta1.AgentAccount),
			"a token of another account":  minting(own, "default"),
			"a token of the gateway":      minting(clusterv1beta1.SystemNamespace, "default"),
			"Secrets of the registration": listing(&corev1.SecretList{}, namespace),
			"its own orders": patching(&clusterv1beta1.InternalMemberCluster{ObjectMeta: named(own, name)},
				`{"spec":{"heartbeatPeriodSeconds":600}}`, ""),
			"creating a Work":             creating(&placementv1beta1.Work{ObjectMeta: named(own, "mine")}),
			"creating a Lease":            creating(&coordinationv1.Lease{ObjectMeta: named(own, "mine")}),
			"deleting its namespace":      deleting(&corev1.Namespace{ObjectMeta: named("", own)}),
			"its own Role":                patching(&rbacv1.Role{ObjectMeta: named(own, clusterv1beta1.RoleName(name))}, `{"rules":[]}`, ""),
			"its own binding":             patching(&rbacv1.RoleBinding{ObjectMeta: named(own, clusterv1beta1.RoleBindingName(name))}, `{"subjects":[]}`, ""),
			"its labels":                  patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", name)}, `{"metadata":{"labels":{"env":"prod"}}}`, ""),
			"its taints":                  patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", name)}, `{"spec":{"taints":null}}`, ""),
			"its status on the hub":       patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", name)}, `{"status":{}}`, "status"),
			"another member's identity":   patching(&clusterv1beta1.MemberCluster{ObjectMeta: named("", other)}, `{"spec":{"identity":{"kind":"User","name":"x"}}}`, ""),
			"the fleet's members":         listing(&clusterv1beta1.MemberClusterList{}, ""),
			"labels of its Cluster":       patching(&registrationv1alpha1.Cluster{ObjectMeta: named(namespace, name)}, `{"metadata":{"labels":{"env":"prod"}}}`, ""),
			"registrations of others":     listing(&registrationv1alpha1.ClusterRegistrationList{}, namespace),
			"another registration":        creating(&registrationv1alpha1.ClusterRegistration{ObjectMeta: named(namespace, "request-x")}),
			"a registration token":        creating(&registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: named(namespace, "mine")}),
			"placements":                  listing(&placementv1beta1.ClusterResourcePlacementList{}, ""),
			"complete resource snapshots": listing(&placementv1beta1.ClusterResourceSnapshotList{}, ""),
		}.expectForbidden(ctx, hostile)
		Expect(mayTunnel(ctx, hostile, clusterv1beta1.MemberNamespace(name), name)).To(BeTrue())
		for _, namespace := range []string{"", clusterv1beta1.MemberNamespace(name), clusterv1beta1.MemberNamespace(other)} {
			Expect(mayTunnel(ctx, hostile, namespace, other)).To(BeFalse())
		}
	})
})
