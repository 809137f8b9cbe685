// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
)

// newReconciler returns a Reconciler with an in-memory hub that issues tokens.
func newReconciler(t *testing.T, clock *testingclock.FakePassiveClock, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := build.Scheme(clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, account, sub client.Object, _ ...client.SubResourceCreateOption) error {
			request, now := sub.(*authenticationv1.TokenRequest), clock.Now().Unix()
			payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, now, now+*request.Spec.ExpirationSeconds, account.GetUID())
			request.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
			return nil
		},
	}).Build()
	return &Reconciler{
		Client: hub, Live: hub, Secrets: build.CacheOf(hub), Recorder: events.NewFakeRecorder(10), Clock: clock,
		Namespace: "argocd", HubURL: "https://hub:6443",
	}
}

func reconcile(t *testing.T, r *Reconciler) ctrl.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "m1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func bearer(t *testing.T, r *Reconciler) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "fleetgate-m1"}, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	var config clusterConfig
	_ = json.Unmarshal(secret.Data["config"], &config)
	return config.BearerToken
}

func allowedMembers(t *testing.T, r *Reconciler) []string {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: Account}, role); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		return nil
	}
	return role.Rules[0].ResourceNames
}

func TestReconcile_WritesRefreshesAndDeletesTheSecret(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	labelled := member(map[string]string{"fleetgate.io/argocd": "true"})
	other := labelled.DeepCopy()
	other.Name, other.Labels = "m2", map[string]string{"fleetgate.io/argocd": "false"}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name, account.UID = "argocd", Account, "u1"
	r := newReconciler(t, clock, labelled, other, account)
	again := reconcile(t, r).RequeueAfter
	first := bearer(t, r)
	if first == "" || again < 18*time.Hour || again > 21*time.Hour {
		t.Fatalf("token there: %v, looked at again in %s", first != "", again)
	}
	if diff := cmp.Diff([]string{"m1"}, allowedMembers(t, r)); diff != "" {
		t.Errorf("allowed members (-want +got):\n%s", diff)
	}

	clock.SetTime(clock.Now().Add(time.Hour))
	reconcile(t, r)
	if bearer(t, r) != first {
		t.Error("a valid token was replaced")
	}
	clock.SetTime(clock.Now().Add(20 * time.Hour))
	reconcile(t, r)
	if bearer(t, r) == first {
		t.Error("a token that was due was not replaced")
	}

	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(labelled), labelled); err != nil {
		t.Fatal(err)
	}
	labelled.Labels = nil
	if err := r.Client.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	reconcile(t, r)
	if bearer(t, r) != "" || allowedMembers(t, r) != nil {
		t.Errorf("after the label Secret or right stayed: %v", allowedMembers(t, r))
	}
}

func TestReconcile_KeepsTheSecretOfAnotherClient(t *testing.T) {
	theirs := &corev1.Secret{Data: map[string][]byte{"server": []byte("https://theirs")}}
	theirs.Namespace, theirs.Name = "argocd", "fleetgate-m1"
	r := newReconciler(t, testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)), member(map[string]string{"fleetgate.io/argocd": "true"}), theirs)
	if again := reconcile(t, r).RequeueAfter; again != retryInterval {
		t.Errorf("looked at again in %s", again)
	}
	got := &corev1.Secret{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), got); err != nil || string(got.Data["server"]) != "https://theirs" {
		t.Errorf("it has become %v, %v", got.Data, err)
	}
	select {
	case event := <-r.Recorder.(*events.FakeRecorder).Events:
		if event == "" {
			t.Error("the event is empty")
		}
	default:
		t.Error("there is no event")
	}
}
