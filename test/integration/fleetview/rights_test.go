// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// subjectsOf returns a group as the subject of a binding.
func subjectsOf(group string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}}
}

// grantAtRandom grants a group the view all, access to some members, and some rights on each.
func grantAtRandom(ctx context.Context, random *rand.Rand, group string) (said string) {
	GinkgoHelper()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"cluster.core.oam.dev"}, Resources: []string{"fleetviews/proxy"}, Verbs: []string{"get"}, ResourceNames: []string{"all"}}}
	way := rbacv1.PolicyRule{APIGroups: []string{"cluster.core.oam.dev"}, Resources: []string{"clustergateways/proxy"}, Verbs: []string{"get"}}
	if random.IntN(3) > 0 {
		way.ResourceNames = slices.DeleteFunc(slices.Clone(members), func(string) bool { return random.IntN(3) == 0 })
	}
	if way.ResourceNames == nil || len(way.ResourceNames) > 0 {
		rules = append(rules, way)
	}
	said = fmt.Sprintf("access to %v", way.ResourceNames)
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRole{ObjectMeta: build.Named(group), Rules: rules})
	expect.CreatedForSpec(ctx, hubClient, &rbacv1.ClusterRoleBinding{
		ObjectMeta: build.Named(group), Subjects: subjectsOf(group), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: group},
	})
	for _, member := range members {
		view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		switch random.IntN(3) {
		case 0:
			said += ", all of " + member
			expect.CreatedForSpec(ctx, on[member], &rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(group), Subjects: subjectsOf(group), RoleRef: view})
		case 1:
			said += ", " + namespace + " of " + member
			expect.CreatedForSpec(ctx, on[member], &rbacv1.RoleBinding{ObjectMeta: build.In(namespace, group), Subjects: subjectsOf(group), RoleRef: view})
		}
	}
	return said
}

// listed returns the ConfigMaps that a user can list in a namespace, or in all, each with its
// member; nil if the request is rejected.
func listed(ctx context.Context, kubeconfig, path, in, member string) []string {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	if path != "" {
		config.Host += path
	}
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	list, err := clientset.CoreV1().ConfigMaps(in).List(ctx, metav1.ListOptions{})
	rows := []string{}
	if err != nil {
		return rows
	}
	for _, of := range list.Items {
		rows = append(rows, strings.Join([]string{of.Labels[viewv1alpha1.LabelMember] + member, of.Namespace, of.Name}, "/"))
	}
	slices.Sort(rows)
	return rows
}

var _ = Describe("The result of a view", func() {
	It("equals what the same user reads member by member, for random rights", func(ctx SpecContext) {
		seed := uint64(GinkgoRandomSeed())
		random := rand.New(rand.NewPCG(seed, seed))
		for n := range 8 {
			group := fmt.Sprintf("random-%d", n)
			rights := grantAtRandom(ctx, random, group)
			u := someone(ctx, "user-of-"+group, group)
			for _, in := range []string{namespace, metav1.NamespaceAll} {
				Eventually(func(g Gomega) {
					alone := []string{}
					for _, member := range members {
						alone = append(alone, listed(ctx, u.hub, paths.Member+member+"/proxy", in, member)...)
					}
					g.Expect(listed(ctx, u.fleet, "", in, "")).To(Equal(alone), "with %s, in %q", rights, in)
				}).Should(Succeed())
			}
		}
	})
})
