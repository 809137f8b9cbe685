// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// refusals counts requests that the hub answered with 403, by path.
type refusals struct {
	http.RoundTripper
	mu    sync.Mutex
	paths map[string]int
}

func (r *refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths[request.URL.Path]++
	}
	return response, err
}

func (r *refusals) of(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths[path]
}

func bindUser(ctx context.Context, user, role string) {
	GinkgoHelper()
	create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + ":" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// narrow restarts the gateway, until the spec ends, with rights to other kinds only from labelled
// ClusterRoles.
func narrow(ctx context.Context) *refusals {
	GinkgoHelper()
	const user, aggregated = "fleetgate:narrowed", "narrowed-placeable"
	create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: aggregated},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{placementv1beta1.PlaceableLabel: "true"}},
		}},
	})
	bindUser(ctx, user, "fleetgate-gateway")
	bindUser(ctx, user, aggregated)
	config, err := cluster.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	refused := &refusals{paths: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { refused.RoundTripper = next; return refused })
	restart := func(as *rest.Config) {
		gateway.stop()
		gatewayConf = as
		gateway = startGateway()
	}
	whole := gatewayConf
	restart(config)
	DeferCleanup(func() { restart(whole) })
	return refused
}

func placeable(name, group string, resources ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{placementv1beta1.PlaceableLabel: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list", "watch"}}},
	}
}

var _ = Describe("A gateway with rights to some kinds only", Serial, func() {
	// noticed is how long a change of rights can take: the API server aggregates it, and the gateway
	// checks periodically.
	const noticed = 2 * time.Minute

	It("places these, reports the others, and follows added and removed rights", func(ctx SpecContext) {
		create(ctx, placeable("narrowed-1", "", "configmaps", "services"))
		refused := narrow(ctx)
		shop(ctx, "na-shop")
		joinAll(ctx, "na", nil)
		create(ctx, placementOf("na", "na-shop"))
		unreadable := func() (string, error) { return said(ctx, "na", placementv1beta1.ConditionResourcesUnreadable) }
		on := func() ([]string, error) { return kindsOn(ctx, "na-1", "na") }
		Eventually(on).WithTimeout(noticed).WithPolling(often).Should(ConsistOf("Namespace/na-shop", "ConfigMap/settings", "Service/web"))
		Eventually(unreadable).WithTimeout(soon).WithPolling(often).Should(And(ContainSubstring("deployments.apps"), ContainSubstring("None of these are placed"),
			ContainSubstring(placementv1beta1.PlaceableLabel+"=true"), Not(ContainSubstring("configmaps"))))

		By("continuing with readable kinds, without repeated requests for the others")
		changeSettings(ctx, "na-shop", "green")
		Eventually(workSays(ctx, "na-1", "na", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		// One watch that starts with a list, and one list where that is rejected.
		Expect(refused.of("/apis/apps/v1/deployments")).To(BeNumerically("<=", 2))

		By("adding a right")
		given := placeable("narrowed-2", "apps", "deployments")
		create(ctx, given)
		Eventually(on).WithTimeout(noticed).WithPolling(often).Should(ContainElement("Deployment/web"))
		Eventually(unreadable).WithTimeout(soon).WithPolling(often).ShouldNot(ContainSubstring("deployments.apps"))

		By("removing a right, which removes nothing from members")
		Expect(hub.Delete(ctx, given)).To(Succeed())
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "na-shop", Name: "web"}}
		touch := func() (string, error) {
			// A watch continues after its right was removed, so an event is needed.
			err := hub.Patch(ctx, web, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"`+time.Now().Format("150405.000")+`"}}}`)))
			if err != nil {
				return "", err
			}
			return unreadable()
		}
		Eventually(touch).WithTimeout(noticed).WithPolling(time.Second).Should(And(ContainSubstring("deployments.apps"), ContainSubstring("members keep what they have")))
		changeSettings(ctx, "na-shop", "blue")
		Consistently(on, "2s", "200ms").Should(ContainElements("Deployment/web", "ConfigMap/settings"))
	})
})
