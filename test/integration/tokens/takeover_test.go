// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/rotator"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("An existing account on a member", func() {
	It("with OCM's label and cluster-admin is not taken over by a ManagedServiceAccount in an assigned namespace", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		startAgent(ctx, clock.RealClock{})
		theirs := somebodysAccount(ctx, "platform-admin")
		bindToAdmin(ctx, theirs)
		makeNamespace(ctx, "tenants", given())
		account := askAsTenant(ctx, "tenants", theirs.Name)
		Eventually(func() metav1.Condition {
			return conditionIn(ctx, account, authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("was not created for this ManagedServiceAccount"))))
		expectUntouched(ctx, theirs, "tenants", hubNamespace)
	})

	It("with OCM's label is not taken over by a ManagedServiceAccount in the member's namespace", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		theirs := somebodysAccount(ctx, "platform")
		askAsTenant(ctx, hubNamespace, theirs.Name)
		expectRefused(ctx, theirs.Name, "was not created for this ManagedServiceAccount")
		expectUntouched(ctx, theirs, hubNamespace)
	})

	It("is taken over when an administrator of the member follows the remedy", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		theirs := somebodysAccount(ctx, "handed-over")
		bindToAdmin(ctx, theirs)
		account := askFor(ctx, theirs.Name, time.Hour)
		expectRefused(ctx, theirs.Name, fmt.Sprintf("annotate serviceaccount handed-over %s=%s", authenticationv1beta1.AnnotationAssignedTo, account.UID))
		annotate(ctx, theirs, authenticationv1beta1.AnnotationAssignedTo, string(account.UID))
		Expect(claimsOf(expectToken(ctx, theirs.Name)).Account).To(Equal(theirs.UID), "the account is unchanged")
	})

	It("that was assigned to one ManagedServiceAccount is not used by the next one of that name", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		theirs := somebodysAccount(ctx, "given-once")
		annotate(ctx, theirs, authenticationv1beta1.AnnotationAssignedTo, "uid-of-another")
		askAsTenant(ctx, hubNamespace, theirs.Name)
		expectRefused(ctx, theirs.Name, "was not created for this ManagedServiceAccount")
		expectUntouched(ctx, theirs, hubNamespace)
	})

	It("that another product held is taken over after that product stops and only with its record", func(ctx SpecContext) {
		lease := holderRuns(ctx)
		agent := first.startAgent(ctx, hubConfigOfAgent(ctx), clock.RealClock{}, adopt)
		held := somebodysAccount(ctx, "held")
		account := askFor(ctx, held.Name, time.Hour)
		expectRefused(ctx, held.Name, "it is adopted when that agent is stopped")
		Eventually(func() map[string]string {
			found, _ := accountOf(ctx, held.Name)
			return found.Annotations
		}).Should(HaveKeyWithValue(authenticationv1beta1.AnnotationPendingAdoption, fmt.Sprintf("fleet-system/%s/%s", account.UID, held.UID)))
		expectNoSecret(ctx, held.Name)

		By("stopping the other product")
		Expect(memberClient.Delete(ctx, lease)).To(Succeed())
		touch(ctx, held.Name)
		Expect(claimsOf(expectToken(ctx, held.Name)).Account).To(Equal(held.UID))

		By("requesting an account that was not recorded while it ran")
		late := somebodysAccount(ctx, "asked-for-late")
		askAsTenant(ctx, hubNamespace, late.Name)
		expectRefused(ctx, late.Name, "was not created for this ManagedServiceAccount")
		expectUntouched(ctx, late, hubNamespace)
		agent.stop()
	})

	It("that another product held is not taken over if it is bound to cluster-admin, even in one namespace", func(ctx SpecContext) {
		lease := holderRuns(ctx)
		first.startAgent(ctx, hubConfigOfAgent(ctx), clock.RealClock{}, adopt)
		everywhere, somewhere := somebodysAccount(ctx, "held-admin"), somebodysAccount(ctx, "held-namespace-admin")
		bindToAdmin(ctx, everywhere)
		Expect(memberClient.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: somewhere.Name + "-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: somewhere.Namespace, Name: somewhere.Name}},
		})).To(Succeed())
		for _, account := range []*corev1.ServiceAccount{everywhere, somewhere} {
			askAsTenant(ctx, hubNamespace, account.Name)
			expectRefused(ctx, account.Name, "it is adopted when that agent is stopped")
		}
		Expect(memberClient.Delete(ctx, lease)).To(Succeed())
		for _, account := range []*corev1.ServiceAccount{everywhere, somewhere} {
			touch(ctx, account.Name)
			expectRefused(ctx, account.Name, "is bound to cluster-admin")
			expectNoSecret(ctx, account.Name)
		}
	})

	It("that another product held is not taken over while the agent cannot list bindings", func(ctx SpecContext) {
		look := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentOnMember + "-look"}}
		setRules(ctx, look)
		DeferCleanup(setRules, look, lookRule)
		lease := holderRuns(ctx)
		first.startAgent(ctx, hubConfigOfAgent(ctx), clock.RealClock{}, adopt)
		held := somebodysAccount(ctx, "held-unseen")
		askFor(ctx, held.Name, time.Hour)
		expectRefused(ctx, held.Name, "it is adopted when that agent is stopped")
		Expect(memberClient.Delete(ctx, lease)).To(Succeed())
		touch(ctx, held.Name)
		expectRefused(ctx, held.Name, "lacks list on clusterrolebindings and rolebindings")
		expectNoSecret(ctx, held.Name)
	})
})

func adopt(r *rotator.Reconciler) { r.Adopt = true }

// somebodysAccount creates an account with the label of other products.
func somebodysAccount(ctx context.Context, name string) *corev1.ServiceAccount {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: authenticationv1beta1.AccountNamespace}}))).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: authenticationv1beta1.AccountNamespace, Name: name,
		Labels: map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
	}}
	// An earlier attempt at the spec may have created it.
	Expect(client.IgnoreNotFound(memberClient.Delete(ctx, account.DeepCopy()))).To(Succeed())
	Expect(memberClient.Create(ctx, account)).To(Succeed())
	return account
}

func bindToAdmin(ctx context.Context, account *corev1.ServiceAccount) {
	GinkgoHelper()
	Expect(memberClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: account.Name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})).To(Succeed())
}

// holderRuns creates the Lease that OCM's agent renews.
func holderRuns(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: authenticationv1beta1.AccountNamespace, Name: "managed-serviceaccount"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &now},
	}
	Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lease.Namespace}}))).To(Succeed())
	Expect(memberClient.Create(ctx, lease)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(memberClient.Delete(ctx, lease))).To(Succeed()) })
	return lease
}

// askAsTenant requests an account as a user who can only create ManagedServiceAccounts there.
func askAsTenant(ctx context.Context, namespace, name string) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	const tenant = "tenant"
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{authenticationv1beta1.GroupName}, Resources: []string{"managedserviceaccounts"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: tenant},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
		},
	} {
		Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, object))).To(Succeed())
	}
	config, err := hub.ConfigFor(tenant)
	Expect(err).NotTo(HaveOccurred())
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	asTenant := expect.Client(config, scheme)
	// The authorizer observes the right shortly after it was written.
	Eventually(func() error { return asTenant.Create(ctx, account) }).Should(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hubClient.Delete(ctx, account))).To(Succeed()) })
	return account
}

func expectRefused(ctx context.Context, name, message string) {
	GinkgoHelper()
	Eventually(func() metav1.Condition { return conditionOf(ctx, name, authenticationv1beta1.ConditionTokenReported) }).Should(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(message))))
}

// expectUntouched checks that the hub has no token and that the account is unchanged.
func expectUntouched(ctx context.Context, account *corev1.ServiceAccount, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		token, _ := tokenIn(ctx, namespace, account.Name)
		Expect(token).To(BeEmpty())
	}
	found := &corev1.ServiceAccount{}
	Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(account), found)).To(Succeed())
	Expect(found.ResourceVersion).To(Equal(account.ResourceVersion))
}

func annotate(ctx context.Context, account *corev1.ServiceAccount, key, value string) {
	GinkgoHelper()
	base := account.DeepCopy()
	metav1.SetMetaDataAnnotation(&account.ObjectMeta, key, value)
	Expect(memberClient.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
}
