// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/cluster/hub/azurefleet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/cluster/hub/profile"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
)

// gateway is the hub's side, wired like cmd/gateway.
type gateway struct {
	stop context.CancelFunc
	done chan struct{}
}

// usual is the gateway of specs without options, nil if none runs. Specs share it, because a start
// takes longer than most specs.
var usual *gateway

type gatewayOptions struct {
	config          *rest.Config
	forceDeleteWait time.Duration
	silence         time.Duration
	// namespaces are the namespaces in which clusters can register; none means all.
	namespaces []string
	clock      clock.PassiveClock
	// defaults are the permissions of tokens without annotations.
	defaults registration.Defaults
	labels   registration.LabelRule
	// level is the priority level of agents, if there is one.
	level string
	// tokenClock is the clock of registration tokens; none means the real one.
	tokenClock clock.PassiveClock
}

// startGateway makes sure that this gateway runs, and no other.
func startGateway(o gatewayOptions) *gateway {
	GinkgoHelper()
	isUsual := reflect.ValueOf(o).IsZero()
	if isUsual && usual.isRunning() {
		return usual
	}
	endUsualGateway()
	g := startAnother(o)
	if isUsual {
		usual = g
	} else {
		DeferCleanup(g.end)
	}
	return g
}

func endUsualGateway() {
	if usual != nil {
		usual.end()
	}
}

func startAnother(o gatewayOptions) *gateway {
	GinkgoHelper()
	if o.config == nil {
		o.config = hub.Config()
	}
	if o.clock == nil {
		o.clock = clock.RealClock{}
	}
	if o.tokenClock == nil {
		o.tokenClock = clock.RealClock{}
	}
	mgr := newManager(o.config, ctrl.Options{})
	members, err := membership.NewMemberCache(o.config, cache.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(members)).To(Succeed())
	type controller interface{ SetupWithManager(ctrl.Manager) error }
	var flows []controller
	if o.level != "" {
		flows = append(flows, &membership.FlowReconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Level: o.level})
	}
	for _, r := range append(flows,
		&membership.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Secrets: members,
			Recorder: mgr.GetEventRecorder(membership.EventSource),
			Rules:    memberRules, ClusterRules: clusterRules, Seats: identity.FleetSeats(),
			Orders:          []schema.GroupVersionKind{placementv1beta1.GroupVersion.WithKind("Work")},
			ForceDeleteWait: o.forceDeleteWait,
		},
		&membership.StatusReconciler{
			Client: mgr.GetClient(), Seats: identity.FleetSeats(), Leases: members, Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder(membership.EventSource),
			Silence: o.silence, TaintUnreachable: o.silence > 0,
		},
		&registration.TokenReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: o.tokenClock,
			Hub: registration.Endpoint{URL: hub.URL, CA: hub.CABundle}, Namespaces: o.namespaces, Defaults: o.defaults,
		},
		&registration.GrantReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: o.clock, Secrets: members, Namespaces: o.namespaces,
			Defaults: o.defaults, Labels: o.labels, Concurrency: 4,
		},
		&registration.ClusterReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder(membership.EventSource), Labels: o.labels,
			Bundles: true,
		},
		&registration.GroupReconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}},
		&profile.Reconciler{Client: mgr.GetClient(), Namespace: clusterv1beta1.SystemNamespace, HubURL: hub.URL, HubCA: hub.CABundle},
		&azurefleet.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(azurefleet.EventSource)},
		&importer.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, HubURL: hub.URL, HubCA: hub.CABundle, Chart: agentChart(), Image: "agent:test",
		},
		&clusterapi.Importer{
			Config: o.config, CacheOptions: cache.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()},
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clusters: mgr.GetCache(), Recorder: mgr.GetEventRecorder(membership.EventSource),
			Namespaces: o.namespaces, Labels: clusterapi.DefaultLabels(),
		},
	) {
		Expect(r.SetupWithManager(mgr)).To(Succeed())
	}
	g := &gateway{done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	go func() {
		defer GinkgoRecover()
		defer close(g.done)
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			GinkgoWriter.Println("gateway ended:", err)
		}
	}()
	return g
}

func (g *gateway) isRunning() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.done:
		return false
	default:
		return true
	}
}

// end stops the gateway and waits until all of it has stopped.
func (g *gateway) end() {
	g.stop()
	<-g.done
	if g == usual {
		usual = nil
	}
}

func newManager(cfg *rest.Config, o ctrl.Options) ctrl.Manager {
	GinkgoHelper()
	o.Scheme = scheme
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.Controller = config.Controller{SkipNameValidation: ptr.To(true)}
	o.GracefulShutdownTimeout = ptr.To(5 * time.Second)
	mgr, err := ctrl.NewManager(cfg, o)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// memberRules are those of cmd/gateway.
func memberRules(name string) []rbacv1.PolicyRule {
	return slices.Concat(enroll.HubRules(name), heartbeat.HubRules(name), apply.HubRules(name), credentials.HubRules(name), clusterRules(name))
}

func clusterRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"tunnel.fleetgate.io"}, Resources: []string{"tunnels/proxy"}, ResourceNames: []string{name}, Verbs: []string{"create"},
	}}
}

var errCrashed = errors.New("crashed")

// crash simulates a killed process: the server executes its nth write, but the process gets no answer
// and sends nothing afterwards. After a restart a process finds only what was written until then.
type crash struct {
	at int64
	// about limits a crash to requests with one of these strings in the path or body: the process is
	// dead for them, and continues for others. Without strings it is dead for all.
	about  []string
	writes atomic.Int64
	dead   chan struct{}
}

func newCrash(at int, about ...string) *crash {
	return &crash{at: int64(at), about: about, dead: make(chan struct{})}
}

// configOf is the configuration of a process that will be killed, by the first crash that a request
// concerns.
func configOf(crashes ...*crash) *rest.Config {
	config := hub.Config()
	for _, c := range crashes {
		config.Wrap(c.wrap)
	}
	return config
}

func (c *crash) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if !c.concerns(request) {
			return next.RoundTrip(request)
		}
		n, counts := c.writes.Load(), isStep(request)
		if counts {
			n = c.writes.Add(1)
		}
		if n < c.at {
			return next.RoundTrip(request)
		}
		if n == c.at && counts {
			if response, err := next.RoundTrip(request); err == nil {
				_ = response.Body.Close()
			}
			GinkgoWriter.Println("killed after", request.Method, request.URL.Path)
			close(c.dead)
		}
		return nil, errCrashed
	})
}

func (c *crash) concerns(request *http.Request) bool {
	if len(c.about) == 0 {
		return true
	}
	said := request.URL.Path
	if request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			carried, _ := io.ReadAll(body)
			said += string(carried)
		}
	}
	return slices.ContainsFunc(c.about, func(name string) bool { return strings.Contains(said, name) })
}

// isStep excludes requests that are no step of registration.
func isStep(request *http.Request) bool {
	return request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/events")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
