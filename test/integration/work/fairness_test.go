// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// requests counts the requests of a client, except watches and discovery.
type requests struct {
	next http.RoundTripper

	mu   sync.Mutex // guards seen
	seen []string
}

// count wraps a configuration.
func count(config *rest.Config) (*rest.Config, *requests) {
	r := &requests{}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	return counted, r
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	isObject := strings.Count(request.URL.Path, "/") > 3 && request.URL.Query().Get("watch") == "" &&
		request.URL.Query().Get("resourceVersion") == "" && !strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata")
	if isObject {
		r.mu.Lock()
		r.seen = append(r.seen, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

// since returns the requests after the first n.
func (r *requests) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.seen[n:]...)
}

func (r *requests) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

var _ = Describe("Requests to the member", func() {
	It("are none for an unchanged Work and two for a correction", func(ctx SpecContext) {
		config, asked := count(member.Config())
		agent.Stop()
		agent = startAgent(config)
		DeferCleanup(restartAgent)
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "quiet", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "quiet")).Should(beDone())
		path := "/api/v1/namespaces/" + ns + "/configmaps/a"

		By("reconciling it often for fields that no manifest has")
		settled := 0
		Eventually(func() bool { // until the watch has delivered all writes
			before := settled
			settled = asked.len()
			return before == settled
		}).WithPolling(time.Second).Should(BeTrue())
		for i := range 5 {
			status := fmt.Sprintf(`, "status": {"look": %d}}`, i)
			changeWork(ctx, "quiet", strings.TrimSuffix(build.ConfigMapText(ns, "a", "x", "1"), "}")+status, build.ConfigMapText(ns, "b", "x", "1"))
			Eventually(reported(ctx, "quiet")).Should(beDone())
		}
		Expect(asked.since(settled)).To(BeEmpty())

		By("correcting it")
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}))
		Consistently(func() []string { return asked.since(settled) }).Should(HaveExactElements("GET "+path, "PATCH "+path))
	})
})

var _ = Describe("Works that fail", func() {
	It("do not delay others, not even when a webhook does not answer", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		webhook := guard(ctx, ns)
		const stuck = 24 // three times as many as the agent has workers
		for i := range stuck {
			createWork(ctx, fmt.Sprintf("stuck-%d", i), nil, build.ConfigMapText(ns, fmt.Sprintf("stuck-%d", i)))
		}
		for i := range stuck {
			Eventually(reported(ctx, fmt.Sprintf("stuck-%d", i))).Should(beRefused())
		}

		By("answering none of the retries")
		webhook.hold()
		DeferCleanup(webhook.release)
		Eventually(webhook.held.Load).Should(BeNumerically(">=", 4), "half of the workers wait")
		other := expect.FreshNamespace(ctx, memberClient)
		for i := range 20 {
			name := fmt.Sprintf("not-stuck-%d", i)
			createWork(ctx, name, nil, build.ConfigMapText(other, name))
			Eventually(reported(ctx, name)).Should(beDone())
		}
		Expect(webhook.most.Load()).To(BeNumerically("<", 8), "workers remained for the others")

		By("doing the same after a restart of the agent")
		agent.Stop()
		Eventually(webhook.held.Load).Should(BeZero())
		agent = startAgent(member.Config())
		Eventually(webhook.held.Load).Should(BeNumerically(">=", 4), "half of the workers wait")
		createWork(ctx, "not-stuck-again", nil, build.ConfigMapText(other, "again"))
		Eventually(reported(ctx, "not-stuck-again")).Should(beDone())
		Expect(webhook.most.Load()).To(BeNumerically("<", 8), "workers remained for the others")
	})
})

// webhook rejects all requests, or does not answer.
type webhook struct {
	held, most atomic.Int32  // waiting requests, present and maximum
	holding    chan struct{} // closed while requests wait
	released   chan struct{} // closed when they are released
}

func (w *webhook) hold()    { close(w.holding) }
func (w *webhook) release() { close(w.released) }

func (w *webhook) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(answer, "not a review", http.StatusBadRequest)
		return
	}
	select {
	case <-w.holding:
		w.wait(request.Context())
	default:
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not here"}}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(review)
}

func (w *webhook) wait(ctx context.Context) {
	now := w.held.Add(1)
	defer w.held.Add(-1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	select {
	case <-ctx.Done():
	case <-w.released:
	}
}

// guard registers a webhook for ConfigMaps that are created in a namespace.
func guard(ctx context.Context, namespace string) *webhook {
	GinkgoHelper()
	w := &webhook{holding: make(chan struct{}), released: make(chan struct{})}
	server := httptest.NewTLSServer(w)
	DeferCleanup(server.Close)
	sideEffects := admissionregistrationv1.SideEffectClassNone
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			TimeoutSeconds:          ptr.To[int32](30),
			SideEffects:             &sideEffects,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	Expect(memberClient.Create(ctx, configuration)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, configuration)).To(Succeed()) })
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}
	Eventually(func() error { return memberClient.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).
		Should(MatchError(ContainSubstring("not here")), "the member calls the webhook")
	return w
}
