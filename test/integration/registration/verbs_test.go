// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/test/support/expect"
)

func makeToken(ctx context.Context, namespace string, ttl time.Duration) *registrationv1alpha1.ClusterRegistrationToken {
	GinkgoHelper()
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"}}
	if ttl != 0 {
		token.Spec.TTL = &metav1.Duration{Duration: ttl}
	}
	Expect(hubClient.Create(ctx, token)).To(Succeed())
	return token
}

// valuesOf waits for the values of the token and reads them like an agent.
func valuesOf(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) *enroll.Bootstrap {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(token), secret) }).Should(Succeed())
	Expect(secret.Type).To(Equal(registrationv1alpha1.SecretTypeRegistrationValues))
	values, err := enroll.ParseBootstrap(secret.Data[registrationv1alpha1.RegistrationValuesKey])
	Expect(err).NotTo(HaveOccurred())
	return values
}

// registrationValues are the values of a new token in the namespace.
func registrationValues(ctx context.Context, namespace string) *enroll.Bootstrap {
	GinkgoHelper()
	return valuesOf(ctx, makeToken(ctx, namespace, time.Hour))
}

// getMember reads the MemberCluster; the zero value means that there is none.
func getMember(ctx context.Context, name string) clusterv1beta1.MemberCluster {
	var mc clusterv1beta1.MemberCluster
	_ = hubClient.Get(ctx, client.ObjectKey{Name: name}, &mc)
	return mc
}

func getCluster(ctx context.Context, namespace, name string) registrationv1alpha1.Cluster {
	var cluster registrationv1alpha1.Cluster
	_ = hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cluster)
	return cluster
}

// expectJoined waits until the member has joined, is healthy and has a heartbeat.
func expectJoined(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		mc := getMember(ctx, name)
		joined := expect.Condition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
		g.Expect(joined.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(joined.ObservedGeneration).To(Equal(mc.Generation))
		report := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
		g.Expect(report).NotTo(BeNil())
		g.Expect(meta.IsStatusConditionTrue(report.Conditions, clusterv1beta1.ConditionHealthy)).To(BeTrue())
		g.Expect(report.LastReceivedHeartbeat.IsZero()).To(BeFalse())
	}).Should(Succeed())
}

func expectProblem(a *agent, reason string, parts ...string) {
	GinkgoHelper()
	Eventually(func() string { return refusal.ReasonOf(a.enroller.Ready()) }).Should(Equal(reason))
	for _, part := range parts {
		Expect(a.enroller.Ready()).To(MatchError(ContainSubstring(part)))
	}
}

func expectEnrolled(ctx context.Context, a *agent) string {
	GinkgoHelper()
	Eventually(a.enroller.Ready).Should(Succeed())
	name, err := a.enroller.Member(ctx)
	Expect(err).NotTo(HaveOccurred())
	return name
}

// expectGone waits until the object is deleted.
func expectGone(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Eventually(func() error {
		return client.IgnoreNotFound(hubClient.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	}).Should(Succeed())
	Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(obj), obj) }).ShouldNot(Succeed())
}

// removeAnnotation removes an annotation, like an administrator.
func removeAnnotation(ctx context.Context, obj client.Object, name string) {
	GinkgoHelper()
	Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	base, ok := obj.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	annotations := obj.GetAnnotations()
	delete(annotations, name)
	obj.SetAnnotations(annotations)
	Expect(hubClient.Patch(ctx, obj, client.MergeFrom(base))).To(Succeed())
}
