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
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/impersonation"
)

var _ = Describe("Impersonation on a member", Ordered, func() {
	var (
		token  string
		grants *impersonation.Grants
	)

	BeforeAll(func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: msav1beta1.AccountNamespace}}
		Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, namespace))).To(Succeed())
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: msav1beta1.AccountNamespace, Name: msav1beta1.GatewayAccount}}
		// Specs run in any order, and another may have made it.
		Expect(client.IgnoreNotFound(memberClient.Delete(ctx, account.DeepCopy()))).To(Succeed())
		Expect(memberClient.Create(ctx, account)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, account)).To(Succeed()) })
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
		Expect(memberClient.SubResource("token").Create(ctx, account, request)).To(Succeed())
		token = request.Status.Token
		issued.Store(token, nil)
		DeferCleanup(func() { keepers.add(grants) })
		grants = &impersonation.Grants{Client: clientFor(memberConfigOfAgent()), AccountNamespace: msav1beta1.AccountNamespace}
	})
	actAs := func(ctx context.Context, user string, groups ...string) error {
		info, err := whoami(ctx, token, member.CABundle, append([]string{user}, groups...)...)
		if err == nil && (info.Username != user || !containsAll(info.Groups, groups)) {
			return fmt.Errorf("the member sees %s in %v", info.Username, info.Groups)
		}
		return err
	}

	It("is nobody's before it is granted", func(ctx SpecContext) {
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

	It("costs no write for a pair that is known", func(ctx SpecContext) {
		before := role(ctx).ResourceVersion
		Expect(grants.Grant(ctx, impersonation.Request{User: "user-1", Groups: []string{"everyone", "group-2"}})).To(Succeed())
		Expect(role(ctx).ResourceVersion).To(Equal(before))
	})

	It("is granted to many at once", func(ctx SpecContext) {
		// Another agent, of the Pod before, may still be there.
		other, results := &impersonation.Grants{Client: grants.Client, AccountNamespace: msav1beta1.AccountNamespace}, make(chan error)
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

	It("is asked for over HTTP, and refused there with a reason", func(ctx SpecContext) {
		before := role(ctx).ResourceVersion
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
		Expect(role(ctx).ResourceVersion).To(Equal(before))

		code, _ := ask(`{"user":"over-http","groups":["devs"]}`)
		Expect(code).To(Equal(http.StatusNoContent))
		Expect(actAs(ctx, "over-http", "devs")).To(Succeed())
	})

	It("takes back what somebody else wrote into the role", func(ctx SpecContext) {
		changed := role(ctx)
		for i := range changed.Rules {
			if changed.Rules[i].Resources[0] == "groups" {
				changed.Rules[i].ResourceNames = append(changed.Rules[i].ResourceNames, "system:masters")
			}
		}
		changed.Rules = append(changed.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}})
		Expect(memberClient.Update(ctx, changed)).To(Succeed())
		Eventually(func() error { return actAs(ctx, "anybody", "system:masters") }).Should(Succeed())

		Expect(grants.Grant(ctx, impersonation.Request{User: "user-1"})).To(Succeed(), "a pair that is known")
		Eventually(func() error { return actAs(ctx, "anybody") }).Should(Satisfy(apierrors.IsForbidden))
		Expect(actAs(ctx, "user-1", "system:masters")).To(Satisfy(apierrors.IsForbidden))
		Expect(actAs(ctx, "user-1", "everyone")).To(Succeed())
	})

	It("is bound to the gateway's account again when somebody changed or deleted that", func(ctx SpecContext) {
		binding := &rbacv1.ClusterRoleBinding{}
		for _, change := range []func() error{
			func() error {
				binding.Subjects[0].Name = "another"
				return memberClient.Update(ctx, binding)
			},
			func() error { return memberClient.Delete(ctx, binding) },
			func() error {
				Expect(memberClient.Delete(ctx, binding)).To(Succeed())
				wrong := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Subjects: binding.Subjects, RoleRef: binding.RoleRef}
				wrong.RoleRef.Name = "view"
				return memberClient.Create(ctx, wrong)
			},
		} {
			Expect(memberClient.Get(ctx, client.ObjectKey{Name: impersonation.RoleName}, binding)).To(Succeed())
			Expect(change()).To(Succeed())
			Eventually(func() error { return actAs(ctx, "user-1") }).Should(Satisfy(apierrors.IsForbidden))
			Expect(grants.Grant(ctx, impersonation.Request{User: "user-1", Groups: []string{"everyone"}})).To(Succeed())
			Expect(actAs(ctx, "user-1", "everyone")).To(Succeed())
		}
	})

	It("drops who was asked for longest ago when the role is full", func(ctx SpecContext) {
		full := role(ctx)
		users := make([]string, 1000)
		for i := range users {
			users[i] = fmt.Sprintf("full-%d", i)
		}
		full.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: users}}
		Expect(memberClient.Update(ctx, full)).To(Succeed())

		fresh := &impersonation.Grants{Client: grants.Client, AccountNamespace: msav1beta1.AccountNamespace}
		Expect(fresh.Grant(ctx, impersonation.Request{User: "full-0"})).To(Succeed(), "asked for again")
		Expect(fresh.Grant(ctx, impersonation.Request{User: "one-more"})).To(Succeed())
		names := role(ctx).Rules[0].ResourceNames
		Expect(names).To(HaveLen(1000))
		Expect(names).To(ContainElements("one-more", "full-0", "full-2", "full-999"))
		Expect(names).NotTo(ContainElement("full-1"))
		Expect(actAs(ctx, "one-more")).To(Succeed())
		Eventually(func() error { return actAs(ctx, "full-1") }).Should(Satisfy(apierrors.IsForbidden))
	})
})

func role(ctx context.Context) *rbacv1.ClusterRole {
	GinkgoHelper()
	current := &rbacv1.ClusterRole{}
	Expect(memberClient.Get(ctx, client.ObjectKey{Name: impersonation.RoleName}, current)).To(Succeed())
	return current
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
