// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

func token(subject, uid string) []byte {
	payload := fmt.Sprintf(`{"sub":%q,"iat":1800000000,"exp":1800003600,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, subject, uid)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
}

func TestInspect_DetectsAlteredSecrets(t *testing.T) {
	onMember := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: authenticationv1beta1.AccountNamespace, Name: "a", UID: "u1"}}
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "owner"}}
	tests := map[string]struct {
		alter func(*corev1.Secret)
		ours  bool
		whole bool
	}{
		"nothing":                    {func(*corev1.Secret) {}, true, true},
		"a label of another client":  {func(s *corev1.Secret) { s.Labels["team"] = "x" }, true, true},
		"our label":                  {func(s *corev1.Secret) { s.Labels = nil }, true, false},
		"the owner":                  {func(s *corev1.Secret) { s.OwnerReferences = nil }, true, false},
		"an owner of the same name":  {func(s *corev1.Secret) { s.OwnerReferences[0].UID = "earlier" }, true, false},
		"the CA":                     {func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("other") }, true, false},
		"another key":                {func(s *corev1.Secret) { s.Data["extra"] = nil }, true, false},
		"no token":                   {func(s *corev1.Secret) { delete(s.Data, "token") }, false, false},
		"not a token":                {func(s *corev1.Secret) { s.Data["token"] = []byte("abc") }, false, false},
		"token of an earlier one":    {func(s *corev1.Secret) { s.Data["token"] = token(authenticationv1beta1.AccountUsername("a"), "u0") }, false, true},
		"token of another account":   {func(s *corev1.Secret) { s.Data["token"] = token(authenticationv1beta1.AccountUsername("b"), "u1") }, false, true},
		"token of another namespace": {func(s *corev1.Secret) { s.Data["token"] = token("system:serviceaccount:kube-system:a", "u1") }, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Labels:          map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
					OwnerReferences: []metav1.OwnerReference{{UID: account.UID}},
				},
				Data: map[string][]byte{"token": token(authenticationv1beta1.AccountUsername("a"), "u1"), "ca.crt": []byte("ca")},
			}
			tt.alter(secret)
			found, ours := inspect(secret, account, onMember, []byte("ca"))
			if ours != tt.ours || found.whole != tt.whole || found.works {
				t.Errorf("ours: %v, found: %+v; want ours: %v, whole: %v", ours, found, tt.ours, tt.whole)
			}
		})
	}
}

func TestReportFailure_NamesTheRemedy(t *testing.T) {
	resource := schema.GroupResource{Resource: "serviceaccounts"}
	terminating := apierrors.NewForbidden(resource, "a", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		failure  error
		want     string
		mustLack string
	}{
		"mistake":     {mistake("rename it"), "rename it", "role"},
		"no right":    {fmt.Errorf("asking: %w", apierrors.NewForbidden(resource, "a", errors.New("no"))), "grant this right to the agent's role", ""},
		"terminating": {terminating, "being terminated", "role"},
		"very long":   {errors.New(strings.Repeat("ä", maxMessageBytes)), "ä", "\ufffd"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			reportFailure(account, tt.failure, time.Unix(1_800_000_000, 0))
			got := meta.FindStatusCondition(account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
			if got.Status != metav1.ConditionFalse || got.Reason != authenticationv1beta1.ReasonTokenReportFailed || got.ObservedGeneration != 3 {
				t.Errorf("condition is %+v", got)
			}
			if !strings.Contains(got.Message, tt.want) || tt.mustLack != "" && strings.Contains(got.Message, tt.mustLack) || len(got.Message) > maxMessageBytes+100 {
				t.Errorf("message is %q", got.Message)
			}
		})
	}
}

// changed is an API server with newer objects than the cache.
type changed struct{ client.Reader }

func (c changed) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := c.Reader.Get(ctx, key, into, options...)
	into.SetResourceVersion("newer")
	return err
}

func TestReconciler_RefreshesATokenOnceWhenTheCacheLags(t *testing.T) {
	s := newSimulation(t, 1, 1, time.Hour)
	agent := s.agents[0]
	live, request := agent.Live, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: agent.HubNamespace, Name: "a0"}}
	agent.Live = changed{live}
	result, err := agent.Reconcile(t.Context(), request)
	if err != nil || s.tokens != 0 || result.RequeueAfter != time.Second {
		t.Errorf("issued %d tokens: %v, %v", s.tokens, result, err)
	}
	agent.Live = live
	if _, err := agent.Reconcile(t.Context(), request); err != nil || s.tokens != 1 {
		t.Errorf("issued %d tokens: %v", s.tokens, err)
	}
}

// fakeServer is an API server that answers each read with an error.
type fakeServer struct {
	client.Client
	err error
}

func (a fakeServer) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.err
}

// removing is a member on which ServiceAccounts can be deleted.
type removing struct{ *memory }

func (r removing) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	delete(r.objects, keyOf(object, client.ObjectKeyFromObject(object)))
	return nil
}

func TestVanished_KeepsTheAccountUntilTheHubConfirmsTheDeletion(t *testing.T) {
	resource := schema.GroupResource{Resource: "managedserviceaccounts"}
	gone := apierrors.NewNotFound(resource, "a0")
	for name, tc := range map[string]struct {
		live         error
		stays, fails bool
	}{
		"the cache is behind":            {nil, true, false},
		"the hub does not answer":        {errors.New("no route"), true, true},
		"the hub does not know the kind": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "a0", "404 page not found", 0, true), true, true},
		"it was deleted":                 {gone, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			agent := newSimulation(t, 1, 1, time.Hour).agents[0]
			onMember := agent.Member.(*memory)
			agent.Member = removing{onMember}
			request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: agent.HubNamespace, Name: "a0"}}
			if _, err := agent.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			agent.Hub, agent.Live = fakeServer{agent.Hub, gone}, fakeServer{agent.Hub, tc.live}
			_, err := agent.Reconcile(t.Context(), request)
			if failed := err != nil; failed != tc.fails {
				t.Errorf("got %v", err)
			}
			key := client.ObjectKey{Namespace: agent.AccountNamespace, Name: "a0"}
			if _, stays := onMember.objects[keyOf(&corev1.ServiceAccount{}, key)]; stays != tc.stays {
				t.Errorf("the account stays: %t, want %t", stays, tc.stays)
			}
		})
	}
}
