// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy_test sends requests to a real member through a real hub. The gateway's API server
// runs in this process and is registered with APIServices; the tunnel is opened through the hub;
// kubectl runs as a user runs it.
package proxy_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	memberName = "member-1"
	// awayName is a member whose agent never connects.
	awayName = "member-2"
	// lostName is a member that is not expected to reconnect.
	lostName = "member-3"
	// viewer can read members on the hub, editor has all verbs.
	viewer, editor = "viewer", "editor"
	team           = "team-a"
	administrators = "fleet-administrators"
	namespace      = "shop"
)

var (
	hub, member             *env.Cluster
	hubClient, memberClient client.Client
	served                  *runningGateway
	agent                   *runningAgent
	// grants answer for all agents, which serve one cluster.
	grants http.Handler
)

func TestProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "The way into a member", Label("integration", "proxy"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub, member} })

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	clusters, err := env.StartAll(ctx, env.Options{Name: "hub"}, env.Options{Name: memberName})
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
	DeferCleanup(func(ctx SpecContext) {
		Expect(hub.Stop(ctx)).To(Succeed())
		Expect(member.Stop(ctx)).To(Succeed())
	})
	hubClient, memberClient = expect.Client(hub.Config(), testScheme()), expect.Client(member.Config(), testScheme())
	prepareHub(ctx)
	prepareMember(ctx)
	served = startGateway(ctx)
	DeferCleanup(func() { served.stop() })
	agent = startAgent(ctx)
	DeferCleanup(func() { agent.stop() })
	awaitTunnel(memberName)
})

func testScheme() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, clusterv1beta1.AddToScheme)
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func allow(name string, rules []rbacv1.PolicyRule, subjects ...rbacv1.Subject) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: rules},
		bind(name, name, subjects...),
	}
}

func bind(name, role string, subjects ...rbacv1.Subject) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: build.Named(name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}

// prepareHub creates what registration and the charts create: CRDs, two members with their
// namespaces and accounts, and roles.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	definitions, err := crds.ForHub(clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	for _, crd := range definitions {
		expect.Created(ctx, hubClient, crd)
	}
	expect.Created(ctx, hubClient, &corev1.Namespace{ObjectMeta: build.Named(namespace)},
		&corev1.ServiceAccount{ObjectMeta: build.In(namespace, "deployer")})
	for _, name := range []string{memberName, awayName, lostName} {
		admit(ctx, name, name)
	}
	gateways := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{"cluster.core.oam.dev"}, Resources: []string{"clustergateways", "clustergateways/health"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"cluster.core.oam.dev"}, Resources: []string{"clustergateways/proxy"}, Verbs: verbs},
			// The gateway authorizes the inner request too. In this suite the outer one decides.
			{APIGroups: []string{clustergateway.InnerGroup}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}
	}
	expect.Created(ctx, hubClient, allow("members-view", gateways("get"), user(viewer))...)
	expect.Created(ctx, hubClient, allow("members-edit", gateways("*"), user(editor), account(namespace, "deployer"))...)
}

// admit creates the hub's objects of a member that has joined.
func admit(ctx context.Context, name, stage string) {
	GinkgoHelper()
	ns := clusterv1beta1.MemberNamespace(name)
	expect.Created(ctx, hubClient,
		&corev1.Namespace{ObjectMeta: build.Named(ns)},
		&corev1.ServiceAccount{ObjectMeta: build.In(ns, clusterv1beta1.AgentAccount)})
	Eventually(func() error {
		return hubClient.Create(ctx, &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": stage}},
			Spec:       clusterv1beta1.MemberClusterSpec{Identity: account(ns, clusterv1beta1.AgentAccount)},
		})
	}).Should(Succeed())
	expect.Created(ctx, hubClient, allow("tunnel-"+name, []rbacv1.PolicyRule{{
		APIGroups: []string{"tunnel.fleetgate.io"}, Resources: []string{"tunnels/proxy"}, Verbs: []string{"create"}, ResourceNames: []string{name},
	}}, account(ns, clusterv1beta1.AgentAccount))...)
}

// prepareMember grants the team a namespace on the member.
func prepareMember(ctx context.Context) {
	GinkgoHelper()
	expect.Created(ctx, memberClient, &corev1.Namespace{ObjectMeta: build.Named(namespace)}, &rbacv1.RoleBinding{
		ObjectMeta: build.In(namespace, "team"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{group(team)},
	})
}
