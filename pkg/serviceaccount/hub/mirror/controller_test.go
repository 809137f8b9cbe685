// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

var (
	keyOfSource = client.ObjectKey{Namespace: "cluster1", Name: "a"}
	keyOfMirror = client.ObjectKey{Namespace: "fleet-member-m1", Name: "a"}
)

// bench is a Reconciler with an in-memory hub.
type bench struct {
	t   *testing.T
	hub client.Client
	r   *Reconciler
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authenticationv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&authenticationv1beta1.ManagedServiceAccount{}).WithObjects(objects...).Build()
	return &bench{t: t, hub: hub, r: &Reconciler{Client: hub, GatewayNamespace: "fleet-system"}}
}

// reconcile reconciles until nothing changes.
func (b *bench) reconcile() {
	b.t.Helper()
	b.reconcileOf(keyOfSource)
}

func (b *bench) reconcileOf(key client.ObjectKey) {
	b.t.Helper()
	for range 4 {
		if _, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) account(key client.ObjectKey) *authenticationv1beta1.ManagedServiceAccount {
	b.t.Helper()
	found := &authenticationv1beta1.ManagedServiceAccount{}
	if err := b.hub.Get(b.t.Context(), key, found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		b.t.Fatal(err)
	}
	return found
}

// token returns the token in a Secret, or "".
func (b *bench) token(key client.ObjectKey) string {
	b.t.Helper()
	found := &corev1.Secret{}
	if err := b.hub.Get(b.t.Context(), key, found); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return string(found.Data["token"])
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// told returns the message of a condition that is False.
func (b *bench) told() string {
	b.t.Helper()
	condition := meta.FindStatusCondition(b.account(keyOfSource).Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return ""
	}
	return condition.Message
}

func namespace(name, member string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if member != "" {
		n.Labels = map[string]string{"fleetgate.io/member": member}
	}
	return n
}

func given(uid types.UID) *authenticationv1beta1.ManagedServiceAccount {
	return &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "a", UID: uid}}
}

// agentReports sets token and status of the mirror, as the member's agent does.
func (b *bench) agentReports(token string) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: keyOfMirror.Namespace, Name: keyOfMirror.Name}}
	_ = b.hub.Delete(b.t.Context(), secret.DeepCopy())
	mirror := b.account(keyOfMirror)
	secret.Data = map[string][]byte{"token": []byte(token), "ca.crt": []byte("ca")}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: "ManagedServiceAccount", Name: mirror.Name, UID: mirror.UID}}
	b.must(b.hub.Create(b.t.Context(), secret))
	mirror.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{Name: "a", LastRefreshTimestamp: metav1.Now()}
	meta.SetStatusCondition(&mirror.Status.Conditions, metav1.Condition{Type: authenticationv1beta1.ConditionTokenReported, Status: metav1.ConditionTrue, Reason: "R"})
	b.must(b.hub.Status().Update(b.t.Context(), mirror))
}

func TestReconcile_CopiesTheTokenOfTheMirror(t *testing.T) {
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"))
	b.reconcile()
	if b.account(keyOfMirror) == nil {
		t.Fatal("there is no mirror")
	}
	for _, token := range []string{"first", "second"} {
		b.agentReports(token)
		b.reconcile()
		if got := b.token(keyOfSource); got != token {
			t.Errorf("the copy holds %q, want %q", got, token)
		}
	}
	if b.account(keyOfSource).Status.TokenSecretRef == nil {
		t.Error("the status does not have the token")
	}

	t.Log("somebody alters the copy")
	secret := &corev1.Secret{}
	b.must(b.hub.Get(t.Context(), keyOfSource, secret))
	secret.Data["token"] = []byte("x")
	b.must(b.hub.Update(t.Context(), secret))
	b.reconcile()
	if got := b.token(keyOfSource); got != "second" {
		t.Errorf("the copy holds %q", got)
	}

	t.Log("the namespace is unassigned")
	b.must(b.hub.Update(t.Context(), namespace("cluster1", "")))
	b.reconcile()
	if b.account(keyOfMirror) != nil || b.token(keyOfSource) != "" {
		t.Error("mirror or copy remain")
	}
	if told := b.told(); !strings.Contains(told, "is no longer assigned to a member") {
		t.Errorf("told %q", told)
	}
}

// A ManagedServiceAccount with the name of any Secret in the member's namespace got that Secret's
// data.
func TestCopyToken_CopiesOnlyTheSecretOfTheMirror(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m1", Name: "a"}, Data: map[string][]byte{"token": []byte("theirs")}}
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"), theirs)
	b.reconcile()
	if b.account(keyOfMirror) == nil {
		t.Fatal("there is no mirror")
	}
	if got := b.token(keyOfSource); got != "" {
		t.Errorf("another's Secret came over: %q", got)
	}
}

func TestReconcile_DeletesTheMirrorWithItsSource(t *testing.T) {
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"))
	b.reconcile()
	b.must(b.hub.Delete(t.Context(), given("u1")))
	b.reconcile()
	if b.account(keyOfMirror) != nil {
		t.Error("the mirror remains")
	}
}

func TestReconcile_LabelsAndDeletesTheMirrorOfAPreviousGateway(t *testing.T) {
	previous := desiredMirror(given("u1"), "m1")
	delete(previous.Labels, authenticationv1beta1.LabelSourceNamespace)
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"), previous.DeepCopy())
	b.reconcile()
	if got := b.account(keyOfMirror); got.Labels[authenticationv1beta1.LabelSourceNamespace] != "cluster1" {
		t.Errorf("the mirror has labels %v", got.Labels)
	}

	b = newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), previous.DeepCopy())
	b.reconcile()
	if b.account(keyOfMirror) != nil {
		t.Error("the mirror of a deleted ManagedServiceAccount still exists")
	}
}

func TestReconcile_ReplacesTheMirrorOfADeletedSource(t *testing.T) {
	earlier := desiredMirror(given("u1"), "m1")
	earlier.Annotations[authenticationv1beta1.AnnotationMadeFor] = "u0"
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"), earlier)
	b.reconcile()
	if got := b.account(keyOfMirror).Annotations[authenticationv1beta1.AnnotationMadeFor]; got != "u1" {
		t.Errorf("the mirror was made for %q", got)
	}
}

// A user who took the name before the gateway got the gateway's rights.
func TestReconcile_RefusesTheNameOfTheGatewaysAccount(t *testing.T) {
	reserved := given("u1")
	reserved.Name = authenticationv1beta1.GatewayAccount
	earlier := desiredMirror(reserved, "m1")
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), reserved, earlier)
	b.reconcileOf(client.ObjectKeyFromObject(reserved))
	if mirror := b.account(client.ObjectKeyFromObject(earlier)); mirror != nil {
		t.Errorf("the mirror is still there, with labels %v", mirror.Labels)
	}
	conditions := b.account(client.ObjectKeyFromObject(reserved)).Status.Conditions
	if len(conditions) == 0 || !strings.Contains(conditions[0].Message, "the gateway's own account") {
		t.Errorf("told %v", conditions)
	}
}

func TestReconcile_ReportsConflictsAndCreatesNothing(t *testing.T) {
	taken := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m1", Name: "a"}}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m1", Name: "a"}, Data: map[string][]byte{"token": []byte("theirs")}}
	b := newBench(t, namespace("cluster1", "m1"), namespace("fleet-member-m1", "m1"), given("u1"), taken, theirs)
	b.reconcile()
	if told := b.told(); !strings.Contains(told, "has an account of that name already") {
		t.Errorf("told %q", told)
	}
	if got := b.token(keyOfSource); got != "" {
		t.Errorf("the token of another's account came over: %q", got)
	}

	somebody := namespace("cluster1", "")
	b = newBench(t, somebody, given("u1"))
	b.reconcile()
	if conditions := b.account(keyOfSource).Status.Conditions; len(conditions) != 0 {
		t.Errorf("one in somebody's namespace got conditions %v", conditions)
	}
}
