// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/impersonation"
	"fleetgate.io/fleetgate/test/support/expect"
)

// impersonates has the specs for a member whose API server supports constrained impersonation, or
// does not.
func impersonates(of func() *place, mode impersonation.Mode) {
	var (
		p      *place
		token  string
		grants *impersonation.Grants
	)

	BeforeAll(func(ctx SpecContext) {
		p = of()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.accounts}}
		Expect(client.IgnoreAlreadyExists(p.client.Create(ctx, namespace))).To(Succeed())
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.accounts, Name: authenticationv1beta1.GatewayAccount}}
		// Another spec may have created it, because specs run in any order.
		Expect(client.IgnoreNotFound(p.client.Delete(ctx, account.DeepCopy()))).To(Succeed())
		Expect(p.client.Create(ctx, account)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(p.client.Delete(ctx, account)).To(Succeed()) })
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
		Expect(p.client.SubResource("token").Create(ctx, account, request)).To(Succeed())
		token = request.Status.Token
		issued.Store(token, nil)
		DeferCleanup(func() { keepers.add(grants) })
		grants = p.grants()
	})
	actAs := func(ctx context.Context, user string, groups ...string) error {
		info, err := p.whoami(ctx, token, p.cluster.CABundle, append([]string{user}, groups...)...)
		if err == nil && (info.Username != user || !containsAll(info.Groups, groups)) {
			return fmt.Errorf("the member sees %s in %v", info.Username, info.Groups)
		}
		return err
	}

	It("is forbidden before it is granted", func(ctx SpecContext) {
		Expect(actAs(ctx, "jane")).To(Satisfy(apierrors.IsForbidden))
	})

	It("works as soon as the grant returns", func(ctx SpecContext) {
		for i := range 30 {
			user, groups := fmt.Sprintf("user-%d", i), []string{fmt.Sprintf("group-%d", i), "everyone"}
			Expect(grants.Grant(ctx, impersonation.Request{User: user, Groups: groups})).To(Succeed())
			Expect(actAs(ctx, user, groups...)).To(Succeed())
		}
		Expect(actAs(ctx, "jane")).To(Satisfy(apierrors.IsForbidden))
		Expect(actAs(ctx, "user-1", "group-that-nobody-has")).To(Satisfy(apierrors.IsForbidden))
	})

	It("costs no write for known users and groups", func(ctx SpecContext) {
		before := p.role(ctx).ResourceVersion
		Expect(grants.Grant(ctx, impersonation.Request{User: "user-1", Groups: []string{"everyone", "group-2"}})).To(Succeed())
		Expect(p.role(ctx).ResourceVersion).To(Equal(before))
	})

	It("is granted to many callers concurrently", func(ctx SpecContext) {
		// Another agent, of the previous Pod, may still be running.
		other, results := p.grants(), make(chan error)
		for i := range 40 {
			go func() {
				request := impersonation.Request{User: fmt.Sprintf("parallel-%d", i%20), Groups: []string{fmt.Sprintf("parallel-group-%d", i)}}
				asked := grants
				if i%2 == 0 {
					asked = other
				}
				err := asked.Grant(ctx, request)
				if err == nil {
					err = actAs(ctx, request.User, request.Groups...)
				}
				results <- err
			}()
		}
		for range 40 {
			Expect(<-results).To(Succeed())
		}
	})

	It("is requested over HTTP and refused with a reason", func(ctx SpecContext) {
		before := p.role(ctx).ResourceVersion
		ask := func(body string) (int, string) {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, impersonation.Path, bytes.NewBufferString(body))
			grants.Handler().ServeHTTP(recorder, request)
			var answer struct{ Message string }
			if recorder.Body.Len() > 0 {
				Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
			}
			return recorder.Code, answer.Message
		}
		for body, part := range map[string]string{
			`{"user":"jane","groups":["system:masters"]}`:                  `"system:masters"`,
			`{"user":"jane","groups":["devs","kubeadm:cluster-admins"]}`:   `"kubeadm:cluster-admins"`,
			`{"user":"system:serviceaccount:kube-system:node-controller"}`: "is never impersonated",
			`{"user":"kubernetes-admin"}`:                                  `"kubernetes-admin"`,
			`{"groups":["devs"]}`:                                          "no user was named",
		} {
			code, message := ask(body)
			Expect(code).To(Equal(http.StatusForbidden), body)
			Expect(message).To(ContainSubstring(part))
		}
		for _, body := range []string{``, `[]`, `{"user":1}`, `{"user":"jane","uid":"0"}`, `{"user":"` + strings.Repeat("a", 2<<20) + `"}`} {
			code, _ := ask(body)
			Expect(code).To(Equal(http.StatusBadRequest))
		}
		Expect(p.role(ctx).ResourceVersion).To(Equal(before))

		code, _ := ask(`{"user":"over-http","groups":["devs"]}`)
		Expect(code).To(Equal(http.StatusNoContent))
		Expect(actAs(ctx, "over-http", "devs")).To(Succeed())
	})

	It("reverts changes of the role by others", func(ctx SpecContext) {
		changed := p.role(ctx)
		for i := range changed.Rules {
			if slices.Contains(changed.Rules[i].Resources, "groups") {
				changed.Rules[i].ResourceNames = append(changed.Rules[i].ResourceNames, "system:masters")
			}
		}
		changed.Rules = append(changed.Rules,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"groups"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"system:masters"}})
		Expect(p.client.Update(ctx, changed)).To(Succeed())
		Eventually(func() error { return actAs(ctx, "anybody", "system:masters") }).Should(Succeed())

		Expect(grants.Grant(ctx, impersonation.Request{User: "user-1"})).To(Succeed(), "known user and groups")
		Eventually(func() error { return actAs(ctx, "anybody") }).Should(Satisfy(apierrors.IsForbidden))
		Expect(actAs(ctx, "user-1", "system:masters")).To(Satisfy(apierrors.IsForbidden))
		Expect(actAs(ctx, "user-1", "everyone")).To(Succeed())
	})

	It("restores a changed or deleted binding", func(ctx SpecContext) {
		binding := &rbacv1.ClusterRoleBinding{}
		for _, change := range []func() error{
			func() error {
				binding.Subjects[0].Name = "another"
				return p.client.Update(ctx, binding)
			},
			func() error { return p.client.Delete(ctx, binding) },
			func() error {
				Expect(p.client.Delete(ctx, binding)).To(Succeed())
				wrong := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Subjects: binding.Subjects, RoleRef: binding.RoleRef}
				wrong.RoleRef.Name = "view"
				return p.client.Create(ctx, wrong)
			},
		} {
			Expect(p.client.Get(ctx, client.ObjectKey{Name: p.roleName()}, binding)).To(Succeed())
			Expect(change()).To(Succeed())
			Eventually(func() error { return actAs(ctx, "user-1") }).Should(Satisfy(apierrors.IsForbidden))
			Expect(grants.Grant(ctx, impersonation.Request{User: "user-1", Groups: []string{"everyone"}})).To(Succeed())
			Expect(actAs(ctx, "user-1", "everyone")).To(Succeed())
		}
	})

	It("drops the least recently requested names when the role is full", func(ctx SpecContext) {
		full := p.role(ctx)
		users := make([]string, 1000)
		for i := range users {
			users[i] = fmt.Sprintf("full-%d", i)
		}
		full.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: users}}
		Expect(p.client.Update(ctx, full)).To(Succeed())

		fresh := p.grants()
		Expect(fresh.Grant(ctx, impersonation.Request{User: "full-0"})).To(Succeed(), "requested again")
		Expect(fresh.Grant(ctx, impersonation.Request{User: "one-more"})).To(Succeed())
		names := p.role(ctx).Rules[0].ResourceNames
		Expect(names).To(HaveLen(1000))
		Expect(names).To(ContainElements("one-more", "full-0", "full-2", "full-999"))
		Expect(names).NotTo(ContainElement("full-1"))
		Expect(actAs(ctx, "one-more")).To(Succeed())
		Eventually(func() error { return actAs(ctx, "full-1") }).Should(Satisfy(apierrors.IsForbidden))
	})

	It("uses only the verbs that the member's API server supports", func(ctx SpecContext) {
		Expect(grants.Grant(ctx, impersonation.Request{User: "jane-of-the-hub", Groups: []string{"everyone"}})).To(Succeed())
		Expect(actAs(ctx, "jane-of-the-hub", "everyone")).To(Succeed())
		Expect(grants.Mode()).To(Equal(mode))
		Expect(verbsFor(p.role(ctx), "jane-of-the-hub")).To(ConsistOf(map[impersonation.Mode]string{
			impersonation.Constrained: "impersonate:user-info", impersonation.Plain: "impersonate",
		}[mode]))
		if mode == impersonation.Constrained {
			Expect(allVerbs(p.role(ctx))).NotTo(ContainElement("impersonate"), "it would make the constrained verbs useless")
		}
	})

	It("that an earlier version granted is rewritten before any request", func(ctx SpecContext) {
		changed := p.role(ctx)
		changed.Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"earlier"}},
			{APIGroups: []string{""}, Resources: []string{"groups"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"earlier-group"}},
		}
		Expect(p.client.Update(ctx, changed)).To(Succeed())
		fresh := p.grants()
		running, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		go fresh.Run(running)
		Eventually(fresh.Mode).Should(Equal(mode))
		want := map[impersonation.Mode]string{impersonation.Constrained: "impersonate:user-info", impersonation.Plain: "impersonate"}[mode]
		Eventually(func() []string { return verbsFor(p.role(ctx), "earlier") }).Should(ConsistOf(want))
		Eventually(func() error { return actAs(ctx, "earlier", "earlier-group") }).Should(Succeed())
	})

	It("that was written in the other mode is rewritten", func(ctx SpecContext) {
		changed := p.role(ctx)
		identity := rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, Verbs: []string{"impersonate:user-info"}, ResourceNames: []string{"swapped"}}
		if mode == impersonation.Constrained {
			identity.APIGroups, identity.Verbs = []string{""}, []string{"impersonate"}
		}
		changed.Rules = []rbacv1.PolicyRule{identity}
		Expect(p.client.Update(ctx, changed)).To(Succeed())
		Expect(p.grants().Grant(ctx, impersonation.Request{User: "swapped"})).To(Succeed())
		Expect(verbsFor(p.role(ctx), "swapped")).NotTo(ContainElements(identity.Verbs))
		Expect(actAs(ctx, "swapped")).To(Succeed())
	})

	It("allows all verbs, long-running requests, subresources and paths that RBAC allows", func(ctx SpecContext) {
		const user = "hub:system:serviceaccount:argocd:fleetgate-argocd"
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "argocd-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		Expect(p.client.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(p.client.Delete(ctx, binding)).To(Succeed()) })
		groups := []string{"hub:system:serviceaccounts", "hub:system:serviceaccounts:argocd", "one", "two"}
		Expect(grants.Grant(ctx, impersonation.Request{User: user, Groups: groups})).To(Succeed())
		config := &rest.Config{
			Host: p.cluster.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: p.cluster.CABundle},
			Impersonate: rest.ImpersonationConfig{UserName: user, Groups: groups},
		}
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		maps := clientset.CoreV1().ConfigMaps(metav1.NamespaceDefault)
		// The authorizer observes the right shortly after it was written.
		Eventually(func() error { _, err := maps.List(ctx, metav1.ListOptions{}); return err }).Should(Succeed())

		watched, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=acted"})
		Expect(err).NotTo(HaveOccurred())
		defer watched.Stop()
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "acted", Labels: map[string]string{"of": "argocd"}}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(watched.ResultChan()).Should(Receive(HaveField("Type", watch.Added)))
		made.Data = map[string]string{"a": "b"}
		_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = maps.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"data":{"a":"c"}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = maps.Get(ctx, made.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(maps.Delete(ctx, made.Name, metav1.DeleteOptions{})).To(Succeed())
		Expect(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=argocd"})).To(Succeed())
		for _, subresource := range []string{"exec", "attach", "portforward", "log"} {
			for _, verb := range []string{"GET", "POST"} {
				if verb == "POST" && subresource == "log" {
					continue
				}
				err := clientset.CoreV1().RESTClient().Verb(verb).Namespace(metav1.NamespaceDefault).Resource("pods").Name("nobody").SubResource(subresource).
					Param("command", "true").Param("stdout", "true").Do(ctx).Error()
				Expect(err).NotTo(Satisfy(apierrors.IsForbidden), "%s of pods/%s", verb, subresource)
				Expect(err).To(Satisfy(apierrors.IsNotFound), "%s of pods/%s", verb, subresource)
			}
		}
		for _, path := range []string{"/version", "/readyz", "/openapi/v3", "/metrics"} {
			Expect(clientset.RESTClient().Get().AbsPath(path).Do(ctx).Error()).To(Succeed(), path)
		}
	})
}

var _ = Describe("Impersonation on a member whose API server constrains it", Ordered, func() {
	impersonates(func() *place { return first }, impersonation.Constrained)
})

var _ = Describe("Impersonation on a member whose API server does not constrain it", Ordered, func() {
	impersonates(func() *place { return second }, impersonation.Plain)
})

// grants returns the Grants of an agent that has just started.
func (p *place) grants() *impersonation.Grants {
	GinkgoHelper()
	return &impersonation.Grants{Client: expect.Client(p.memberConfigOfAgent(), scheme), Member: p.memberConfigOfAgent(), AccountNamespace: p.accounts}
}

func (p *place) roleName() string {
	if p.accounts == authenticationv1beta1.AccountNamespace {
		return impersonation.RoleName
	}
	return impersonation.RoleName + "-" + p.accounts
}

func (p *place) role(ctx context.Context) *rbacv1.ClusterRole {
	GinkgoHelper()
	current := &rbacv1.ClusterRole{}
	Expect(p.client.Get(ctx, client.ObjectKey{Name: p.roleName()}, current)).To(Succeed())
	return current
}

// verbsFor returns the verbs of rules with names.
func verbsFor(role *rbacv1.ClusterRole, name string) (verbs []string) {
	for _, rule := range role.Rules {
		if slices.Contains(rule.ResourceNames, name) {
			verbs = append(verbs, rule.Verbs...)
		}
	}
	return verbs
}

func allVerbs(role *rbacv1.ClusterRole) (verbs []string) {
	for _, rule := range role.Rules {
		verbs = append(verbs, rule.Verbs...)
	}
	return verbs
}

func containsAll(have, want []string) bool {
	set := map[string]bool{}
	for _, name := range have {
		set[name] = true
	}
	for _, name := range want {
		if !set[name] {
			return false
		}
	}
	return true
}
