// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetview_test reads two real members as if they were one, with the gateway and
// the agents as they ship, and kubectl as a user runs it.
package fleetview_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/kubelet"
	"fleetgate.io/fleetgate/test/support/program"
)

const (
	namespace = "shop"
	first     = "member-1"
	second    = "member-2"
	// team can read everything in the namespace on both members.
	team = "shop-developers"
	// pod has logs and exists on one member only; twin exists on both.
	pod, twin = "api", "web"
)

var (
	running   *fleet.Fleet
	hubClient client.Client
	// on are clients that reach the members without the gateway.
	on = map[string]client.Client{}
)

func TestFleetView(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	RunSpecs(t, "Many members as one", Label("integration", "fleetview"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

var _ = BeforeSuite(func(ctx SpecContext) {
	running = program.Fleet(ctx, fleet.Options{Members: []string{first, second}})
	Expect(running.AwaitAnswers(ctx, time.Minute)).To(Succeed())
	hubClient = expect.Client(running.Hub.Config(), build.Scheme(scheme.AddToScheme, viewv1alpha1.AddToScheme, clusterv1beta1.AddToScheme))
	prepareHub(ctx)
	for _, m := range running.Members {
		on[m.Name] = expect.Client(m.Cluster.Config(), build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme))
		prepareMember(ctx, on[m.Name])
	}
	k := kubelet.Start()
	DeferCleanup(k.Close)
	node, err := k.Node(ctx, on[second], "node-of-"+pod)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		_, err := kubelet.Pod(ctx, on[second], node.Name, namespace, pod)
		return err
	}).Should(Succeed())
})

// prepareHub lets the team use every view and reach every member, and visitors one member.
func prepareHub(ctx context.Context) {
	GinkgoHelper()
	const group = "cluster.core.oam.dev"
	for name, rules := range map[string][]rbacv1.PolicyRule{
		team: {
			{APIGroups: []string{group}, Resources: []string{"fleetviews/proxy"}, Verbs: []string{"get", "create", "delete"}},
			{APIGroups: []string{group}, Resources: []string{"clustergateways/proxy"}, Verbs: []string{"get"}},
		},
		"visitors": {
			{APIGroups: []string{group}, Resources: []string{"fleetviews/proxy"}, Verbs: []string{"get"}, ResourceNames: []string{"all"}},
			{APIGroups: []string{group}, Resources: []string{"clustergateways/proxy"}, Verbs: []string{"get"}, ResourceNames: []string{second}},
		},
	} {
		expect.Created(ctx, hubClient, &rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: build.Named(name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}},
		})
	}
}

// prepareMember lets the team read everything, and visitors the namespace.
func prepareMember(ctx context.Context, member client.Client) {
	GinkgoHelper()
	subject := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}}
	}
	view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	expect.Created(ctx, member, build.Namespace(namespace),
		&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(team), RoleRef: view, Subjects: subject(team)},
		&rbacv1.RoleBinding{ObjectMeta: build.In(namespace, "visitors"), RoleRef: view, Subjects: subject("visitors")})
	Eventually(func() error {
		return client.IgnoreAlreadyExists(member.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: twin, Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
		}))
	}).Should(Succeed(), "the member's controllers create the Pod's account")
}

// user is a person with kubeconfigs of the hub and of a view.
type user struct{ hub, fleet string }

// someone writes the kubeconfig of a view as a user does; of all members if the view is empty.
func someone(ctx context.Context, name, group string, view ...string) user {
	GinkgoHelper()
	config, err := running.Hub.ConfigFor(name, group)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	u := user{hub: filepath.Join(dir, "hub"), fleet: filepath.Join(dir, "fleet")}
	Expect(env.WriteKubeconfig(u.hub, config)).To(Succeed())
	made, err := running.Run(ctx, "gateway", "", append([]string{"kubeconfig", "--kubeconfig=" + u.hub, "--fleet"}, view...)...)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(u.fleet, []byte(made), 0o600)).To(Succeed())
	return u
}

// tries runs kubectl with the user's kubeconfig of the view.
func (u user) tries(ctx context.Context, arguments ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	program, err := env.Kubectl(arguments...)
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig=" + u.fleet}, arguments...)...)
	command.Env = append(os.Environ(), "HOME="+filepath.Dir(u.fleet), "KUBECONFIG=")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	GinkgoWriter.Printf("$ kubectl %s\n%s%s", strings.Join(arguments, " "), &errs, &out)
	return out.String(), errs.String(), err
}

// gets runs kubectl and fails the spec on an error or output on standard error.
func (u user) gets(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	stdout, stderr, err := u.tries(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(arguments, " "), stderr)
	Expect(stderr).To(BeEmpty())
	return stdout
}

// fails runs kubectl, which must fail, and returns its error.
func (u user) fails(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	stdout, stderr, err := u.tries(ctx, arguments...)
	Expect(err).To(HaveOccurred(), "kubectl %s: %s", strings.Join(arguments, " "), stdout)
	return stderr
}
