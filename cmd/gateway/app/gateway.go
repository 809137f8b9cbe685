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

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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
	*Config
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
	spans   trace.TracerProvider
}

// Run runs the gateway until the context ends, or fails with a sentence that
// says what is in the way.
func Run(ctx context.Context, config *Config) error {
	spans, err := config.Tracing.Provider(ctx, "gateway", config.Hub)
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
		g.addMembership,
		g.addPlacement,
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

func newGateway(config *Config) (*gateway, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config.Hub, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.Hub.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config.Hub)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.Hub.Host, err)
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
	service := g.Service + "." + g.Namespace + ".svc"
	names := slices.Concat([]string{service, service + ".cluster.local", "localhost"}, g.EndpointNames, g.konnectivityNames())
	switch g.Certificates {
	case certificatesFiles:
		return serving.FromFiles(g.CertFile, g.KeyFile, g.CAFile)
	case certificatesCertManager:
		return serving.FromCertManager(g.direct, g.Namespace, names)
	default:
		return serving.FromAuthority(g.direct, g.Namespace, names)
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme,
		msav1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme, admissionv1alpha1.AddToScheme, cmv1.AddToScheme,
		azurefleetv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}

// newInstaller says what belongs on the hub for the chosen APIs.
func (g *gateway) newInstaller() (*install.Installer, error) {
	groups := map[string][]string{
		apiFleet:     {clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupVersion.Group},
		apiRancher:   {registrationv1alpha1.GroupVersion.Group},
		apiMSA:       {msav1beta1.GroupVersion.Group},
		apiProfile:   {multiclusterv1alpha1.GroupVersion.Group},
		apiAdmission: {admissionv1alpha1.GroupVersion.Group},
		apiAzure:     {azurefleetv1alpha1.GroupVersion.Group},
	}
	var chosen []string
	for _, api := range g.APIs {
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
			Namespace: g.Namespace, Service: g.Service, ExternalName: g.ExternalName, APIPort: int32(g.SecurePort),
		},
		Version: version.Get(),
		Adopt:   g.Adopt,
		Clock:   clock.RealClock{},
	}
	if g.runs(componentProxy) && g.serves(apiGateway) {
		installer.APIs = []install.GroupVersion{
			{Group: gatewayv1alpha1.GroupVersion.Group, Version: gatewayv1alpha1.GroupVersion.Version},
			{Group: tunnelv1alpha1.GroupVersion.Group, Version: tunnelv1alpha1.GroupVersion.Version},
		}
	}
	switch {
	case !g.takesReviews():
	case g.WebhookCaller == callerCertificate:
		installer.Obsolete = append(installer.Obsolete, g.reviewsAPI().APIService())
	default:
		installer.APIs = append(installer.APIs, g.reviewsAPI())
	}
	return installer, nil
}

// prepareHub returns when every kind that the gateway works with is served.
func (g *gateway) prepareHub(ctx context.Context) error {
	if !g.Install {
		return g.installer.WaitForDefinitions(ctx)
	}
	if err := g.installer.InstallBase(ctx); err != nil {
		return err
	}
	return install.Exclusively(ctx, g.clientset, g.Namespace, identity(), g.installer.InstallDefinitions)
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
	grace := shutdownGrace
	options := ctrl.Options{
		Scheme:                        g.scheme,
		Metrics:                       metricsserver.Options{BindAddress: g.Metrics},
		HealthProbeBindAddress:        g.HealthProbes,
		LivenessEndpointName:          "/livez",
		LeaderElection:                g.LeaderElect,
		LeaderElectionID:              g.leaseName(),
		LeaderElectionNamespace:       g.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
		Cache:                         cache.Options{ByObject: dispatch.CacheOptions()},
		Client: client.Options{Cache: &client.CacheOptions{
			// Secrets are never cached as a whole: a typed read would start a watch
			// on every Secret of the hub.
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
	}
	if g.takesReviews() {
		server, err := g.newIntake(ctx)
		if err != nil {
			return nil, err
		}
		options.WebhookServer = server
	}
	mgr, err := ctrl.NewManager(g.Hub, options)
	if err != nil {
		return nil, explain(fmt.Errorf("setting up the gateway: %w", err))
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

// addServing keeps the certificate current, and, in the leader, what leads the
// hub's API server to it.
func (g *gateway) addServing(context.Context) error {
	if !g.runs(componentProxy) && !g.runs(componentWebhook) {
		return nil
	}
	if err := g.manager.Add(g.certificates); err != nil {
		return err
	}
	if err := g.manager.AddReadyzCheck("serving-certificate", func(*http.Request) error {
		_, err := g.certificates.GetCertificate(nil)
		return err
	}); err != nil {
		return err
	}
	if !g.Install {
		return nil
	}
	return g.manager.Add(manager.RunnableFunc(g.keepServingInstalled))
}

// keepServingInstalled runs in the leader.
func (g *gateway) keepServingInstalled(ctx context.Context) error {
	self, err := g.whoAmI(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	parameters := g.policyParameters(self)
	g.installer.Obsolete = append(g.installer.Obsolete, policies.GuardRails(g.GuardRails).Obsolete(parameters)...)
	g.installer.Obsolete = append(g.installer.Obsolete, policies.ConfirmDelete(g.ConfirmDelete).Obsolete()...)
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
		TokenLifetime: g.AgentTokenLifetime, GatewayUser: self.name, GatewayNamespace: g.Namespace,
		ArgoCD: g.argoCDAccount(), ConfirmDeleteMembers: g.ConfirmDeleteMembers,
	}
}

// admission returns the policies and webhook configurations of the chosen parts.
func (g *gateway) admission(reviews webhook.Endpoint, self account) []client.Object {
	parameters := g.policyParameters(self)
	objects := slices.Concat(policies.Members(parameters), policies.MemberBounds(), policies.ServiceAccounts(), policies.Registration())
	if !self.administrator {
		objects = append(objects, policies.Gateway(parameters)...)
	}
	if g.serves(apiFleet) {
		objects = append(objects, policies.GuardRails(g.GuardRails).Of(parameters)...)
		objects = append(objects, policies.ConfirmDelete(g.ConfirmDelete).Of(parameters)...)
		objects = slices.Concat(objects, policies.HelmCharts(), policies.Deliveries(parameters), policies.Authors())
	}
	if g.runs(componentWebhook) && g.serves(apiFleet) {
		reviews.TrustAuthors = g.trustsAuthors()
		objects = append(objects, webhook.Configurations(reviews)...)
	}
	return objects
}

func (g *gateway) addWebhooks(ctx context.Context) error {
	if g.trustsAuthors() && g.serves(apiFleet) {
		log.FromContext(ctx).Info("With --authorize-authors=off nobody is asked whether the authors of placements and overrides may have delivered what these select")
	}
	if !g.runs(componentWebhook) || !g.serves(apiFleet) {
		return nil
	}
	if err := webhook.Register(g.manager, webhook.Strictness{TrustAuthors: g.trustsAuthors(), StrictEnvelopes: g.StrictEnvelopes}); err != nil {
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
	if !g.runs(componentProxy) || !g.serves(apiGateway) {
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
		Hub:         g.Hub,
		Address:     net.JoinHostPort(g.BindAddress, strconv.Itoa(g.SecurePort)),
		Certificate: g.certificates,
		Members:     members,
		Credentials: clustergateway.CredentialsFunc(func(member string) (clustergateway.Credential, error) {
			credential, err := credentials.Credential(member)
			return clustergateway.Credential(credential), err
		}),
		Dialer:       proxyDialer{registry},
		NotConnected: tunnel.ErrNotConnected,
		Tunnels:      registry.UpgradeHandler,
		MembersOf:    parts.members.MembersOf,
		Connected:    registry.Reachable,
		Metrics:      metrics.Registry,
		Spans:        g.spans,

		AuthorizeInner:       g.AuthorizeInner,
		AuditPolicyFile:      g.AuditPolicyFile,
		AuditLogPath:         g.AuditLogPath,
		MaxInFlightPerMember: g.MaxInFlightPerMember,
		MaxInFlightPerUser:   g.MaxInFlightPerUser,
		MaxLongPerMember:     g.MaxLongPerMember,
		MaxLongPerUser:       g.MaxLongPerUser,
		DrainTime:            streamDrain,
	}
	if g.AuditRequests {
		config.Recorder = clustergateway.LogRecords
	}
	completed, err := config.Complete()
	if err != nil {
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
	_, stop, err := members.Follow(informer)
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
	if g.members, err = membership.NewMemberCache(g.Hub, cache.Options{Scheme: g.scheme, Mapper: g.manager.GetRESTMapper()}); err != nil {
		return err
	}
	return g.manager.Add(g.members)
}

// addMembership joins clusters, and gives the gateway an account on each.
func (g *gateway) addMembership(context.Context) error {
	if !g.runs(componentControllers) {
		return nil
	}
	hub, live := g.manager.GetClient(), g.manager.GetAPIReader()
	recorder := g.manager.GetEventRecorder(membership.EventSource)
	var controllers []controller
	if g.serves(apiFleet) {
		controllers = append(controllers,
			&membership.Reconciler{
				Client: hub, Live: live, Recorder: recorder, Clock: clock.RealClock{}, Seats: cluster.FleetSeats(),
				Orders: []schema.GroupVersionKind{placementv1beta1.GroupVersion.WithKind("Work")},
				Rules:  memberRules, ClusterRules: tunnelRules, ForceDeleteWait: g.ForceDeleteWait,
				AgentTokenLifetime: g.AgentTokenLifetime, Secrets: g.members, Concurrency: memberWorkers,
			},
			&membership.StatusReconciler{
				Client: hub, Seats: cluster.FleetSeats(), Leases: g.members, Recorder: recorder, Clock: clock.RealClock{}, Silence: g.Silence,
				// Placement must see a heartbeat at least twice before it takes a member for lost.
				HeartbeatInterval: min(membership.DefaultHeartbeatInterval, clustereligibility.HeartbeatLimit/2),
				TaintUnreachable:  g.TaintUnreachable, Concurrency: memberWorkers,
			},
		)
	}
	if g.serves(apiFleet) && g.AgentPriorityLevel != "" {
		controllers = append(controllers, &membership.FlowReconciler{Client: hub, Live: live, Level: g.AgentPriorityLevel})
	}
	if g.serves(apiRancher) {
		controllers = append(controllers,
			&registration.TokenReconciler{
				Client: hub, Live: live, Clock: clock.RealClock{},
				Hub: registration.Endpoint{URL: g.HubURL, CA: g.HubCA}, Namespaces: g.registrationNamespaces(),
				Defaults: g.registrationDefaults(),
			},
			&registration.GrantReconciler{
				Client: hub, Live: live, Clock: clock.RealClock{}, AgentTokenLifetime: g.AgentTokenLifetime, Secrets: g.members,
				Namespaces: g.registrationNamespaces(), Defaults: g.registrationDefaults(), Labels: g.memberLabels(),
				Concurrency: memberWorkers,
			},
			&registration.ClusterReconciler{Client: hub, Live: live, Clock: clock.RealClock{}, Labels: g.memberLabels(), Concurrency: memberWorkers},
			&registration.GroupReconciler{Client: hub, Clock: clock.RealClock{}},
			&importer.Reconciler{
				Client: hub, Live: live, Clock: clock.RealClock{}, Namespaces: g.registrationNamespaces(),
				HubURL: g.HubURL, HubCA: g.HubCA, Image: g.AgentImage, Concurrency: memberWorkers,
			},
			&clusterapi.Importer{
				Config: g.Hub, CacheOptions: cache.Options{Scheme: g.scheme, Mapper: g.manager.GetRESTMapper()},
				Client: hub, Live: live, Clusters: g.manager.GetCache(), Recorder: recorder,
				Namespaces: g.registrationNamespaces(), Labels: g.ClusterAPILabels, Concurrency: memberWorkers,
			},
		)
	}
	if g.serves(apiAzure) {
		controllers = append(controllers, &azurefleet.Reconciler{Client: hub, Recorder: g.manager.GetEventRecorder(azurefleet.EventSource)})
	}
	if g.serves(apiProfile) {
		controllers = append(controllers, &profile.Reconciler{
			Client: hub, Namespace: g.Namespace, Manager: g.ClusterProfileManager, HubURL: g.HubURL, HubCA: g.HubCA,
		})
	}
	if g.serves(apiMSA) {
		tokens, err := g.tokenControllers(g.members)
		if err != nil {
			return err
		}
		controllers = append(controllers, tokens...)
	}
	return g.setUp(controllers)
}

// tokenControllers are the hub's part in keeping tokens of members' accounts.
func (g *gateway) tokenControllers(secretsOfMembers cache.Cache) ([]controller, error) {
	tokens, err := serviceaccount.NewSecretCache(g.Hub, cache.Options{Scheme: g.scheme, Mapper: g.manager.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	if err := g.manager.Add(tokens); err != nil {
		return nil, err
	}
	hub := g.manager.GetClient()
	return []controller{
		&serviceaccount.Reconciler{Client: hub},
		&mirror.Reconciler{Client: hub, Secrets: tokens, GatewayNamespace: g.Namespace, Concurrency: memberWorkers},
		&expiry.Reconciler{Client: hub, Clock: clock.RealClock{}, GatewayNamespace: g.Namespace},
		&argocd.Reconciler{
			Client: hub, Live: g.manager.GetAPIReader(), Secrets: secretsOfMembers, Clock: clock.RealClock{},
			Recorder:  g.manager.GetEventRecorder(membership.EventSource),
			Namespace: g.ArgoCDNamespace, HubURL: g.HubURL, HubCA: g.HubCA,
		},
	}, nil
}

// argoCDAccount is the account whose token Argo CD gets.
func (g *gateway) argoCDAccount() types.NamespacedName {
	return types.NamespacedName{Namespace: g.ArgoCDNamespace, Name: argocd.Account}
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
func (g *gateway) addPlacement(ctx context.Context) error {
	if !g.runs(componentControllers) || !g.serves(apiFleet) {
		return nil
	}
	charts, err := g.charts()
	if err != nil {
		return err
	}
	return placement.SetupWithManager(ctx, g.manager, placement.Options{
		ConfigMapEnvelopes: g.ConfigMapEnvelopes, Charts: charts, ChartPackages: g.chartPackages(), AskAuthors: !g.trustsAuthors(),
	})
}

// trustsAuthors is true where the authors of placements and overrides are not asked.
func (g *gateway) trustsAuthors() bool { return g.AuthorizeAuthors == authorizeOff }

type controller interface {
	SetupWithManager(ctrl.Manager) error
}

func (g *gateway) setUp(controllers []controller) error {
	for _, c := range controllers {
		if err := c.SetupWithManager(g.manager); err != nil {
			return fmt.Errorf("setting up a controller: %w", err)
		}
	}
	return nil
}

// everywhere is a Runnable that runs in every replica, leader or not.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

func (e everywhere) NeedLeaderElection() bool { return false }
