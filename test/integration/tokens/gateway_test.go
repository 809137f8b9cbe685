// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
)

var _ = Describe("The gateway's account", func() {
	It("is requested on every member that has reported and re-created when deleted", func(ctx SpecContext) {
		startController()
		joining := makeMemberCluster(ctx, "joining")
		key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace("joining"), Name: authenticationv1beta1.GatewayAccount}
		account := &authenticationv1beta1.ManagedServiceAccount{}
		Consistently(func() error { return hubClient.Get(ctx, key, account) }).ShouldNot(Succeed())

		Expect(hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}})).To(Succeed())
		Consistently(func() error { return hubClient.Get(ctx, key, account) }).ShouldNot(Succeed(), "its agent has not reported yet")
		joining.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}}
		Expect(hubClient.Status().Update(ctx, joining)).To(Succeed())
		Eventually(func() error { return hubClient.Get(ctx, key, account) }).Should(Succeed())
		Expect(account.Spec.Rotation.Validity.Duration).To(Equal(authenticationv1beta1.GatewayValidity))

		Expect(hubClient.Delete(ctx, account.DeepCopy())).To(Succeed())
		Eventually(func() types.UID {
			again := &authenticationv1beta1.ManagedServiceAccount{}
			_ = hubClient.Get(ctx, key, again)
			return again.UID
		}).ShouldNot(Or(BeEmpty(), Equal(account.UID)))

		By("leaving")
		Expect(hubClient.Delete(ctx, joining)).To(Succeed())
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(joining), joining)).To(Succeed())
		Expect(joining.DeletionTimestamp).NotTo(BeNil())
		Expect(hubClient.Delete(ctx, &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})).To(Succeed())
		Consistently(func() error { return hubClient.Get(ctx, key, account) }).ShouldNot(Succeed())
	})

	It("is known to the gateway by its current token", func(ctx SpecContext) {
		clientset, err := kubernetes.NewForConfig(readable(hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		current := credentials.NewCredentials(clientset)
		_, err = current.Credential(memberName)
		Expect(err).To(MatchError(credentials.ErrNoCredential))
		startCredentials(current)
		Eventually(current.Synced()).Should(BeClosed())
		_, err = current.Credential(memberName)
		Expect(err).To(MatchError(And(ContainSubstring(memberName), ContainSubstring("ManagedServiceAccount fleet-member-m1/cluster-gateway"))))

		agent := startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, authenticationv1beta1.GatewayAccount, authenticationv1beta1.GatewayValidity)
		askFor(ctx, "not-the-gateways", authenticationv1beta1.GatewayValidity)
		expectToken(ctx, "not-the-gateways")
		Eventually(func(g Gomega) {
			secret := expectToken(ctx, authenticationv1beta1.GatewayAccount)
			credential, err := current.Credential(memberName)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credential.Token).To(Equal(string(secret.Data["token"])))
			g.Expect(credential.CA).To(Equal(member.CABundle))
		}).Should(Succeed())
		first, err := current.Credential(memberName)
		Expect(err).NotTo(HaveOccurred())

		By("rotating")
		secret := expectToken(ctx, authenticationv1beta1.GatewayAccount)
		Expect(hubClient.Delete(ctx, secret)).To(Succeed())
		Eventually(func(g Gomega) {
			rotated, err := secretOf(ctx, authenticationv1beta1.GatewayAccount)
			g.Expect(err).NotTo(HaveOccurred())
			credential, err := current.Credential(memberName)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credential.Token).To(Equal(string(rotated.Data["token"])))
			g.Expect(credential.Token).NotTo(Equal(first.Token))
		}).Should(Succeed())

		By("withdrawing")
		agent.stop()
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
		// The hub's garbage collector discovers new kinds every 30 seconds only.
		Eventually(func() error {
			_, err := current.Credential(memberName)
			return err
		}).WithTimeout(2 * time.Minute).Should(MatchError(credentials.ErrNoCredential))
	})
})

func startCredentials(current *credentials.Credentials) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- current.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
		keepers.add(current)
	})
	DeferCleanup(stop)
	return stop
}

// startController runs the hub's controller as the gateway does.
func startController() {
	GinkgoHelper()
	manager, err := ctrl.NewManager(readable(hub.Config()), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&credentials.Reconciler{Client: manager.GetClient()}).SetupWithManager(manager)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// makeMemberCluster creates a MemberCluster with a finalizer.
func makeMemberCluster(ctx context.Context, name string) *clusterv1beta1.MemberCluster {
	GinkgoHelper()
	joining := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{clusterv1beta1.MemberClusterFinalizer}}}
	joining.Spec.Identity = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	Expect(hubClient.Create(ctx, joining)).To(Succeed())
	return joining
}

// tryIssue reports whether the agent can still issue tokens on the member.
func tryIssue(ctx context.Context, agent client.Client) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if err := agent.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	if request.Status.Token == "" {
		return errors.New("no token")
	}
	return nil
}
