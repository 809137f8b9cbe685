// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// noted stores the gateway's rejected requests, and its log.
type noted struct {
	mu      sync.Mutex
	next    http.RoundTripper
	made    int
	refused []string
	log     bytes.Buffer
}

func (n *noted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil || request.Method != http.MethodPost {
		return response, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	if response.StatusCode == http.StatusForbidden {
		n.refused = append(n.refused, request.URL.Path)
	}
	return response, err
}

func (n *noted) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(line)
}

// errorsAbout are the error lines that contain a name.
func (n *noted) errorsAbout(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []string
	for line := range strings.Lines(n.log.String()) {
		if strings.Contains(line, name) && (strings.Contains(line, "ERROR") || strings.Contains(line, "Server rejected")) {
			found = append(found, line)
		}
	}
	return found
}

var _ = Describe("A namespace that is being deleted", func() {
	It("gets no new objects from its placements, which are deleted without an error", func(ctx SpecContext) {
		n := &noted{}
		plain := gatewayConf
		gatewayConf = rest.CopyConfig(plain)
		gatewayConf.Wrap(func(next http.RoundTripper) http.RoundTripper { n.next = next; return n })
		gateway.stop()
		gateway = startGateway()
		GinkgoWriter.TeeTo(n)
		DeferCleanup(func() {
			GinkgoWriter.ClearTeeWriters()
			gatewayConf = plain
			gateway.stop()
			gateway = startGateway()
		})
		shop(ctx, "gone-shop")
		joinAll(ctx, "gone", nil)
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gone-shop", Name: "held", Finalizers: []string{"example.com/held"}}}
		Expect(hub.Create(ctx, held)).To(Succeed())
		placement := placeIn(ctx, "gone-shop", "settings", "gone")
		create(ctx, ofSettings("gone-shop", "colours", sets("", "/data/colour", `"blue"`)))
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("gone-shop", "settings").WithTimeout(soon).WithPolling(often).Should(
			ContainElement("Available=True/ResourceAvailable"))

		By("waiting for the events of the placement, which are sent asynchronously")
		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(hub.List(ctx, &events, client.InNamespace("gone-shop"))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(HaveField("Reason", "PlacementRolloutCompleted")))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone-shop"}}
		Expect(hub.Delete(ctx, namespace)).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(placement), placement) }).WithTimeout(soon).WithPolling(often).Should(
			MatchError(ContainSubstring("not found")))
		for _, list := range []client.ObjectList{&placementv1beta1.ResourceBindingList{}, &placementv1beta1.SchedulingPolicySnapshotList{}, &placementv1beta1.ResourceSnapshotList{}} {
			Eventually(func() (int, error) {
				err := hub.List(ctx, list, client.InNamespace("gone-shop"))
				return meta.LenList(list), err
			}).WithTimeout(soon).WithPolling(often).Should(BeZero())
		}
		n.mu.Lock()
		Expect(n.made).To(BeNumerically(">", 0), "the test sees created objects")
		Expect(n.refused).To(BeEmpty(), "the API server rejects new objects in such a namespace")
		n.mu.Unlock()
		Expect(n.errorsAbout("gone-shop")).To(BeEmpty())

		Expect(hub.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed(), "the finalizer kept the namespace")
		held.Finalizers = nil
		Expect(hub.Update(ctx, held)).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace) }).WithTimeout(soon).WithPolling(often).Should(
			MatchError(ContainSubstring("not found")))
	})
})
