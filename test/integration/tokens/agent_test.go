// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/rotator"
	"fleetgate.io/fleetgate/test/support/expect"
)

func hubConfigOfAgent(ctx context.Context) *rest.Config {
	GinkgoHelper()
	return first.hubConfigOfAgent(ctx)
}

// hubConfigOfAgent is the member's account on the hub: a ServiceAccount whose Role has exactly the
// rules of this feature.
func (p *place) hubConfigOfAgent(ctx context.Context) *rest.Config {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: clusterv1beta1.AgentAccount}}
	Expect(hubClient.SubResource("token").Create(ctx, account, request)).To(Succeed())
	config := rest.AnonymousClientConfig(hub.Config())
	config.BearerToken = request.Status.Token
	return readable(config)
}

func memberConfigOfAgent() *rest.Config {
	GinkgoHelper()
	return first.memberConfigOfAgent()
}

func (p *place) memberConfigOfAgent() *rest.Config {
	GinkgoHelper()
	config, err := p.cluster.ConfigFor(agentOnMember)
	Expect(err).NotTo(HaveOccurred())
	return readable(config)
}

// readable makes clients use JSON and records every token that is issued to them.
func readable(config *rest.Config) *rest.Config {
	config.ContentType = "application/json"
	config.QPS = -1
	config.Wrap(noteTokens)
	return config
}

// runningAgent is the part of an agent under test.
type runningAgent struct {
	reconciler *rotator.Reconciler
	// cache is the agent's cache of the hub.
	cache  cache.Cache
	cancel context.CancelFunc
	done   chan error
}

func startAgent(ctx context.Context, clock clock.PassiveClock) *runningAgent {
	GinkgoHelper()
	return first.startAgent(ctx, first.hubConfigOfAgent(ctx), clock)
}

// startAgent starts the rotator as the agent's command does, with changes.
func (p *place) startAgent(ctx context.Context, hubConfig *rest.Config, clock clock.PassiveClock, changes ...func(*rotator.Reconciler)) *runningAgent {
	GinkgoHelper()
	managed := labels.SelectorFromSet(labels.Set{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue})
	manager, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{p.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: managed}},
		},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	accounts, err := cluster.New(p.memberConfigOfAgent(), func(o *cluster.Options) {
		o.Scheme = scheme
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ServiceAccount{}: {
			Label: managed, Namespaces: map[string]cache.Config{p.accounts: {}},
		}}
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.Add(accounts)).To(Succeed())
	agent := &runningAgent{
		cache: manager.GetCache(),
		reconciler: &rotator.Reconciler{
			Hub: manager.GetClient(), Live: manager.GetAPIReader(), Member: expect.Client(p.memberConfigOfAgent(), scheme), MemberCache: accounts.GetCache(),
			HubNamespace: p.namespace, AccountNamespace: p.accounts, AgentNamespace: clusterv1beta1.SystemNamespace,
			MemberCA: p.ca, Clock: clock, Recorder: manager.GetEventRecorder("agent"),
		},
		done: make(chan error, 1),
	}
	for _, change := range changes {
		change(agent.reconciler)
	}
	Expect(agent.reconciler.SetupWithManager(manager)).To(Succeed())
	running, cancel := context.WithCancel(context.Background())
	agent.cancel = cancel
	go func() { agent.done <- manager.Start(running) }()
	DeferCleanup(agent.stop)
	return agent
}

func (p *place) ca() ([]byte, error) { return p.cluster.CABundle, nil }

func (a *runningAgent) stop() {
	GinkgoHelper()
	if a.cancel == nil {
		return
	}
	a.cancel()
	a.cancel = nil
	Eventually(a.done).Should(Receive(BeNil()))
	keepers.add(a.cache, a.reconciler)
}

// dyingAgent is a rotator that stops with the response to its nth request: that write persists, and
// nothing follows.
func dyingAgent(ctx context.Context, requests int32) (*rotator.Reconciler, func() bool) {
	GinkgoHelper()
	var sent atomic.Int32
	dying := func(config *rest.Config) *rest.Config {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if isDiscovery(request) {
					return next.RoundTrip(request)
				}
				number := sent.Add(1)
				if number > requests {
					return nil, errDead
				}
				response, err := next.RoundTrip(request)
				if number == requests && err == nil {
					_ = response.Body.Close()
					return nil, errDead
				}
				return response, err
			})
		})
		return config
	}
	hubOfAgent := expect.Client(dying(hubConfigOfAgent(ctx)), scheme)
	reconciler := &rotator.Reconciler{
		Hub: hubOfAgent, Live: hubOfAgent, Member: expect.Client(dying(memberConfigOfAgent()), scheme),
		HubNamespace: hubNamespace, AccountNamespace: authenticationv1beta1.AccountNamespace, AgentNamespace: clusterv1beta1.SystemNamespace,
		MemberCA: first.ca, Clock: clock.RealClock{}, Recorder: events.NewFakeRecorder(100),
	}
	return reconciler, func() bool { return sent.Load() >= requests }
}

var errDead = errors.New("killed")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func isDiscovery(request *http.Request) bool {
	switch path := request.URL.Path; path {
	case "/api", "/api/v1", "/apis":
		return true
	default:
		return len(path) > 6 && path[:6] == "/apis/" && countSlashes(path) <= 3
	}
}

func countSlashes(path string) (n int) {
	for _, c := range path {
		if c == '/' {
			n++
		}
	}
	return n
}
