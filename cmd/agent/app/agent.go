// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/cmd/agent/app/options"
	"fleetgate.io/fleetgate/pkg/addon/agent/score"
	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	ocmclusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/impersonation"
	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
)

const (
	shutdownGrace     = 20 * time.Second
	memberRetry       = 2 * time.Second
	readHeaderTimeout = 10 * time.Second
)

// agent has the state that the agent's parts share.
type agent struct {
	*options.Config
	scheme *runtime.Scheme
	// direct reads and writes the member without a cache.
	direct       client.Client
	clientset    kubernetes.Interface
	enroller     identity
	tunnelStatus *tunnelStatus
	retained     prometheus.Gauge
	grants       *impersonation.Grants
	// free is counted for scores, if they are enabled.
	free score.Free
	// konnectivityMetrics are the metrics of a Konnectivity tunnel; nil without one.
	konnectivityMetrics *konnectivity.AgentMetrics
}

// identity is the agent's identity on the hub: from its own registration, or from given
// credentials.
type identity interface {
	Run(ctx context.Context) error
	Ready() error
	// Unstored is why the member does not store the current token; nil if it does.
	Unstored() error
	Member(ctx context.Context) (string, error)
	Token(ctx context.Context) (string, error)
	HubConfig(ctx context.Context) (*rest.Config, error)
	// Moved is closed when the hub's address changes; nil if it never changes.
	Moved() <-chan struct{}
	// Mover changes the hub's address; nil if the address is configured from outside.
	Mover() func(ctx context.Context, server string, ca []byte) error
	// Origin is the first URL of the hub that the agent registered with. It stays the same when the
	// hub moves, because the hub hash of ManifestWorks derives from it. It is empty before
	// registration.
	Origin() string
}

var (
	_ identity = (*enroll.Enroller)(nil)
	_ identity = (*enroll.External)(nil)
)

// Run runs the agent until the context ends. It fails only for problems that need a person. It
// retries errors of the hub and the network, and reports them at /readyz and in the log.
func Run(ctx context.Context, config *options.Config) error {
	spans, err := tracing.Config(config.Process.Tracing).Provider(ctx, "agent", config.MemberREST)
	if err != nil {
		return err
	}
	defer tracing.Stop(ctx, spans)
	a, err := newAgent(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.serveProbes(ctx) })
	group.Go(func() error {
		a.reportToDeployment(ctx)
		return nil
	})
	group.Go(func() error {
		if only, is := a.enroller.(*worksOnly); is {
			return a.serveWorksOnly(ctx, only)
		}
		if !a.prepareMember(ctx) {
			return nil
		}
		group.Go(func() error { return a.enroller.Run(ctx) })
		return a.serveHub(ctx)
	})
	return explain(group.Wait())
}

// reportToDeployment reports the registration on the agent's Deployment.
func (a *agent) reportToDeployment(ctx context.Context) {
	if a.Member.Deployment == "" {
		return
	}
	(&deploymentStatus{client: a.clientset, namespace: a.Member.Namespace, name: a.Member.Deployment, ready: a.enroller.Ready, clock: clock.RealClock{}}).run(ctx)
}

// explain adds the remedy to errors that have one.
func explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another program has this port; choose another with --metrics-bind-address or --health-probe-bind-address", err)
	}
	return err
}

func newAgent(config *options.Config) (*agent, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, authenticationv1beta1.AddToScheme,
		workv1.AddToScheme, ocmclusterv1.AddToScheme, ocmclusterv1alpha1.AddToScheme, addonv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	direct, err := client.New(config.MemberREST, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the member at %s: %w", config.MemberREST.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config.MemberREST)
	if err != nil {
		return nil, fmt.Errorf("reaching the member at %s: %w", config.MemberREST.Host, err)
	}
	tunnelStatus, err := newTunnelStatus(metrics.Registry)
	if err != nil {
		return nil, err
	}
	retained, err := newRetainedGauge(metrics.Registry)
	if err != nil {
		return nil, err
	}
	var konnectivityMetrics *konnectivity.AgentMetrics
	if config.SpeaksKonnectivity() {
		if konnectivityMetrics, err = konnectivity.NewAgentMetrics(metrics.Registry); err != nil {
			return nil, err
		}
	}
	return &agent{
		Config: config, scheme: scheme, direct: direct, clientset: clientset, enroller: newIdentity(config, clientset, tunnelStatus), tunnelStatus: tunnelStatus, retained: retained, konnectivityMetrics: konnectivityMetrics,
		grants: &impersonation.Grants{Client: direct, Member: config.MemberREST, AccountNamespace: config.Accounts.Namespace},
	}, nil
}

func newIdentity(config *options.Config, member kubernetes.Interface, tunnelStatus *tunnelStatus) identity {
	if config.DoesWorksOnly() {
		return newWorksOnly(config.Hub.MemberName, config.HubREST)
	}
	if config.HubREST != nil {
		return enroll.NewExternal(config.Hub.MemberName, config.HubREST, clock.RealClock{})
	}
	registration := enroll.Options{Member: member, Namespace: config.Member.Namespace, Missing: config.Missing, ClientID: config.Registration.ClientID, Labels: config.Registration.Labels,
		Prove: proveTunnel(config, tunnelStatus)}
	if config.Bootstrap != nil {
		registration.Bootstrap = enroll.Given(config.Bootstrap)
	}
	return enroll.New(registration)
}

// prepareMember retries until the agent's prerequisites on the member exist. It returns false when
// the context ends first.
func (a *agent) prepareMember(ctx context.Context) bool {
	report := func(reason string) {
		log.FromContext(ctx).Info("The member is not ready for the agent: "+reason, "retryEvery", memberRetry)
	}
	if !retry(ctx, memberRetry, memberRetry, report, func() error { return a.tryPrepareMember(ctx) }) {
		return false
	}
	a.offerClaims(ctx)
	return true
}

func (a *agent) tryPrepareMember(ctx context.Context) error {
	if err := a.ensureNamespace(ctx); err != nil {
		return err
	}
	return apply.EnsureCRD(ctx, a.direct)
}

// offerClaims installs the kinds of claims. The agent works without them, and the rights of an older
// chart do not suffice, so a failure is only logged.
func (a *agent) offerClaims(ctx context.Context) {
	if err := definitions.EnsureClaims(ctx, a.direct); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Info("ClusterClaims and ClusterProperties cannot be installed on this member; the agent reads them if others install them", "reason", err.Error())
	}
}

// ensureNamespace creates the agent's namespace for an agent outside the member. In a Pod the
// namespace exists, and the agent does not need the right to create namespaces.
func (a *agent) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Member.Namespace}}
	err := a.direct.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(a.direct.Create(ctx, namespace))
	}
	if err != nil {
		return fmt.Errorf("making namespace %s at %s: %w", a.Member.Namespace, a.MemberREST.Host, err)
	}
	return nil
}

// tunnelURL authorizes the tunnel by a right in the namespace. Without a namespace, it is the path
// of the gateway's own port, or of a right on the whole hub.
func tunnelURL(hub, member, namespace string) string {
	return strings.TrimSuffix(hub, "/") + tunnelv1alpha1.PathOf(member, namespace)
}

// addressOf returns the host and port of a server's URL.
func addressOf(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Hostname() == "" {
		return "", fmt.Errorf("the member's API server %q is not a URL", server)
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(parsed.Hostname(), port), nil
}

// serve runs an HTTP server on a listener until the context ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}

// ignoreEnd drops errors that the shutdown causes.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		//lint:ignore nilerr The shutdown caused the error.
		return nil
	}
	return err
}
