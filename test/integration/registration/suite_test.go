// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration_test tests registration, joining and leaving between a real hub and a real
// member. The gateway's controllers and the agent's parts run in this process, beside the control
// planes.
package registration_test

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/mutation"
)

var (
	hub, member *env.Cluster
	// hubClient and memberClient have the rights of a break-glass administrator.
	hubClient    client.Client
	memberClient kubernetes.Interface
	scheme       *runtime.Scheme
)

func TestRegistration(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Registration", Label("integration", "registration"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	klog.SetLogger(GinkgoLogr)
	clusters, err := env.StartAll(ctx,
		env.Options{Name: "hub", Progress: progress},
		env.Options{Name: "member-1", Nodes: 2, Progress: progress},
	)
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	DeferCleanup(func(ctx SpecContext) {
		Expect(hub.Stop(ctx)).To(Succeed())
		Expect(member.Stop(ctx)).To(Succeed())
	})
	DeferCleanup(endUsualGateway)

	scheme = build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1beta1.AddToScheme, registrationv1alpha1.AddToScheme,
		placementv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme, azurefleetv1alpha1.AddToScheme)
	hubClient, err = client.New(hub.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	memberClient, err = kubernetes.NewForConfig(member.Config())
	Expect(err).NotTo(HaveOccurred())

	hubCRDs, err := crds.ForHub(
		clusterv1beta1.GroupName, registrationv1alpha1.GroupName, placementv1beta1.GroupName, multiclusterv1alpha1.GroupName, azurefleetv1alpha1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: hubCRDs})
	Expect(err).NotTo(HaveOccurred())
	Expect(hubClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.SystemNamespace}})).To(Succeed())
	// The gateway of this suite has the rights of an administrator; no policy has to know its name.
	parameters := policies.Parameters{TokenLifetime: registration.DefaultAgentTokenLifetime, GatewayUser: "gateway"}
	for _, policy := range mutation.Left(slices.Concat(policies.Registration(), policies.Members(parameters), policies.Identities(parameters), policies.MemberBounds())) {
		Expect(hubClient.Create(ctx, policy)).To(Succeed())
	}
})

func progress(line string) { GinkgoWriter.Println(line) }

// makeNamespace creates a namespace on the hub with a unique name.
func makeNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-"}}
	Expect(hubClient.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// makeAgentNamespace creates a namespace on the member for one agent.
func makeAgentNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace, err := memberClient.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return namespace.Name
}
