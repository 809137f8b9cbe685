// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/expiry"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/mirror"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const argoNamespace = "argocd"

// startHub runs the hub's controllers of this feature, as the gateway does.
func startHub(clock clock.PassiveClock) {
	GinkgoHelper()
	hubConfig := readable(hub.Config())
	manager, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	options := cache.Options{Scheme: scheme, Mapper: manager.GetRESTMapper()}
	tokens, err := credentials.NewSecretCache(hubConfig, options)
	Expect(err).NotTo(HaveOccurred())
	ofMembers, err := membership.NewMemberCache(hubConfig, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.Add(tokens)).To(Succeed())
	Expect(manager.Add(ofMembers)).To(Succeed())
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&credentials.Reconciler{Client: manager.GetClient()},
		&mirror.Reconciler{Client: manager.GetClient(), Secrets: tokens, GatewayNamespace: clusterv1beta1.SystemNamespace},
		&expiry.Reconciler{Client: manager.GetClient(), Clock: clock, GatewayNamespace: clusterv1beta1.SystemNamespace},
		&argocd.Reconciler{
			Client: manager.GetClient(), Live: manager.GetAPIReader(), Secrets: ofMembers, Clock: clock,
			Recorder: manager.GetEventRecorder("gateway"), Namespace: argoNamespace, HubURL: hub.URL, HubCA: hub.CABundle,
		},
	} {
		Expect(controller.SetupWithManager(manager)).To(Succeed())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// makeNamespace creates a namespace that may exist already, from an earlier attempt at the spec.
func makeNamespace(ctx context.Context, name string, labels map[string]string) *corev1.Namespace {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	err := hubClient.Create(ctx, namespace)
	if apierrors.IsAlreadyExists(err) {
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		namespace.Labels = labels
		err = hubClient.Update(ctx, namespace)
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(hubClient.DeleteAllOf(ctx, &authenticationv1beta1.ManagedServiceAccount{}, client.InNamespace(name))).To(Succeed())
	})
	return namespace
}

func given() map[string]string { return map[string]string{clusterv1beta1.LabelMember: memberName} }

func existing(ctx context.Context, namespace, name string) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &authenticationv1beta1.ManagedServiceAccount{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, account)).To(Succeed())
	return account
}

// apply applies a manifest in another namespace.
func apply(ctx context.Context, manifest, namespace string) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &authenticationv1beta1.ManagedServiceAccount{}
	Expect(yaml.UnmarshalStrict([]byte(manifest), account)).To(Succeed())
	account.Namespace = namespace
	Expect(hubClient.Create(ctx, account)).To(Succeed())
	return account
}

// Manifests of OCM, as in its guides: the namespace has the name of the cluster, and some still use
// v1alpha1.
const (
	sample = `
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata:
  name: my-sample
  namespace: cluster1
spec:
  rotation: {}
`
	olderSample = `
apiVersion: authentication.open-cluster-management.io/v1alpha1
kind: ManagedServiceAccount
metadata:
  name: my-sample
  namespace: cluster2
spec:
  rotation: {}
`
	rotating = `
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata:
  name: argocd
  namespace: cluster1
  labels:
    authentication.open-cluster-management.io/sync-to-clusterprofile: "true"
spec:
  rotation:
    enabled: true
    validity: 8640h0m0s
`
)

// kubectl runs kubectl on the hub as an administrator.
func kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	program, err := env.Program("kubectl")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(hub.Dir, env.BreakGlass+".kubeconfig")
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	var warnings strings.Builder
	command.Stderr = &warnings
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), warnings.String())
	return string(out)
}

func tokenIn(ctx context.Context, namespace, name string) (token string, secret *corev1.Secret) {
	secret = &corev1.Secret{}
	if err := hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return "", secret
	}
	return string(secret.Data[authenticationv1beta1.SecretKeyToken]), secret
}

func conditionIn(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, kind string) metav1.Condition {
	var current authenticationv1beta1.ManagedServiceAccount
	_ = hubClient.Get(ctx, client.ObjectKeyFromObject(account), &current)
	return expect.Condition(current.Status.Conditions, kind)
}

func (p *place) expectCopy(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) *corev1.Secret {
	GinkgoHelper()
	var copied *corev1.Secret
	Eventually(func(g Gomega) {
		var token string
		token, copied = tokenIn(ctx, account.Namespace, account.Name)
		own, _ := tokenIn(ctx, p.namespace, account.Name)
		g.Expect(token).NotTo(BeEmpty())
		g.Expect(token).To(Equal(own))
		g.Expect(copied.Type).To(Equal(corev1.SecretTypeOpaque))
		g.Expect(copied.Data).To(And(HaveLen(2), HaveKeyWithValue("ca.crt", p.cluster.CABundle)))
		g.Expect(copied.Labels).To(HaveKeyWithValue(authenticationv1beta1.LabelManagedServiceAccount, "true"))
		g.Expect(copied.OwnerReferences).To(ConsistOf(HaveField("UID", account.UID)))
		user, err := p.whoami(ctx, token, copied.Data["ca.crt"])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.Username).To(Equal(authenticationv1beta1.UsernameIn(p.accounts, account.Name)))
		for _, kind := range []string{authenticationv1beta1.ConditionSecretCreated, authenticationv1beta1.ConditionTokenReported} {
			condition := conditionIn(ctx, account, kind)
			g.Expect(condition).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", account.Generation)))
		}
	}).Should(Succeed())
	return copied
}

var _ = Describe("A ManagedServiceAccount in a namespace named like the cluster", func() {
	It("is served as OCM documents it once an administrator assigned the namespace to the member", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		for _, p := range []*place{first, second} {
			p.startAgent(ctx, p.hubConfigOfAgent(ctx), clock.RealClock{})
		}
		namespace := makeNamespace(ctx, "cluster1", nil)
		makeNamespace(ctx, "cluster2", nil)
		for _, manifest := range []string{sample, olderSample, rotating} {
			Expect(kubectl(ctx, manifest, "create", "-f", "-")).To(MatchRegexp(`managedserviceaccount\S* created`))
		}
		account, other := existing(ctx, "cluster1", "my-sample"), existing(ctx, "cluster1", "argocd")
		onSecond := existing(ctx, "cluster2", "my-sample")
		Consistently(func() []metav1.Condition {
			Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(account), account)).To(Succeed())
			return account.Status.Conditions
		}).Should(BeEmpty(), "the namespace belongs to another product")

		kubectl(ctx, "", "label", "namespace", "cluster1", clusterv1beta1.LabelMember+"="+first.name)
		kubectl(ctx, "", "label", "namespace", "cluster2", clusterv1beta1.LabelMember+"="+second.name)
		copied := first.expectCopy(ctx, account)
		first.expectCopy(ctx, other)
		second.expectCopy(ctx, onSecond)

		By("showing them as the guides do")
		Expect(kubectl(ctx, "", "get", "secret", "my-sample", "-n", "cluster1")).To(MatchRegexp(`(?m)^my-sample +Opaque +2 `))
		for _, kind := range []string{authenticationv1beta1.ConditionSecretCreated, authenticationv1beta1.ConditionTokenReported} {
			kubectl(ctx, "", "wait", "managedserviceaccount", "my-sample", "-n", "cluster2", "--for=condition="+kind)
			Expect(kubectl(ctx, "", "get", "managedserviceaccounts.v1alpha1.authentication.open-cluster-management.io", "my-sample", "-n", "cluster2",
				"-o", `jsonpath={.status.conditions[?(@.type=="`+kind+`")].reason}`)).To(Equal(kind))
		}
		Expect(kubectl(ctx, "", "get", "managedserviceaccount", "my-sample", "-n", "cluster1", "-o", "jsonpath={.status.tokenSecretRef.name}")).To(Equal("my-sample"))

		By("restoring a deleted or altered Secret")
		Expect(hubClient.Delete(ctx, copied.DeepCopy())).To(Succeed())
		copied = first.expectCopy(ctx, account)
		copied.Data["token"] = []byte("something else")
		Expect(hubClient.Update(ctx, copied)).To(Succeed())
		first.expectCopy(ctx, account)

		By("following the rotation")
		own, err := secretOf(ctx, account.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(hubClient.Delete(ctx, own)).To(Succeed())
		Eventually(func() string {
			token, _ := tokenIn(ctx, namespace.Name, account.Name)
			return token
		}).ShouldNot(Equal(string(own.Data["token"])))
		copied = first.expectCopy(ctx, account)

		By("deleting it")
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
		expectNoAccount(ctx, account.Name)
		expectNoSecret(ctx, account.Name)
		Eventually(func() string {
			token, _ := tokenIn(ctx, namespace.Name, account.Name)
			return token
		}).Should(BeEmpty())
		Eventually(reviewed).WithArguments(ctx, string(copied.Data["token"])).Should(BeFalse())

		By("unassigning the namespace")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		delete(namespace.Labels, clusterv1beta1.LabelMember)
		Expect(hubClient.Update(ctx, namespace)).To(Succeed())
		expectNoAccount(ctx, other.Name)
		Eventually(func() string {
			token, _ := tokenIn(ctx, namespace.Name, other.Name)
			return token
		}).Should(BeEmpty())
		Eventually(func() metav1.Condition { return conditionIn(ctx, other, authenticationv1beta1.ConditionTokenReported) }).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("is no longer assigned to a member"))))
	})

	It("gives the member's agent no right in that namespace", func(ctx SpecContext) {
		makeNamespace(ctx, "cluster-secrets", given())
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, resource := range []string{"secrets", "managedserviceaccounts", "configmaps"} {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:   "system:serviceaccount:" + hubNamespace + ":" + clusterv1beta1.AgentAccount,
					Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + hubNamespace, "system:authenticated"},
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: "cluster-secrets", Verb: verb, Resource: resource,
						Group: map[string]string{"managedserviceaccounts": authenticationv1beta1.GroupName}[resource],
					},
				}}
				Expect(hubClient.Create(ctx, review)).To(Succeed())
				Expect(review.Status.Allowed).To(BeFalse(), "%s %s", verb, resource)
			}
		}
	})

	It("limits an agent to Secrets of its ManagedServiceAccounts, even with excess rights", func(ctx SpecContext) {
		makeNamespace(ctx, "cluster-overgranted", given())
		for _, namespace := range []string{hubNamespace, "cluster-overgranted"} {
			objectMeta := metav1.ObjectMeta{Namespace: namespace, Name: "overgranted"}
			expect.CreatedForSpec(ctx, hubClient, &rbacv1.Role{ObjectMeta: objectMeta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}}})
			expect.CreatedForSpec(ctx, hubClient, &rbacv1.RoleBinding{
				ObjectMeta: objectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "overgranted"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace, Name: clusterv1beta1.AgentAccount}},
			})
		}
		owner := askFor(ctx, "owner", time.Hour)
		asAgent := expect.Client(hubConfigOfAgent(ctx), scheme)
		write := func(namespace, name string) error {
			return asAgent.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: name,
					Labels: map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: "ManagedServiceAccount", Name: owner.Name, UID: owner.UID,
					}},
				},
				Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte("t"), authenticationv1beta1.SecretKeyCA: []byte("c")},
			}, client.DryRunAll)
		}
		Eventually(func() error { return write("cluster-overgranted", "owner") }).
			Should(MatchError(Or(
				ContainSubstring("writes Secrets in its own member's namespace only"),
				ContainSubstring("writes in the namespace of that member only"), // the policy on identities may answer first
			)))
		Expect(write(hubNamespace, "not-the-owner")).To(MatchError(ContainSubstring("owned by the one of the same name")))
		Expect(write(hubNamespace, "owner")).To(Succeed())
	})

	It("does not get the gateway's token by its name, not even before the gateway has it", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		startAgent(ctx, clock.RealClock{})
		makeNamespace(ctx, "greedy", given())
		account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "greedy", Name: authenticationv1beta1.GatewayAccount}}
		Expect(hubClient.Create(ctx, account)).To(Succeed())
		Eventually(func() metav1.Condition {
			return conditionIn(ctx, account, authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", authenticationv1beta1.ReasonNotServed),
			HaveField("Message", ContainSubstring("is the gateway's own account on member m1"))))

		askFor(ctx, authenticationv1beta1.GatewayAccount, time.Hour)
		expectToken(ctx, authenticationv1beta1.GatewayAccount)
		token, _ := tokenIn(ctx, "greedy", authenticationv1beta1.GatewayAccount)
		Expect(token).To(BeEmpty())
	})

	It("does not get the token of another account by its name", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "anothers", time.Hour)
		expectToken(ctx, "anothers")
		makeNamespace(ctx, "envious", given())
		account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "envious", Name: "anothers"}}
		Expect(hubClient.Create(ctx, account)).To(Succeed())
		Eventually(func() metav1.Condition {
			return conditionIn(ctx, account, authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", authenticationv1beta1.ReasonNotServed),
			HaveField("Message", ContainSubstring("has an account of that name already"))))
		token, _ := tokenIn(ctx, "envious", "anothers")
		Expect(token).To(BeEmpty())
	})

	It("is not served in a namespace of Kubernetes, nor for a missing member", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		makeNamespace(ctx, "kube-given", given())
		makeNamespace(ctx, "cluster-of-nobody", map[string]string{clusterv1beta1.LabelMember: "nobody"})
		reserved, lost := apply(ctx, sample, "kube-given"), apply(ctx, sample, "cluster-of-nobody")
		Eventually(func() string { return conditionIn(ctx, reserved, authenticationv1beta1.ConditionTokenReported).Message }).
			Should(ContainSubstring("namespaces that begin with kube- cannot be assigned to a member"))
		Eventually(func() string { return conditionIn(ctx, lost, authenticationv1beta1.ConditionTokenReported).Message }).
			Should(ContainSubstring("there is no member nobody"))
	})

	It("ends after its TTL, with account and token", func(ctx SpecContext) {
		startHub(testingclock.NewFakePassiveClock(time.Now().Add(time.Hour)))
		startAgent(ctx, clock.RealClock{})
		stays := askFor(ctx, "long-lived", time.Hour)
		account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "short-lived"}}
		account.Spec.TTLSecondsAfterCreation = ptr.To[int32](3000)
		Expect(hubClient.Create(ctx, account)).To(Succeed())
		Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(account), account) }).Should(Satisfy(apierrors.IsNotFound))
		expectNoAccount(ctx, "short-lived")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(stays), stays)).To(Succeed())
	})
})

var _ = Describe("Argo CD", Ordered, func() {
	var asked *clusterv1beta1.MemberCluster
	key := client.ObjectKey{Namespace: argoNamespace, Name: argocd.SecretName("for-argo")}
	secretNow := func(ctx context.Context) *corev1.Secret {
		secret := &corev1.Secret{}
		_ = hubClient.Get(ctx, key, secret)
		return secret
	}
	roleNow := func(ctx context.Context) []rbacv1.PolicyRule {
		role := &rbacv1.ClusterRole{}
		_ = hubClient.Get(ctx, client.ObjectKey{Name: argocd.Account}, role)
		return role.Rules
	}
	allowed := func(ctx context.Context, name string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: authenticationv1beta1.UsernameIn(argoNamespace, argocd.Account),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: "cluster.core.oam.dev", Resource: "clustergateways", Subresource: "proxy", Verb: "get", Name: name,
			},
		}}
		Expect(hubClient.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, argoNamespace, nil)
		asked = makeMemberCluster(ctx, "for-argo")
		makeMemberCluster(ctx, "not-for-argo")
	})

	It("gets a Secret that leads through the hub for a labelled member", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		base := asked.DeepCopy()
		asked.Labels = map[string]string{authenticationv1beta1.LabelArgoCD: authenticationv1beta1.LabelArgoCDValue, "stage": "prod"}
		Expect(hubClient.Patch(ctx, asked, client.MergeFrom(base))).To(Succeed())
		Eventually(func() types.UID { return secretNow(ctx).UID }).ShouldNot(BeEmpty())
		secret := secretNow(ctx)
		Expect(secret.Labels).To(And(HaveKeyWithValue("argocd.argoproj.io/secret-type", "cluster"), HaveKeyWithValue("stage", "prod")))
		Expect(string(secret.Data["server"])).To(Equal(hub.URL + "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/for-argo/proxy"))
		var config struct {
			BearerToken     string
			TLSClientConfig struct{ CAData []byte }
		}
		Expect(json.Unmarshal(secret.Data["config"], &config)).To(Succeed())

		By("using it on the hub")
		asArgo := expect.Client(&rest.Config{Host: hub.URL, BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: config.TLSClientConfig.CAData}}, scheme)
		err := asArgo.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("system:serviceaccount:argocd:fleetgate-argocd"))))
		Expect(allowed(ctx, "for-argo")).To(BeTrue())
		Expect(allowed(ctx, "not-for-argo")).To(BeFalse())

		By("losing or altering the Secret")
		Expect(hubClient.Delete(ctx, secret.DeepCopy())).To(Succeed())
		Eventually(func() types.UID { return secretNow(ctx).UID }).ShouldNot(Or(BeEmpty(), Equal(secret.UID)))
		secret = secretNow(ctx)
		secret.Data["server"] = []byte("https://elsewhere")
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
		Eventually(func() string { return string(secretNow(ctx).Data["server"]) }).Should(HavePrefix(hub.URL))
	})

	It("gets a new token before the old one expires", func(ctx SpecContext) {
		before := secretNow(ctx).Data["config"]
		Expect(before).NotTo(BeEmpty())
		startHub(testingclock.NewFakePassiveClock(time.Now().Add(23 * time.Hour)))
		Eventually(func() []byte { return secretNow(ctx).Data["config"] }).ShouldNot(Or(BeEmpty(), Equal(before)))
	})

	It("loses Secret and right when the label is removed", func(ctx SpecContext) {
		startHub(clock.RealClock{})
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(asked), asked)).To(Succeed())
		base := asked.DeepCopy()
		delete(asked.Labels, authenticationv1beta1.LabelArgoCD)
		Expect(hubClient.Patch(ctx, asked, client.MergeFrom(base))).To(Succeed())
		Eventually(func() types.UID { return secretNow(ctx).UID }).Should(BeEmpty())
		Eventually(func() []rbacv1.PolicyRule { return roleNow(ctx) }).Should(BeEmpty())
		Eventually(allowed).WithArguments(ctx, "for-argo").Should(BeFalse())
	})
})
