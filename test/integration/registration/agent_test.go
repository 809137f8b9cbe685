// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// agent is the member's side, wired like cmd/agent.
type agent struct {
	enroller *enroll.Enroller
	// namespace is the agent's namespace on the member.
	namespace string
	collects  bool
	stop      context.CancelFunc
	running   sync.WaitGroup
	// ended is closed when the hub ended the agent's work.
	ended     chan struct{}
	endedOnce sync.Once
}

type agentOptions struct {
	namespace string
	bootstrap enroll.Source
	clientID  string
	labels    map[string]string
	wrap      func(http.RoundTripper) http.RoundTripper
	clock     clock.Clock
	// collects makes it report the member's namespaces.
	collects bool
}

func startAgent(o agentOptions) *agent {
	GinkgoHelper()
	config := member.Config()
	if o.wrap != nil {
		config.Wrap(o.wrap)
	}
	own, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	a := &agent{
		ended:     make(chan struct{}),
		namespace: o.namespace,
		collects:  o.collects,
		enroller: enroll.New(enroll.Options{
			Member: own, Namespace: o.namespace, Bootstrap: o.bootstrap, ClientID: o.clientID, Labels: o.labels, WrapHubTransport: o.wrap, Clock: o.clock,
		}),
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.running.Go(func() {
		defer GinkgoRecover()
		if err := a.enroller.Run(ctx); err != nil {
			GinkgoWriter.Println("agent ended:", err)
		}
	})
	a.running.Go(func() {
		defer GinkgoRecover()
		a.report(ctx, own)
	})
	DeferCleanup(a.end)
	return a
}

func (a *agent) report(ctx context.Context, own kubernetes.Interface) {
	config, err := a.enroller.HubConfig(ctx)
	if err != nil {
		return
	}
	name, err := a.enroller.Member(ctx)
	if err != nil {
		return
	}
	if err := a.runHeartbeat(ctx, own, config, name); err != nil && ctx.Err() == nil {
		GinkgoWriter.Println("heartbeat ended:", err)
	}
}

func (a *agent) runHeartbeat(ctx context.Context, own kubernetes.Interface, config *rest.Config, name string) error {
	mgr := newManager(config, ctrl.Options{Cache: cache.Options{
		DefaultNamespaces: map[string]cache.Config{clusterv1beta1.MemberNamespace(name): {}},
	}})
	reconciler := &heartbeat.Reconciler{
		Hub: mgr.GetClient(), Member: own, Name: name, Version: version.Get(), Clock: clock.RealClock{},
		Server: member.URL, ServerCA: func() ([]byte, error) { return member.CABundle, nil },
		Leave: func(context.Context) error {
			a.endedOnce.Do(func() { close(a.ended) })
			return nil
		},
	}
	objects, err := metadata.NewForConfig(member.Config())
	if err != nil {
		return err
	}
	reconciler.Claims = heartbeat.NewClaims(objects, clock.RealClock{})
	if err := mgr.Add(manager.RunnableFunc(reconciler.Claims.Run)); err != nil {
		return err
	}
	if a.collects {
		reconciler.Namespaces = heartbeat.NewNamespaces(objects, clock.RealClock{})
		if err := mgr.Add(manager.RunnableFunc(reconciler.Namespaces.Run)); err != nil {
			return err
		}
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// end stops the agent and waits until all of it has stopped.
func (a *agent) end() {
	a.stop()
	a.running.Wait()
}
