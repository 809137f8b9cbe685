// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
)

func TestReturnReconciler_ReadmitsOnlyAnnotatedMembers(t *testing.T) {
	agent, expires := newKey(t), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	of := (&GrantReconciler{})
	uid := "the-former"
	of.hub.Store(&uid)
	key, err := of.agentKey(t.Context(), agent.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		unready     bool
		left        bool
	}{
		"readmit":             {annotations: map[string]string{AnnotationAgentKey: key, AnnotationReadmit: "true"}, left: true},
		"previous annotation": {annotations: map[string]string{AnnotationAgentKey: key, deprecatedAnnotationTakeBack: "true"}, left: true},
		"both annotations, the new one false": {
			annotations: map[string]string{AnnotationAgentKey: key, AnnotationReadmit: "false", deprecatedAnnotationTakeBack: "true"}},
		"no annotation":    {annotations: map[string]string{AnnotationAgentKey: key}},
		"readmit is false": {annotations: map[string]string{AnnotationAgentKey: key, AnnotationReadmit: "false"}},
		"no key":           {annotations: map[string]string{AnnotationReadmit: "true"}},
		"invalid key":      {annotations: map[string]string{AnnotationAgentKey: "hub/bm9uZQ==", AnnotationReadmit: "true"}},
		"not ready":        {annotations: map[string]string{AnnotationAgentKey: key, AnnotationReadmit: "true"}, unready: true},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 1, Annotations: tc.annotations}}
			if !tc.unready {
				mc.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
			}
			hub := returningHub(t, expires, mc)
			r := &ReturnReconciler{Grants: &GrantReconciler{Client: hub, Live: hub, Clock: testingclock.NewFakePassiveClock(expires.Add(-time.Hour))}, Recorder: events.NewFakeRecorder(10)}
			for range 2 { // The second pass finds nothing to do.
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
					t.Fatal(err)
				}
			}
			var requests registrationv1alpha1.ClusterRegistrationList
			if err := hub.List(t.Context(), &requests); err != nil {
				t.Fatal(err)
			}
			if got := len(requests.Items) == 1; got != tc.left {
				t.Fatalf("requests: %v", requests.Items)
			}
			if !tc.left {
				return
			}
			request := requests.Items[0]
			opened, err := agent.Open(request.Status.SealedToken, request.UID, "")
			if err != nil || opened.Member != "m" || opened.Token != "token-of-m" || !request.Status.Granted {
				t.Errorf("credential = %+v: %v", opened, err)
			}
			if _, err := newKey(t).Open(request.Status.SealedToken, request.UID, ""); err == nil {
				t.Error("another key decrypts it")
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil {
				t.Fatal(err)
			}
			if _, still := mc.Annotations[AnnotationReadmit]; still || isToReturn(mc) || mc.Annotations[clusterv1beta1.AnnotationFormerHub] != uid {
				t.Errorf("annotations = %v", mc.Annotations)
			}
			if own, public, err := parseAgentKey(mc.Annotations[AnnotationAgentKey]); own != "this-one" || sealing.Fingerprint(public) != sealing.Fingerprint(agent.PublicKey()) {
				t.Errorf("hub of the key = %q: %v", own, err)
			}
			granting := &GrantReconciler{Client: hub, Live: hub, Clock: testingclock.NewFakePassiveClock(expires.Add(time.Second))}
			if _, err := granting.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&request)}); err != nil {
				t.Fatal(err)
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(&request), &request); err == nil {
				t.Error("request with an expired token still exists")
			}
		})
	}
}

// A registration token's bearer can set any labels on its request.
func TestGrantReconciler_RevokesRequestWithReturningLabel(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hub := returningHub(t, now, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}})
	request := &registrationv1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "request-1", Labels: map[string]string{registrationv1alpha1.LabelReturning: "m"},
	}}
	if err := hub.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	condition := grantedCondition(nil)
	condition.LastTransitionTime = metav1.NewTime(now)
	request.Status = registrationv1alpha1.ClusterRegistrationStatus{Granted: true, ClusterName: "gone", Conditions: []metav1.Condition{condition}}
	if err := hub.Status().Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	r := &GrantReconciler{Client: hub, Live: hub, Clock: testingclock.NewFakePassiveClock(now), AgentTokenLifetime: time.Hour}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(request)}); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(request), request); err == nil {
		t.Error("request of a deleted Cluster keeps its credential")
	}
}

// returningHub grants tokens with that expiry.
func returningHub(t *testing.T, expires time.Time, mc *clusterv1beta1.MemberCluster) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, registrationv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&registrationv1alpha1.ClusterRegistration{}).WithObjects(
		mc, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "this-one"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: clusterv1beta1.AgentCredentialSecret, UID: "bound"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, account, request client.Object, _ ...client.SubResourceCreateOption) error {
			token := request.(*authenticationv1.TokenRequest)
			token.Status = authenticationv1.TokenRequestStatus{Token: "token-of-" + account.GetNamespace()[len(clusterv1beta1.MemberNamespacePrefix):], ExpirationTimestamp: metav1.NewTime(expires)}
			return nil
		},
	}).Build()
}
