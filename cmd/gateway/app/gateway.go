// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/cmd/gateway/app/scheme"
	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/cluster"
	"fleetgate.io/fleetgate/pkg/cluster/azurefleet"
	"fleetgate.io/fleetgate/pkg/cluster/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/heartbeat"
	"fleetgate.io/fleetgate/pkg/cluster/importer"
	"fleetgate.io/fleetgate/pkg/cluster/membership"
	"fleetgate.io/fleetgate/pkg/cluster/profile"
	"fleetgate.io/fleetgate/pkg/cluster/registration"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
	"fleetgate.io/fleetgate/pkg/serviceaccount"
	"fleetgate.io/fleetgate/pkg/serviceaccount/argocd"
	"fleetgate.io/fleetgate/pkg/serviceaccount/expiry"
	"fleetgate.io/fleetgate/pkg/serviceaccount/mirror"
	"fleetgate.io/fleetgate/pkg/tracing"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/version"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/pkg/work/apply"
)

const (
	// shutdownGrace is how long requests and reconciles under way may take to end.
	shutdownGrace = 25 * time.Second
	// streamDrain is how much of it streams get that cannot be resumed, in tunnels and to
	// callers.
	streamDrain = 20 * time.Second
	// memberWorkers is how many members are joined, and registrations answered, at
	// the same time: most of the time they wait for the hub's API server.
	memberWorkers = 16
	// servingCheck is how often the leader looks whether what leads to the gateway is still right.
	servingCheck = 30 * time.Second
)

// gateway is everything that the parts share.
type gateway struct {
	*options.Config
	scheme *runtime.Scheme
	// direct reads and writes the hub without a cache.
	direct       client.Client
	clientset    kubernetes.Interface
	certificates *serving.Certificates
	installer    *install.Installer
	handover     *intake.Handover
	// handedOver is true once configurations may send reviews with proof.
	handedOver atomic.Bool
	manager    ctrl.Manager
	// members holds what the hub made for members.
	members cache.Cache
	// policies are the ImmutabilityPolicies, compiled; nil where there are none.
	policies *immutability.Policies
	spans    trace.TracerProvider
}

// Run runs the gateway until the context ends, or fails with a sentence that
// says what is in the way.
func Run(ctx context.Context, config *options.Config) error {
	spans, err := config.Process.Tracing.Provider(ctx, "gateway", config.REST)
	if err != nil {
		return err
	}
	g, err := newGateway(config)
	if err != nil {
		return err
	}
	g.spans = spans
	defer tracing.Stop(ctx, spans)
	if err := g.prepareHub(ctx); err != nil {
		return err
	}
	if g.manager, err = g.newManager(ctx); err != nil {
		return err
	}
	for _, add := range []func(context.Context) error{
		g.addServing,
		g.addWebhooks,
		g.addMembers,
		g.addPolicies,
		g.addProxy,
		g.addLeader,
	} {
		if err := add(ctx); err != nil {
			return explain(err)
		}
	}
	return explain(g.manager.Start(ctx))
}

// explain adds the remedy to errors that have one.
func explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another program has this port; choose another with --secure-port, --webhook-port, --metrics-bind-address or --health-probe-bind-address", err)
	}
	return err
}

func newGateway(config *options.Config) (*gateway, error) {
	scheme, err := scheme.New()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.REST.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.REST.Host, err)
	}
	g := &gateway{Config: config, scheme: scheme, direct: direct, clientset: clientset}
	g.certificates = g.newCertificates()
	g.handover = g.newHandover()
	g.installer, err = g.newInstaller()
	return g, err
}

// newCertificates serves what the hub's API server asks the Service for, and what
// clients of the gateway's own endpoint call it.
func (g *gateway) newCertificates() *serving.Certificates {
	service := g.Serving.Service + "." + g.Hub.Namespace + ".svc"
	names := slices.Concat([]string{service, service + ".cluster.local", "localhost"}, g.Serving.EndpointNames, g.konnectivityNames())
	switch g.Serving.Certificates {
	case options.CertificatesFiles:
		return serving.FromFiles(g.Serving.CertFile, g.Serving.KeyFile, g.Serving.CAFile)
	case options.CertificatesCertManager:
		return serving.FromCertManager(g.direct, g.Hub.Namespace, names)
	default:
		return serving.FromAuthority(g.direct, g.Hub.Namespace, names)
	}
}

// newInstaller says what belongs on the hub for the chosen APIs.
func (g *gateway) newInstaller() (*install.Installer, error) {
	groups := map[string][]string{
		options.APIFleet:     {clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupVersion.Group},
		options.APIRancher:   {registrationv1alpha1.GroupVersion.Group},
		options.APIMSA:       {msav1beta1.GroupVersion.Group},
		options.APIProfile:   {multiclusterv1alpha1.GroupVersion.Group},
		options.APIAdmission: {admissionv1alpha1.GroupVersion.Group},
		options.APIAzure:     {azurefleetv1alpha1.GroupVersion.Group},
	}
	var chosen []string
	for _, api := range g.Parts.APIs {
		chosen = append(chosen, groups[api]...)
	}
	definitions, err := crds.ForHub(chosen...)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	installer := &install.Installer{
		Client:      g.direct,
		Definitions: definitions,
		Hub: install.Hub{
			Namespace: g.Hub.Namespace, Service: g.Serving.Service, ExternalName: g.Install.ExternalName, APIPort: int32(g.Serving.SecurePort),
		},
		Version: version.Get(),
		Adopt:   g.Install.Adopt,
		Clock:   clock.RealClock{},
	}
	if g.Parts.ServesProxy() {
		installer.APIs = []install.GroupVersion{
			{Group: gatewayv1alpha1.GroupVersion.Group, Version: gatewayv1alpha1.GroupVersion.Version},
			{Group: tunnelv1alpha1.GroupVersion.Group, Version: tunnelv1alpha1.GroupVersion.Version},
		}
	}
	switch {
	case !g.Parts.TakesReviews():
	case g.Reviews.Caller == options.CallerCertificate:
		installer.Obsolete = append(installer.Obsolete, g.reviewsAPI().APIService())
	default:
		installer.APIs = append(installer.APIs, g.reviewsAPI())
	}
	return installer, nil
}

// prepareHub returns when every kind that the gateway works with is served.
func (g *gateway) prepareHub(ctx context.Context) error {
	if !g.Install.Enabled {
		return g.installer.WaitForDefinitions(ctx)
	}
	if err := g.installer.InstallBase(ctx); err != nil {
		return err
	}
	return install.Exclusively(ctx, g.clientset, g.Hub.Namespace, identity(), g.installer.InstallDefinitions)
}

// identity tells this process from every other, also on the same machine.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return host + "_" + string(uuid.NewUUID())
}

func (g *gateway) newManager(ctx context.Context) (ctrl.Manager, error) {
	settings := g.managerOptions(shutdownGrace)
	settings.Metrics.BindAddress = g.Process.Metrics
	settings.HealthProbeBindAddress, settings.LivenessEndpointName = g.Process.HealthProbes, "/livez"
	if g.Parts.TakesReviews() {
		server, err := g.newIntake(ctx)
		if err != nil {
			return nil, err
		}
		settings.WebhookServer = server
	}
	mgr, err := ctrl.NewManager(g.REST, settings)
	if err != nil {
		return nil, explain(fmt.Errorf("setting up the gateway: %w", err))
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

// managerOptions are those of every manager; it serves nothing.
func (g *gateway) managerOptions(grace time.Duration) ctrl.Options {
	return ctrl.Options{
		Scheme:                  g.scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &grace,
		Cache:                   cache.Options{ByObject: dispatch.CacheOptions()},
		Client: client.Options{Cache: &client.CacheOptions{
			// Secrets are never cached as a whole: a typed read would start a watch
			// on every Secret of the hub.
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
	}
}

// addServing keeps the certificate current.
func (g *gateway) addServing(context.Context) error {
	if !g.Parts.Runs(options.ComponentProxy) && !g.Parts.Runs(options.ComponentWebhook) {
		return nil
	}
	if err := g.manager.Add(g.certificates); err != nil {
		return err
	}
	return g.manager.AddReadyzCheck("serving-certificate", func(*http.Request) error {
		_, err := g.certificates.GetCertificate(nil)
		return err
	})
}

// addInstall keeps what leads the hub's API server to the gateway as it should be.
func (g *gateway) addInstall(_ context.Context, mgr ctrl.Manager) error {
	if !g.Install.Enabled || !g.Parts.Runs(options.ComponentProxy) && !g.Parts.Runs(options.ComponentWebhook) {
		return nil
	}
	return mgr.Add(manager.RunnableFunc(g.keepServingInstalled))
}

// keepServingInstalled runs in the leader.
func (g *gateway) keepServingInstalled(ctx context.Context) error {
	self, err := g.whoAmI(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	parameters := g.policyParameters(self)
	g.installer.Obsolete = append(g.installer.Obsolete, policies.GuardRails(g.Install.GuardRails).Obsolete(parameters)...)
	g.installer.Obsolete = append(g.installer.Obsolete, policies.ConfirmDelete(g.Install.ConfirmDelete).Obsolete()...)
	if self.administrator {
		log.FromContext(ctx).Info("The gateway runs as an administrator: no policy limits its account; give it one of its own", "user", self.name)
		g.installer.Obsolete = append(g.installer.Obsolete, policies.Gateway(parameters)...)
	}
	retries, installed := servingRetries(), false
	for {
		next := servingCheck
		var foreign *install.ForeignObjectError
		switch err := g.installServing(ctx, self); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			retries, installed = servingRetries(), true
		case errors.As(err, &foreign) && !installed:
			// The hub is another product's: nothing has been written, and nothing will be.
			return err
		default:
			// What people have done to our objects does not end what works.
			next = retries.Step()
			log.FromContext(ctx).Error(err, "What leads to the gateway is not as it should be; trying again", "in", next)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		case <-g.certificates.BundleChanged():
		}
	}
}

// servingRetries is how long to wait after each failure: at most about as long as between two
// looks.
func servingRetries() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: servingCheck}
}

func (g *gateway) installServing(ctx context.Context, self account) error {
	ca, err := g.certificates.CABundle(ctx)
	if err != nil {
		return err
	}
	reviews, err := g.reviewsEndpoint(ctx)
	if err != nil {
		return err
	}
	g.installer.Hub.CABundle = ca
	g.installer.Extra = g.admission(reviews, self)
	if err := g.installer.InstallServing(ctx); err != nil {
		return fmt.Errorf("installing what leads to the gateway: %w", err)
	}
	return nil
}

// account is whom the hub's API server takes the gateway for. Policies name it.
type account struct {
	name string
	// administrator is true if it may do everything: then it is not the gateway's own,
	// and to limit it would limit a person.
	administrator bool
}

func (g *gateway) whoAmI(ctx context.Context) (account, error) {
	self := &authenticationv1.SelfSubjectReview{}
	if err := g.direct.Create(ctx, self); err != nil {
		return account{}, fmt.Errorf("asking the hub who the gateway is: %w", err)
	}
	everything := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	if err := g.direct.Create(ctx, everything); err != nil {
		return account{}, fmt.Errorf("asking the hub what the gateway may do: %w", err)
	}
	return account{name: self.Status.UserInfo.Username, administrator: everything.Status.Allowed}, nil
}

// policyParameters are what the policies say of this gateway.
func (g *gateway) policyParameters(self account) policies.Parameters {
	return policies.Parameters{
		TokenLifetime: g.Members.AgentTokenLifetime, GatewayUser: self.name, GatewayNamespace: g.Hub.Namespace,
		ArgoCD: g.argoCDAccount(), ConfirmDeleteMembers: g.Install.ConfirmDeleteMembers,
	}
}

// admission returns the policies and webhook configurations of the chosen parts.
func (g *gateway) admission(reviews webhook.Endpoint, self account) []client.Object {
	parameters := g.policyParameters(self)
	objects := slices.Concat(policies.Members(parameters), policies.MemberBounds(), policies.ServiceAccounts(), policies.Registration())
	if !self.administrator {
		objects = append(objects, policies.Gateway(parameters)...)
	}
	if g.Parts.Serves(options.APIFleet) {
		objects = append(objects, policies.GuardRails(g.Install.GuardRails).Of(parameters)...)
		objects = append(objects, policies.ConfirmDelete(g.Install.ConfirmDelete).Of(parameters)...)
		objects = slices.Concat(objects, policies.HelmCharts(), policies.Deliveries(parameters), policies.Authors())
	}
	if g.Parts.Runs(options.ComponentWebhook) && g.Parts.Serves(options.APIFleet) {
		reviews.TrustAuthors = g.Placement.TrustsAuthors()
		objects = append(objects, webhook.Configurations(reviews)...)
	}
	return objects
}

func (g *gateway) addWebhooks(ctx context.Context) error {
	if g.Placement.TrustsAuthors() && g.Parts.Serves(options.APIFleet) {
		log.FromContext(ctx).Info("With --authorize-authors=off nobody is asked whether the authors of placements and overrides may have delivered what these select")
	}
	if !g.Parts.Runs(options.ComponentWebhook) || !g.Parts.Serves(options.APIFleet) {
		return nil
	}
	if err := webhook.Register(g.manager, g.Placement.TrustsAuthors()); err != nil {
		return err
	}
	started := g.manager.GetWebhookServer().StartedChecker()
	return g.manager.AddReadyzCheck("webhooks", func(req *http.Request) error {
		if _, err := g.certificates.GetCertificate(nil); err != nil {
			return err
		}
		return started(req)
	})
}

// addProxy serves the aggregated APIs, and takes the tunnels of agents.
func (g *gateway) addProxy(context.Context) error {
	if !g.Parts.ServesProxy() {
		return nil
	}
	parts, err := g.newTunnels()
	if err != nil {
		return err
	}
	registry := parts.registry
	if err := g.addKonnectivity(parts); err != nil {
		return err
	}
	credentials := serviceaccount.NewCredentials(g.clientset)
	if err := g.manager.Add(credentials); err != nil {
		return err
	}
	members := clustergateway.NewMembers()
	members.OnGone(parts.disconnect)
	credentials.Changed = members.SetCredential
	config := apiserver.Config{
		Hub:         g.REST,
		Address:     net.JoinHostPort(g.Serving.BindAddress, strconv.Itoa(g.Serving.SecurePort)),
		Certificate: g.certificates,
		Members:     members,
		Credentials: clustergateway.CredentialsFunc(func(member string) (clustergateway.Credential, error) {
			credential, err := credentials.Credential(member)
			return clustergateway.Credential(credential), err
		}),
		Dialer:       proxyDialer{registry},
		NotConnected: tunnel.ErrNotConnected,
		Expected:     registry.Expected,
		Tunnels:      registry.UpgradeHandler,
		MembersOf:    parts.members.MembersOf,
		Connected:    registry.Reachable,
		Metrics:      metrics.Registry,
		Spans:        g.spans,

		AuthorizeInner:       g.Proxy.AuthorizeInner,
		AuditPolicyFile:      g.Proxy.AuditPolicyFile,
		AuditLogPath:         g.Proxy.AuditLogPath,
		MaxInFlightPerMember: g.Proxy.MaxInFlightPerMember,
		MaxInFlightPerUser:   g.Proxy.MaxInFlightPerUser,
		MaxLongPerMember:     g.Proxy.MaxLongPerMember,
		MaxLongPerUser:       g.Proxy.MaxLongPerUser,
		DrainTime:            streamDrain,
	}
	if g.Proxy.AuditRequests {
		config.Recorder = clustergateway.LogRecords
	}
	serving := make(chan struct{})
	config.OnServing = func() { close(serving) }
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	if err := g.manager.AddReadyzCheck("api", onceClosed(serving, "the way into members does not take requests yet")); err != nil {
		return err
	}
	if err := g.manager.AddReadyzCheck("agents-port", g.portReady(parts.port)); err != nil {
		return err
	}
	return g.manager.Add(everywhere(func(ctx context.Context) error {
		defer close(parts.drained)
		return g.serveAPI(ctx, completed, members, credentials, parts)
	}))
}

// serveAPI runs the API server once it can answer: with a certificate, the
// inventory and the credentials that are there.
func (g *gateway) serveAPI(ctx context.Context, config apiserver.CompletedConfig, members *clustergateway.Members,
	credentials *serviceaccount.Credentials, parts *tunnelParts) error {
	informer, err := g.manager.GetCache().GetInformer(ctx, &clusterv1beta1.MemberCluster{})
	if err != nil {
		return fmt.Errorf("watching MemberClusters: %w", err)
	}
	known, stop, err := members.Follow(informer)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	if err := endOnNewIdentity(informer, parts.disconnect); err != nil {
		return err
	}
	if err := g.certificates.WaitForFirst(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-credentials.Synced():
	}
	// Who asks for a member that is not known yet would hear that there is none.
	if !toolscache.WaitForCacheSync(ctx.Done(), known) {
		return nil
	}
	server, err := config.New(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	var group errgroup.Group
	serving, stopped := context.WithCancel(ctx)
	group.Go(func() error {
		defer stopped()
		return server.Run(ctx)
	})
	// Agents go elsewhere at once; what goes through their tunnels to this replica has as
	// long to end as what goes through the server.
	group.Go(func() error {
		<-serving.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), streamDrain)
		defer cancel()
		return parts.registry.Close(drain)
	})
	return group.Wait()
}

// onceClosed is a check that passes when done is closed, and says why it does not before.
func onceClosed(done <-chan struct{}, otherwise string) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-done:
			return nil
		default:
			return errors.New(otherwise)
		}
	}
}

// ignoreEnd drops the errors that come of stopping.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// addMembers caches what proxy and controllers need of members in every replica.
func (g *gateway) addMembers(context.Context) error {
	var err error
	if g.members, err = membership.NewMemberCache(g.REST, cache.Options{Scheme: g.scheme, Mapper: g.manager.GetRESTMapper()}); err != nil {
		return err
	}
	return g.manager.Add(g.members)
}

// addMembership joins clusters, and gives the gateway an account on each.
func (g *gateway) addMembership(_ context.Context, mgr ctrl.Manager) error {
	if !g.Parts.Runs(options.ComponentControllers) {
		return nil
	}
	hub, live := mgr.GetClient(), mgr.GetAPIReader()
	recorder := mgr.GetEventRecorder(membership.EventSource)
	var controllers []controller
	if g.Parts.Serves(options.APIFleet) {
		controllers = append(controllers,
			&membership.Reconciler{
				Client: hub, Live: live, Recorder: recorder, Clock: clock.RealClock{}, Seats: cluster.FleetSeats(),
				Orders: []schema.GroupVersionKind{placementv1beta1.GroupVersion.WithKind("Work")},
				Rules:  memberRules, ClusterRules: tunnelRules, ForceDeleteWait: g.Members.ForceDeleteWait,
				AgentTokenLifetime: g.Members.AgentTokenLifetime, Secrets: g.members, Concurrency: memberWorkers,
			},
			&membership.StatusReconciler{
				Client: hub, Seats: cluster.FleetSeats(), Leases: g.members, Recorder: recorder, Clock: clock.RealClock{}, Silence: g.Members.Silence,
				// Placement must see a heartbeat at least twice before it takes a member for lost.
				HeartbeatInterval: min(membership.DefaultHeartbeatInterval, clustereligibility.HeartbeatLimit/2),
				TaintUnreachable:  g.Members.TaintUnreachable, Concurrency: memberWorkers,
			},
		)
	}
	if g.Parts.Serves(options.APIFleet) && g.Members.AgentPriorityLevel != "" {
		controllers = append(controllers, &membership.FlowReconciler{Client: hub, Live: live, Level: g.Members.AgentPriorityLevel})
	}
	if g.Parts.Serves(options.APIRancher) {
		controllers = append(controllers,
			&registration.TokenReconciler{
				Client: hub, Live: live, Clock: clock.RealClock{},
				Hub: registration.Endpoint{URL: g.Hub.URL, CA: g.HubCA}, Namespaces: g.Registration.Chosen(),
				Defaults: g.Registration.Defaults(),
			},
			&registration.GrantReconciler{
				Client: hub, Live: live, Clock: clock.RealClock{}, AgentTokenLifetime: g.Members.AgentTokenLifetime, Secrets: g.members,
				Namespaces: g.Registration.Chosen(), Defaults: g.Registration.Defaults(), Labels: g.Registration.LabelRule(),
				Concurrency: memberWorkers,
			},
			&registration.ClusterReconciler{Client: hub, Live: live, Clock: clock.RealClock{}, Labels: g.Registration.LabelRule(), Concurrency: memberWorkers},
			&registration.GroupReconciler{Client: hub, Clock: clock.RealClock{}},
			&importer.Reconciler{
				Client: hub, Live: live, Clock: clock.RealClock{}, Namespaces: g.Registration.Chosen(),
				HubURL: g.Hub.URL, HubCA: g.HubCA, Image: g.Registration.AgentImage, Concurrency: memberWorkers,
			},
			&clusterapi.Importer{
				Config: g.REST, CacheOptions: cache.Options{Scheme: g.scheme, Mapper: mgr.GetRESTMapper()},
				Client: hub, Live: live, Clusters: mgr.GetCache(), Recorder: recorder,
				Namespaces: g.Registration.Chosen(), Labels: g.Registration.ClusterAPILabels, Concurrency: memberWorkers,
			},
		)
	}
	if g.Parts.Serves(options.APIAzure) {
		controllers = append(controllers, &azurefleet.Reconciler{Client: hub, Recorder: mgr.GetEventRecorder(azurefleet.EventSource)})
	}
	if g.Parts.Serves(options.APIProfile) {
		controllers = append(controllers, &profile.Reconciler{
			Client: hub, Namespace: g.Hub.Namespace, Manager: g.Members.ClusterProfileManager, HubURL: g.Hub.URL, HubCA: g.HubCA,
		})
	}
	if g.Parts.Serves(options.APIMSA) {
		tokens, err := g.tokenControllers(mgr, g.members)
		if err != nil {
			return err
		}
		controllers = append(controllers, tokens...)
	}
	return setUp(mgr, controllers)
}

// tokenControllers are the hub's part in keeping tokens of members' accounts.
func (g *gateway) tokenControllers(mgr ctrl.Manager, secretsOfMembers cache.Cache) ([]controller, error) {
	tokens, err := serviceaccount.NewSecretCache(g.REST, cache.Options{Scheme: g.scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(tokens); err != nil {
		return nil, err
	}
	hub := mgr.GetClient()
	return []controller{
		&serviceaccount.Reconciler{Client: hub},
		&mirror.Reconciler{Client: hub, Secrets: tokens, GatewayNamespace: g.Hub.Namespace, Concurrency: memberWorkers},
		&expiry.Reconciler{Client: hub, Clock: clock.RealClock{}, GatewayNamespace: g.Hub.Namespace},
		&argocd.Reconciler{
			Client: hub, Live: mgr.GetAPIReader(), Secrets: secretsOfMembers, Clock: clock.RealClock{},
			Recorder:  mgr.GetEventRecorder(membership.EventSource),
			Namespace: g.Members.ArgoCDNamespace, HubURL: g.Hub.URL, HubCA: g.HubCA,
		},
	}, nil
}

// argoCDAccount is the account whose token Argo CD gets.
func (g *gateway) argoCDAccount() types.NamespacedName {
	return types.NamespacedName{Namespace: g.Members.ArgoCDNamespace, Name: argocd.Account}
}

// memberRules are the rights of a member's agent in its namespace on the hub:
// what each of its parts needs, and no more.
func memberRules(member string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, of := range []func(string) []rbacv1.PolicyRule{enroll.HubRules, heartbeat.HubRules, apply.HubRules, serviceaccount.HubRules} {
		rules = append(rules, of(member)...)
	}
	return rules
}

// tunnelRules let a member's agent open a tunnel for this member only.
func tunnelRules(member string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{tunnelv1alpha1.GroupVersion.Group},
		Resources:     []string{tunnelv1alpha1.Resource + "/" + tunnelv1alpha1.SubresourceProxy},
		ResourceNames: []string{member},
		Verbs:         []string{"create"},
	}}
}

// addPlacement decides what goes where, rolls it out and hands it to members.
func (g *gateway) addPlacement(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Parts.Runs(options.ComponentControllers) || !g.Parts.Serves(options.APIFleet) {
		return nil
	}
	charts, err := g.charts()
	if err != nil {
		return err
	}
	return placement.SetupWithManager(ctx, mgr, placement.Options{
		ConfigMapEnvelopes: g.Placement.ConfigMapEnvelopes, Charts: charts, ChartPackages: g.chartPackages(), AskAuthors: !g.Placement.TrustsAuthors(),
	})
}

type controller interface {
	SetupWithManager(ctrl.Manager) error
}

func setUp(mgr ctrl.Manager, controllers []controller) error {
	for _, c := range controllers {
		if err := c.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up a controller: %w", err)
		}
	}
	return nil
}

// everywhere is a Runnable that runs in every replica, leader or not.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

func (e everywhere) NeedLeaderElection() bool { return false }
