// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/leak"
)

var (
	// issued are all tokens that any API server issued, and those that specs forged.
	issued sync.Map
	// failures are the rejections of API servers, and the errors that components derive from them.
	failures = &logBuffer{}
	// keepers are caches whose keys are inspected at the end.
	keepers keeperList
)

// ours are the packages with caches that handle tokens.
var ours = []string{"fleetgate.io/fleetgate/", "sigs.k8s.io/controller-runtime/pkg/cache", "k8s.io/client-go/tools/cache"}

type keeperList struct {
	lock sync.Mutex
	all  []any
}

func (k *keeperList) add(values ...any) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.all = append(k.all, values...)
}

func (k *keeperList) keys() string {
	k.lock.Lock()
	defer k.lock.Unlock()
	return leak.Keys(ours, k.all...)
}

// noted records an error for the search and returns it.
func noted(err error) error {
	if err != nil {
		fmt.Fprintln(failures, err)
	}
	return err
}

// noteTokens records issued tokens and rejected requests.
func noteTokens(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, noted(err)
		}
		isIssue := request.Method == http.MethodPost && path.Base(request.URL.Path) == "token"
		if !isIssue && response.StatusCode < http.StatusBadRequest {
			return response, nil
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		if response.StatusCode >= http.StatusBadRequest {
			_, err := failures.Write(append(body, '\n'))
			return response, err
		}
		var answer struct{ Status struct{ Token string } }
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, err
		}
		issued.Store(answer.Status.Token, nil)
		return response, nil
	})
}

// haystack lists everything that must not contain a token.
var haystack = map[string]func(context.Context) string{
	"log":       func(context.Context) string { return written.String() },
	"error":     func(context.Context) string { return failures.String() },
	"object":    everythingButSecrets,
	"metric":    everyMetric,
	"cache key": func(context.Context) string { return keepers.keys() },
}

// everythingButSecrets returns all objects of the hub and the members of the kinds that any
// component writes, as JSON, including status and events.
func everythingButSecrets(ctx context.Context) string {
	GinkgoHelper()
	var all strings.Builder
	for _, cluster := range []*rest.Config{hub.Config(), first.cluster.Config(), second.cluster.Config()} {
		c := expect.Client(cluster, scheme)
		for _, list := range []client.ObjectList{
			&authenticationv1beta1.ManagedServiceAccountList{}, &clusterv1beta1.MemberClusterList{}, &eventsv1.EventList{}, &corev1.ServiceAccountList{},
			&corev1.ConfigMapList{}, &corev1.NamespaceList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{},
		} {
			if err := c.List(ctx, list); meta.IsNoMatchError(err) {
				continue // members lack the hub's kinds
			} else {
				Expect(err).NotTo(HaveOccurred())
			}
			text, err := json.Marshal(list)
			Expect(err).NotTo(HaveOccurred())
			all.Write(text)
		}
	}
	return all.String()
}

// everyMetric returns this process' response to /metrics.
func everyMetric(context.Context) string {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var all strings.Builder
	for _, family := range families {
		all.WriteString(family.String() + "\n")
	}
	return all.String()
}

// AfterSuite searches for every token of the run, whatever specs ran, after all components stopped.
var _ = AfterSuite(func(ctx SpecContext) {
	if second == nil {
		return // the suite did not start
	}
	var tokens []string
	issued.Range(func(token, _ any) bool {
		tokens = append(tokens, token.(string))
		return true
	})
	for kind, read := range haystack {
		text := read(ctx)
		GinkgoWriter.Printf("Looking for %d tokens in %d bytes of kind %s\n", len(tokens), len(text), kind)
		Expect(leak.Search(text, tokens...)).To(BeEmpty(), "a token is in a %s", kind)
	}
})

var _ = Describe("The search for leaked tokens", func() {
	// planted has the form of a token and occurs nowhere else.
	planted := func() string { return "header.payload." + rand.String(60) }

	DescribeTable("finds one in", func(ctx SpecContext, kind string, plant func(ctx SpecContext, token string)) {
		token := planted()
		Expect(leak.Search(haystack[kind](ctx), token)).To(BeEmpty())
		plant(ctx, token)
		Expect(leak.Search(haystack[kind](ctx), token)).To(Equal([]int{0}))
	},
		Entry("a log", "log", func(_ SpecContext, token string) {
			klog.Background().Info("planted", "secret", map[string][]byte{"token": []byte(token)})
		}),
		Entry("an event", "object", func(ctx SpecContext, token string) {
			Expect(hubClient.Create(ctx, &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, GenerateName: "planted-"}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal,
				Action: "Plant", Reason: "Planted", ReportingController: "test", ReportingInstance: "test", Note: "the token is " + token,
				Regarding: corev1.ObjectReference{Kind: "Namespace", Namespace: hubNamespace, Name: hubNamespace},
			})).To(Succeed())
		}),
		Entry("a status", "object", func(ctx SpecContext, token string) {
			account := askFor(ctx, "planted-status", authenticationv1beta1.MinValidity)
			base := account.DeepCopy()
			meta.SetStatusCondition(&account.Status.Conditions, metav1.Condition{Type: "Planted", Status: metav1.ConditionTrue, Reason: "Planted", Message: token})
			Expect(hubClient.Status().Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
		}),
		Entry("a metric", "metric", func(_ SpecContext, token string) {
			counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "planted_total"}, []string{"token"})
			Expect(metrics.Registry.Register(counter)).To(Succeed())
			DeferCleanup(func() { metrics.Registry.Unregister(counter) })
			counter.WithLabelValues(token).Inc()
		}),
		Entry("an error of an API server", "error", func(ctx SpecContext, token string) {
			err := expect.Client(readable(hub.Config()), scheme).Get(ctx, client.ObjectKey{Namespace: hubNamespace, Name: token}, &corev1.Secret{})
			Expect(err).To(MatchError(ContainSubstring(token)))
		}),
		Entry("a cache key", "cache key", func(_ SpecContext, token string) {
			keepers.add(map[struct{ member, token string }]bool{{memberName, token}: true})
		}),
	)
})
