// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/cluster/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/membership"
	"fleetgate.io/fleetgate/pkg/cluster/registration"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/oci"
	"fleetgate.io/fleetgate/pkg/tracing"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// The parts of the gateway that can run apart.
const (
	componentProxy       = "proxy"
	componentWebhook     = "webhook"
	componentControllers = "controllers"
)

// The families of APIs that the gateway can serve.
const (
	apiFleet     = "fleet"
	apiRancher   = "rancher"
	apiMSA       = "msa"
	apiGateway   = "gateway"
	apiProfile   = "clusterprofile"
	apiAdmission = "admission"
	apiAzure     = "fleet-azure"
)

var (
	allComponents = []string{componentProxy, componentWebhook, componentControllers}
	defaultAPIs   = []string{apiFleet, apiRancher, apiMSA, apiGateway, apiProfile, apiAdmission}
	// allAPIs are those that somebody may ask for.
	allAPIs = append(slices.Clone(defaultAPIs), apiAzure)
)

// apiNeeds says which families build on which others: registrations and the
// proxy on the inventory, the proxy on the tokens of its account.
func apiNeeds() map[string][]string {
	return map[string][]string{
		apiRancher: {apiFleet},
		apiMSA:     {apiFleet},
		apiGateway: {apiFleet, apiMSA},
		apiProfile: {apiFleet},
		apiAzure:   {apiFleet},
	}
}

// Where the serving certificate can come from.
const (
	certificatesOwn         = "own"
	certificatesCertManager = "cert-manager"
	certificatesFiles       = "files"
)

// What clusters that register are given.
const (
	registrationOpen   = "open"
	registrationStrict = "strict"
	labelsCount        = "count"
	labelsIgnore       = "ignore"
)

// Whether the authors of placements and overrides are asked.
const (
	authorizeOn  = "on"
	authorizeOff = "off"
)

func certificateSources() []string {
	return []string{certificatesOwn, certificatesCertManager, certificatesFiles}
}

func guardRailModes() []string {
	var modes []string
	for _, mode := range policies.AllGuardRails() {
		modes = append(modes, string(mode))
	}
	return modes
}

func confirmDeleteModes() []string {
	var modes []string
	for _, mode := range policies.AllConfirmDelete() {
		modes = append(modes, string(mode))
	}
	return modes
}

const (
	minTokenLifetime = 10 * time.Minute
	maxTokenLifetime = 365 * 24 * time.Hour
	maxCABytes       = 1 << 20
)

// Options are the gateway's flags. This file is the only one that reads them.
type Options struct {
	Kubeconfig string
	Namespace  string
	Components []string
	APIs       []string

	BindAddress string
	SecurePort  int
	WebhookPort int
	// WebhookCaller is how the API server proves that a review is its own.
	WebhookCaller       string
	WebhookClientCAFile string
	Metrics             string
	HealthProbes        string
	LeaderElect         bool

	AuthorizeInner       bool
	AuditRequests        bool
	AuditPolicyFile      string
	AuditLogPath         string
	MaxInFlightPerMember int
	MaxInFlightPerUser   int
	MaxLongPerMember     int
	MaxLongPerUser       int
	Tracing              tracing.Config

	Install    bool
	Adopt      bool
	GuardRails string
	// ConfigMapEnvelopes takes annotated ConfigMaps for envelopes.
	ConfigMapEnvelopes bool
	// HelmCharts renders annotated ConfigMaps and Secrets.
	HelmCharts bool
	// HelmChartRegistries are those from which charts may be fetched.
	HelmChartRegistries []string
	// HelmChartCredentials is a file with what to prove to them.
	HelmChartCredentials string
	// ConfirmDelete is what happens to deletions that are not confirmed of what is on
	// more than ConfirmDeleteMembers members.
	ConfirmDelete        string
	ConfirmDeleteMembers int
	// AuthorizeAuthors says whether the authors of placements and overrides are asked:
	// authorizeOn or authorizeOff.
	AuthorizeAuthors string
	// StrictEnvelopes refuses envelopes with an object that cannot be placed from them.
	StrictEnvelopes bool
	Certificates    string
	CertFile        string
	KeyFile         string
	CAFile          string
	Service         string
	ExternalName    string
	// EndpointNames are further names of the serving certificate.
	EndpointNames []string

	AgentsPort         int
	AgentsAddress      string
	AgentsClientCAFile string
	PeerPort           int
	Peers              []string

	KonnectivityAgents      bool
	KonnectivityFrontends   string
	KonnectivityFrontendsCA string
	KonnectivityDomain      string
	KonnectivityAllow       []string
	KonnectivityAPIServer   string
	KonnectivityReplicas    int
	KonnectivityLanes       int

	HubURL             string
	HubCAFile          string
	ArgoCDNamespace    string
	AgentTokenLifetime time.Duration
	AgentPriorityLevel string
	Silence            time.Duration
	ForceDeleteWait    time.Duration
	TaintUnreachable   bool

	RegistrationNamespaces []string
	InfiniteTokenApproval  string
	RegistrationPolicy     string
	SelfAssignedLabels     string
	ClusterProfileManager  string
	AgentImage             string
	ClusterAPILabels       []string

	FailClosedGroups []string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:             clusterv1beta1.SystemNamespace,
		Components:            slices.Clone(allComponents),
		APIs:                  slices.Clone(defaultAPIs),
		BindAddress:           "0.0.0.0",
		SecurePort:            8443,
		WebhookPort:           9443,
		WebhookCaller:         callerLoopback,
		Metrics:               ":8080",
		HealthProbes:          ":8081",
		LeaderElect:           true,
		AuditRequests:         true,
		GuardRails:            string(policies.GuardRailsSelected),
		ConfirmDelete:         string(policies.ConfirmDeleteWarn),
		ConfirmDeleteMembers:  10,
		AuthorizeAuthors:      authorizeOn,
		Certificates:          certificatesOwn,
		MaxInFlightPerMember:  clustergateway.DefaultMaxInFlight,
		MaxInFlightPerUser:    clustergateway.DefaultMaxInFlightPerUser,
		MaxLongPerMember:      clustergateway.DefaultMaxLong,
		MaxLongPerUser:        clustergateway.DefaultMaxLongPerUser,
		Service:               "gateway",
		ArgoCDNamespace:       "argocd",
		AgentsPort:            8091,
		KonnectivityAPIServer: "kubernetes.default.svc:443",
		KonnectivityLanes:     1,
		AgentTokenLifetime:    7 * 24 * time.Hour,
		Silence:               membership.DefaultSilence,
		ForceDeleteWait:       membership.DefaultForceDeleteWait,

		RegistrationNamespaces: []string{"clusters"},
		InfiniteTokenApproval:  registrationv1alpha1.ApprovalManual,
		RegistrationPolicy:     registrationOpen,
		SelfAssignedLabels:     labelsCount,
		ClusterProfileManager:  multiclusterv1alpha1.ClusterManager,
		ClusterAPILabels:       clusterapi.DefaultLabels(),
	}
}

// AddFlags binds the options to a command line.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the hub. Empty: the account of the Pod that the gateway runs in.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringSliceVar(&o.Components, "components", o.Components, "Parts to run in this process.")
	flags.StringSliceVar(&o.APIs, "apis", o.APIs, "Families of APIs to install and serve.")

	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "Address on which the aggregated API and the webhooks listen.")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port of the aggregated API.")
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port of the webhooks.")
	flags.StringVar(&o.WebhookCaller, "webhook-caller", o.WebhookCaller, "How the hub's API server proves that it is the one that asks the webhooks. loopback: reviews come through the API server itself, as system:apiserver, and its aggregation layer. certificate: they come directly, with a client certificate of --webhook-client-ca-file that the API server's AdmissionConfiguration names.")
	flags.StringVar(&o.WebhookClientCAFile, "webhook-client-ca-file", o.WebhookClientCAFile, "With --webhook-caller=certificate: PEM file of the CA of that certificate, which signs no other; followed when it changes.")
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics; 0 switches it off.")
	flags.StringVar(&o.HealthProbes, "health-probe-bind-address", o.HealthProbes, "Address of /livez and /readyz.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Run controllers in one replica only, chosen by a Lease.")

	flags.BoolVar(&o.AuthorizeInner, "authorize-inner", o.AuthorizeInner, "Ask the hub about each request on a member too: verb, namespace, resource with its group behind a dot, in group "+clustergateway.InnerGroup+", with the member as name.")
	flags.BoolVar(&o.AuditRequests, "audit-requests", o.AuditRequests, "Write a line into the log for each request for a member: who, as whom, what, code, bytes, duration.")
	flags.StringVar(&o.AuditPolicyFile, "audit-policy-file", o.AuditPolicyFile, "Audit policy, as kube-apiserver takes it, for events of the aggregated API in --audit-log-path; those of requests for members have annotations "+clustergateway.AnnotationMember+", "+clustergateway.AnnotationAs+" and "+clustergateway.AnnotationEnded+".")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Host and port of a collector of OpenTelemetry traces nearby, reached by gRPC without TLS. Empty: no traces.")
	flags.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion, "How many of a million requests are traced.")
	flags.StringVar(&o.AuditLogPath, "audit-log-path", o.AuditLogPath, "File of those events, - for stdout; rotated at 100 MiB, ten are kept.")
	flags.IntVar(&o.MaxInFlightPerMember, "max-requests-per-member", o.MaxInFlightPerMember, "How many short requests for one member may be under way; more get 429.")
	flags.IntVar(&o.MaxInFlightPerUser, "max-requests-per-user", o.MaxInFlightPerUser, "How many short requests of one user may be under way, for all members together; more get 429.")
	flags.IntVar(&o.MaxLongPerMember, "max-long-requests-per-member", o.MaxLongPerMember, "How many requests that last (watches, followed logs, exec, port-forward) for one member may be under way; more get 429.")
	flags.IntVar(&o.MaxLongPerUser, "max-long-requests-per-user", o.MaxLongPerUser, "How many requests that last of one user may be under way, for all members together; more get 429.")

	flags.BoolVar(&o.Install, "install", o.Install, "Install or update CustomResourceDefinitions, APIServices, policies and webhook configurations on the hub.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt, "With --install: take over objects of another product that serves the same APIs and does not run any more.")
	flags.StringVar(&o.GuardRails, "guard-rails", o.GuardRails, "With --install: what the hub is kept from. off: nothing. selected: Pods and ReplicaSets in namespaces that a placement selects. reference: those everywhere, and changes of reserved namespaces, members and CustomResourceDefinitions of the fleet. reference-with-workloads: the same but for Pods and ReplicaSets.")
	flags.StringVar(&o.ConfirmDelete, "confirm-delete", o.ConfirmDelete, "With --install: off, warn or deny deletions of placements on many members and of namespaces that a placement selects, unless the object has annotation "+policies.ConfirmDeleteAnnotation+"=true.")
	flags.BoolVar(&o.ConfigMapEnvelopes, "configmap-envelopes", o.ConfigMapEnvelopes, "Take ConfigMaps with annotation "+placementv1beta1.ConfigMapEnvelopeAnnotation+"=true for envelopes, as hubs of 2023 did. Nobody checks what is in them: who may write ConfigMaps in a namespace that is placed decides then what members get.")
	flags.BoolVar(&o.HelmCharts, "helm-charts", o.HelmCharts, "Render the Helm charts in ConfigMaps and Secrets with annotation "+placementv1beta1.HelmChartAnnotation+" for each member that they are placed on. Who writes that annotation needs the verb "+placementv1beta1.RenderVerb+" on the object.")
	flags.StringSliceVar(&o.HelmChartRegistries, "helm-chart-registries", o.HelmChartRegistries, "With --helm-charts: OCI registries, with the beginning of the repository if need be (ghcr.io/acme/charts), from which charts may be fetched; one that begins with http:// is asked without TLS. Empty: none.")
	flags.StringVar(&o.HelmChartCredentials, "helm-chart-credentials", o.HelmChartCredentials, "With --helm-chart-registries: file with the credentials of those that are private, as helm registry login writes it and a Secret of type kubernetes.io/dockerconfigjson holds it. It may be replaced at any time.")
	flags.IntVar(&o.ConfirmDeleteMembers, "confirm-delete-members", o.ConfirmDeleteMembers, "With --confirm-delete: a placement on more members than these has to be confirmed.")
	flags.StringVar(&o.AuthorizeAuthors, "authorize-authors", o.AuthorizeAuthors, "on: who writes a placement may get, list or "+placementv1beta1.PlaceVerb+" what it selects, and who writes an override may update it. off: nobody is asked, and who may write placements in a namespace has all that is in it.")
	flags.BoolVar(&o.StrictEnvelopes, "strict-envelopes", false, "Refuse an envelope with an object that cannot be placed from it: one of another namespace, or of none in a ResourceEnvelope, and one with generateName and no name. Else its author is warned, and placements with it say why it is not placed.")
	flags.StringVar(&o.Certificates, "certificates", o.Certificates, "Where the serving certificate comes from. own: an authority of the gateway's own. cert-manager: a Certificate that it asks for. files: the three files below.")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "With --certificates=files: PEM file with the serving certificate; followed when it changes.")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "With --certificates=files: PEM file with its key.")
	flags.StringVar(&o.CAFile, "tls-ca-file", o.CAFile, "With --certificates=files: PEM file with the CAs that verify it.")
	flags.StringVar(&o.Service, "service", o.Service, "Name of the Service, in --namespace, through which the hub's API server reaches the gateway.")
	flags.StringVar(&o.ExternalName, "external-name", o.ExternalName, "With --install: DNS name or address of a gateway that runs outside the hub; makes the Service lead there.")
	flags.StringSliceVar(&o.EndpointNames, "endpoint-names", o.EndpointNames, "DNS names and addresses at which clients reach the gateway's own endpoint, beside those of --service: the serving certificate is valid for them too.")

	flags.StringVar(&o.AgentsAddress, "agents-address", o.AgentsAddress, "host:port at which members' agents reach --agents-port. Empty: the port is closed, and all tunnels go through the hub's API server.")
	flags.IntVar(&o.AgentsPort, "agents-port", o.AgentsPort, "Port for tunnels of agents, with --agents-address.")
	flags.StringVar(&o.AgentsClientCAFile, "agents-client-ca-file", o.AgentsClientCAFile, "PEM file of a CA whose client certificates, beside tokens, prove who an agent is at --agents-port: the common name is its user.")
	flags.IntVar(&o.PeerPort, "peer-port", o.PeerPort, "Port at which the gateway's replicas reach each other, to pass on requests for members whose tunnel another one holds: 8092. 0: they do not.")
	flags.StringSliceVar(&o.Peers, "peers", o.Peers, "host:port of the other replicas. Empty: the endpoints of --service, with --peer-port.")

	flags.BoolVar(&o.KonnectivityAgents, "konnectivity-agents", o.KonnectivityAgents, "Take Konnectivity's agents at --agents-port too, with a token for audience "+tunnelv1alpha1.TokenAudience+" or a certificate.")
	flags.StringVar(&o.KonnectivityFrontends, "konnectivity-frontends-address", o.KonnectivityFrontends,
		"Address (host:port) at which Konnectivity frontends come in, with a token for audience "+frontendAudience+" or a certificate. Empty: they do not.")
	flags.StringVar(&o.KonnectivityFrontendsCA, "konnectivity-frontends-ca-file", o.KonnectivityFrontendsCA,
		"PEM file of the CA of frontends' certificates, another one than that of --agents-client-ca-file. Empty: tokens only.")
	flags.StringVar(&o.KonnectivityDomain, "konnectivity-frontends-domain", o.KonnectivityDomain,
		"Frontends that reach the gateway as <member>.<this domain> dial addresses of that member. Empty: the address is the member's name.")
	flags.StringSliceVar(&o.KonnectivityAllow, "konnectivity-allow", o.KonnectivityAllow,
		"What frontends may dial beside members' API servers: name:port, address:port or network:port, where the port may be *.")
	flags.StringVar(&o.KonnectivityAPIServer, "konnectivity-apiserver", o.KonnectivityAPIServer, "Where Konnectivity's own agents find their member's API server.")
	flags.IntVar(&o.KonnectivityReplicas, "konnectivity-replicas", o.KonnectivityReplicas, "Replicas of the gateway that Konnectivity agents connect to. 0: two, if there are so many, which needs --peer-port.")
	flags.IntVar(&o.KonnectivityLanes, "konnectivity-lanes", o.KonnectivityLanes, "Streams that a Konnectivity agent opens to each replica: a slow connection holds up those of its own.")

	flags.StringVar(&o.HubURL, "hub-url", o.HubURL, "URL of the hub's API server as members reach it, written into registration tokens. Empty: the one of the kubeconfig.")
	flags.StringVar(&o.HubCAFile, "hub-ca-file", o.HubCAFile, "PEM file that verifies --hub-url. Empty: the CA of the kubeconfig.")
	flags.StringVar(&o.ArgoCDNamespace, "argocd-namespace", o.ArgoCDNamespace, "Namespace of Argo CD on the hub, which gets a Secret for each MemberCluster that is labelled "+msav1beta1.LabelArgoCD+"="+msav1beta1.LabelArgoCDValue+".")
	flags.DurationVar(&o.AgentTokenLifetime, "agent-token-lifetime", o.AgentTokenLifetime, "Life of the tokens that members' agents hold, and renew every hour.")
	flags.StringVar(&o.AgentPriorityLevel, "agents-priority-level", o.AgentPriorityLevel, "PriorityLevelConfiguration of the hub's API server for requests of members' agents: the gateway keeps FlowSchemas that lead them there, and their Leases to leader-election. Empty: it keeps none.")
	flags.DurationVar(&o.Silence, "cluster-unhealthy-threshold", o.Silence, "How long a member may send no heartbeat until its state is Unknown.")
	flags.DurationVar(&o.ForceDeleteWait, "force-delete-wait-time", o.ForceDeleteWait, "How long a deleted MemberCluster waits for its agent to confirm that it leaves.")
	flags.BoolVar(&o.TaintUnreachable, "taint-unreachable", o.TaintUnreachable, "Taint members whose state is Unknown with "+clusterv1beta1.TaintUnreachable+":NoSchedule until they are heard of again.")

	flags.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "Image of the agent, for clusters that are imported from a kubeconfig. Empty: none is imported.")
	flags.StringSliceVar(&o.ClusterAPILabels, "cluster-api-labels", o.ClusterAPILabels, "Keys of the labels that members get from their Cluster of Cluster API, if that is labelled "+clusterapi.LabelAutoImport+"=true or its namespace is; one may end with *.")
	flags.StringVar(&o.ClusterProfileManager, "clusterprofile-manager", o.ClusterProfileManager, "Name of the cluster manager in the ClusterProfiles that the gateway publishes. It cannot be changed for profiles that are there.")
	flags.StringSliceVar(&o.RegistrationNamespaces, "registration-namespaces", o.RegistrationNamespaces, "Namespaces in which clusters may register; * means every namespace.")
	flags.StringVar(&o.InfiniteTokenApproval, "infinite-token-approval", o.InfiniteTokenApproval, "auto or manual: whether members that register with a token without end may be used at once, or wait for somebody who takes their taint away. A token's annotation "+registrationv1alpha1.AnnotationApproval+" stands over it.")
	flags.StringVar(&o.RegistrationPolicy, "registration-policy", o.RegistrationPolicy, "open or strict: what registration tokens let in that do not say otherwise. open: with a token that ends, clusters that are used at once and bring the labels "+registrationv1alpha1.DefaultAllowedLabels+". strict: clusters without labels, which somebody approves. Annotations "+registrationv1alpha1.AnnotationAllowedLabels+" and "+registrationv1alpha1.AnnotationApproval+" of a token stand over it.")
	flags.StringVar(&o.SelfAssignedLabels, "self-assigned-labels", o.SelfAssignedLabels, "count or ignore: whether MemberClusters get the labels that agents brought when they registered, so that placements can select by them.")
	flags.StringSliceVar(&o.FailClosedGroups, "fail-closed-groups", o.FailClosedGroups, "API groups for which an ImmutabilityPolicy with failurePolicy Fail refuses requests while no gateway answers. Empty: none.")
}

// Validate returns every error at once.
func (o *Options) Validate() error {
	var all []error
	all = append(all, known("--components", o.Components, allComponents), known("--apis", o.APIs, allAPIs))
	for api, needed := range apiNeeds() {
		if missing := sets.New(needed...).Difference(sets.New(o.APIs...)); o.serves(api) && missing.Len() > 0 {
			all = append(all, fmt.Errorf("--apis: %s does not work without %s", api, strings.Join(sets.List(missing), " and ")))
		}
	}
	all = append(all, port("--secure-port", o.SecurePort), port("--webhook-port", o.WebhookPort))
	all = append(all, address("--metrics-bind-address", o.Metrics, true), address("--health-probe-bind-address", o.HealthProbes, false))
	if net.ParseIP(o.BindAddress) == nil {
		all = append(all, fmt.Errorf("--bind-address %q is not an IP address", o.BindAddress))
	}
	if o.SecurePort == o.WebhookPort {
		all = append(all, fmt.Errorf("--secure-port and --webhook-port are both %d: give each its own", o.SecurePort))
	}
	all = append(all, known("--webhook-caller", []string{o.WebhookCaller}, []string{callerLoopback, callerCertificate}))
	if (o.WebhookCaller == callerCertificate) != (o.WebhookClientCAFile != "") {
		all = append(all, errors.New("--webhook-caller=certificate goes with --webhook-client-ca-file, and it with that"))
	}
	all = append(all, port("--agents-port", o.AgentsPort))
	if o.PeerPort != 0 {
		all = append(all, port("--peer-port", o.PeerPort))
	}
	if len(o.Peers) > 0 && o.PeerPort == 0 {
		all = append(all, errors.New("--peers does nothing without --peer-port"))
	}
	for _, peer := range o.Peers {
		all = append(all, address("--peers", peer, false))
	}
	if o.AgentsAddress != "" {
		all = append(all, address("--agents-address", o.AgentsAddress, false))
	}
	if o.AgentsClientCAFile != "" && o.AgentsAddress == "" {
		all = append(all, errors.New("--agents-client-ca-file does nothing without --agents-address"))
	}
	for flag, limit := range map[string]int{
		"--max-requests-per-member": o.MaxInFlightPerMember, "--max-requests-per-user": o.MaxInFlightPerUser,
		"--max-long-requests-per-member": o.MaxLongPerMember, "--max-long-requests-per-user": o.MaxLongPerUser,
	} {
		if limit < 1 {
			all = append(all, fmt.Errorf("%s %d is not above zero", flag, limit))
		}
	}
	if o.Adopt && !o.Install {
		all = append(all, errors.New("--adopt does nothing without --install"))
	}
	if o.ExternalName != "" && !o.Install {
		all = append(all, errors.New("--external-name does nothing without --install"))
	}
	for _, problem := range validation.IsDNS1123Label(o.ArgoCDNamespace) {
		all = append(all, fmt.Errorf("--argocd-namespace %q: %s", o.ArgoCDNamespace, problem))
	}
	if o.HubURL != "" {
		if parsed, err := url.Parse(o.HubURL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			all = append(all, fmt.Errorf("--hub-url %q is not a URL that begins with https://", o.HubURL))
		}
	}
	all = append(all, o.validateKonnectivity())
	if o.AgentTokenLifetime < minTokenLifetime || o.AgentTokenLifetime > maxTokenLifetime {
		all = append(all, fmt.Errorf("--agent-token-lifetime %s is not between %s and %s", o.AgentTokenLifetime, minTokenLifetime, maxTokenLifetime))
	}
	all = append(all, known("--guard-rails", []string{o.GuardRails}, guardRailModes()), known("--certificates", []string{o.Certificates}, certificateSources()),
		known("--confirm-delete", []string{o.ConfirmDelete}, confirmDeleteModes()), known("--authorize-authors", []string{o.AuthorizeAuthors}, []string{authorizeOn, authorizeOff}))
	all = append(all, o.validateHelmCharts())
	if o.ConfirmDeleteMembers < 0 {
		all = append(all, fmt.Errorf("--confirm-delete-members %d is negative", o.ConfirmDeleteMembers))
	}
	if files := o.CertFile != "" && o.KeyFile != "" && o.CAFile != ""; (o.Certificates == certificatesFiles) != files {
		all = append(all, errors.New("--certificates=files goes with --tls-cert-file, --tls-private-key-file and --tls-ca-file, and they with it"))
	}
	all = append(all, o.validateEndpointNames())
	if (o.AuditPolicyFile == "") != (o.AuditLogPath == "") {
		all = append(all, errors.New("--audit-policy-file goes with --audit-log-path, and it with that"))
	}
	if err := o.Tracing.Validate(); err != nil {
		all = append(all, fmt.Errorf("--tracing-endpoint, --tracing-sampling-rate-per-million: %w", err))
	}
	if o.Silence <= 0 {
		all = append(all, fmt.Errorf("--cluster-unhealthy-threshold %s is not above zero", o.Silence))
	}
	if o.ForceDeleteWait <= 0 {
		all = append(all, fmt.Errorf("--force-delete-wait-time %s is not above zero", o.ForceDeleteWait))
	}
	if len(o.RegistrationNamespaces) == 0 {
		all = append(all, errors.New("--registration-namespaces is empty: name at least one namespace, or *"))
	}
	all = append(all, known("--infinite-token-approval", []string{o.InfiniteTokenApproval},
		[]string{registrationv1alpha1.ApprovalAuto, registrationv1alpha1.ApprovalManual}),
		known("--registration-policy", []string{o.RegistrationPolicy}, []string{registrationOpen, registrationStrict}),
		known("--self-assigned-labels", []string{o.SelfAssignedLabels}, []string{labelsCount, labelsIgnore}))
	if o.RegistrationPolicy == registrationStrict && o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto {
		all = append(all, errors.New("--infinite-token-approval=auto does not go with --registration-policy=strict: annotate the tokens that may approve with "+
			registrationv1alpha1.AnnotationApproval+"="+registrationv1alpha1.ApprovalAuto))
	}
	return errors.Join(all...)
}

// memberLabels says which labels of their Clusters members get.
func (o *Options) memberLabels() registration.LabelRule {
	return registration.LabelRule(o.SelfAssignedLabels == labelsIgnore)
}

// registrationDefaults are the terms of registration tokens that do not say otherwise.
func (o *Options) registrationDefaults() registration.Defaults {
	return registration.Defaults{
		Strict:          o.RegistrationPolicy == registrationStrict,
		ApproveInfinite: o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto,
	}
}

func (o *Options) validateHelmCharts() error {
	var all []error
	if err := oci.ParseAllowed(o.HelmChartRegistries); err != nil {
		all = append(all, fmt.Errorf("--helm-chart-registries: %w", err))
	}
	if len(o.HelmChartRegistries) > 0 && !o.HelmCharts {
		all = append(all, errors.New("--helm-chart-registries does nothing without --helm-charts"))
	}
	if o.HelmChartCredentials != "" {
		if len(o.HelmChartRegistries) == 0 {
			all = append(all, errors.New("--helm-chart-credentials does nothing without --helm-chart-registries"))
		}
		if _, err := oci.ReadCredentials(o.HelmChartCredentials); err != nil {
			all = append(all, fmt.Errorf("--helm-chart-credentials: %w", err))
		}
	}
	return errors.Join(all...)
}

func (o *Options) validateKonnectivity() error {
	var all []error
	if o.KonnectivityAgents && o.AgentsAddress == "" {
		all = append(all, errors.New("--konnectivity-agents does nothing without --agents-address"))
	}
	if o.KonnectivityFrontends != "" {
		all = append(all, address("--konnectivity-frontends-address", o.KonnectivityFrontends, false))
	}
	if o.AgentsClientCAFile != "" && o.AgentsClientCAFile == o.KonnectivityFrontendsCA {
		all = append(all, errors.New("--agents-client-ca-file and --konnectivity-frontends-ca-file are one file: an agent's certificate would be good for frontends, and the reverse"))
	}
	if _, err := konnectivity.ParseAllow(o.KonnectivityAllow); err != nil {
		all = append(all, fmt.Errorf("--konnectivity-allow: %w", err))
	}
	const most = 16
	if o.KonnectivityReplicas < 0 || o.KonnectivityReplicas > most {
		all = append(all, fmt.Errorf("--konnectivity-replicas %d is not between 0 and %d", o.KonnectivityReplicas, most))
	}
	if o.KonnectivityLanes < 1 || o.KonnectivityLanes > most {
		all = append(all, fmt.Errorf("--konnectivity-lanes %d is not between 1 and %d", o.KonnectivityLanes, most))
	}
	return errors.Join(all...)
}

// validateEndpointNames reports what no certificate can be valid for.
func (o *Options) validateEndpointNames() error {
	if len(o.EndpointNames) > 0 && o.Certificates == certificatesFiles {
		return errors.New("--endpoint-names does nothing with --certificates=files: the certificate of the file has names of its own")
	}
	var all []error
	for _, name := range o.EndpointNames {
		if net.ParseIP(name) != nil {
			continue
		}
		if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*.")); len(problems) > 0 {
			all = append(all, fmt.Errorf("--endpoint-names %q is neither an address nor a DNS name: %s", name, strings.Join(problems, ", ")))
		}
	}
	return errors.Join(all...)
}

// registrationNamespaces are those that are named, and none if every one will do.
func (o *Options) registrationNamespaces() []string {
	if slices.Contains(o.RegistrationNamespaces, "*") {
		return nil
	}
	return o.RegistrationNamespaces
}

func known(flag string, given, allowed []string) error {
	if len(given) == 0 {
		return fmt.Errorf("%s is empty: choose from %s", flag, strings.Join(allowed, ", "))
	}
	if unknown := sets.New(given...).Difference(sets.New(allowed...)); unknown.Len() > 0 {
		return fmt.Errorf("%s does not know %s: choose from %s", flag, strings.Join(sets.List(unknown), ", "), strings.Join(allowed, ", "))
	}
	return nil
}

func port(flag string, number int) error {
	if number < 1 || number > 65535 {
		return fmt.Errorf("%s %d is not a port", flag, number)
	}
	return nil
}

func address(flag, value string, mayBeOff bool) error {
	if mayBeOff && value == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("%s %q is not host:port", flag, value)
	}
	return nil
}

// UninstallOptions are the flags of `gateway uninstall`.
type UninstallOptions struct {
	Kubeconfig string
	Namespace  string
	Stop       string
}

// NewUninstallOptions returns the defaults.
func NewUninstallOptions() *UninstallOptions {
	return &UninstallOptions{Namespace: clusterv1beta1.SystemNamespace}
}

// AddFlags binds the options to a command line.
func (o *UninstallOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the hub. Empty: the account of the Pod that this runs in.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
	flags.StringVar(&o.Stop, "stop", o.Stop, "Deployment in --namespace to scale to none before, as the chart does. Empty: the gateways have been stopped.")
}

// DiagnoseOptions are the flags of `gateway diagnose`.
type DiagnoseOptions struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// NewDiagnoseOptions returns the defaults.
func NewDiagnoseOptions() *DiagnoseOptions {
	return &DiagnoseOptions{Namespace: clusterv1beta1.SystemNamespace}
}

// AddFlags binds the options to a command line.
func (o *DiagnoseOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Your kubeconfig of the hub. Empty: what kubectl takes, $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Its context for the hub. Empty: the current one.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the gateway on the hub.")
}

// Config is what the options mean, ready to run with.
type Config struct {
	Options
	// Hub reaches the hub's API server as the gateway itself.
	Hub *rest.Config
	// HubCA verifies HubURL (PEM).
	HubCA []byte
	// AgentsClientCA verifies client certificates of agents (PEM).
	AgentsClientCA []byte
}

// Config reads the files that the options name. Call Validate before.
func (o *Options) Config() (*Config, error) {
	hub, err := loadHub(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	// The API server's own fairness limits the gateway; a client-side limit would
	// only make it slow.
	hub.QPS = -1
	config := &Config{Options: *o, Hub: hub}
	if config.HubURL == "" {
		config.HubURL = hub.Host
	}
	if config.HubCA, err = o.hubCA(hub); err != nil {
		return nil, err
	}
	if o.AgentsClientCAFile != "" {
		if config.AgentsClientCA, err = readCA(o.AgentsClientCAFile); err != nil {
			return nil, fmt.Errorf("reading --agents-client-ca-file: %w", err)
		}
	}
	return config, nil
}

func loadHub(path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the hub: %w: run the gateway in a Pod of the hub or give --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	return config, nil
}

func (o *Options) hubCA(hub *rest.Config) ([]byte, error) {
	path := o.HubCAFile
	if path == "" {
		if len(hub.CAData) > 0 {
			return hub.CAData, nil
		}
		path = hub.CAFile
	}
	if path == "" {
		return nil, nil // The hub's certificate is publicly trusted.
	}
	ca, err := readCA(path)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's CA: %w", err)
	}
	return ca, nil
}

func readCA(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCABytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxCABytes)
	}
	return os.ReadFile(path)
}

// KubeconfigOptions are the flags of the command kubeconfig.
type KubeconfigOptions struct {
	Kubeconfig     string
	Context        string
	Into           string
	Endpoint       string
	EndpointCAFile string
}

// NewKubeconfigOptions returns the defaults.
func NewKubeconfigOptions() *KubeconfigOptions { return &KubeconfigOptions{} }

// AddFlags binds the options to a command line.
func (o *KubeconfigOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Your kubeconfig of the hub. Empty: what kubectl takes, $KUBECONFIG or ~/.kube/config.")
	flags.StringVar(&o.Context, "context", o.Context, "Its context for the hub. Empty: the current one.")
	flags.StringVar(&o.Into, "into", o.Into, "Add the result to this file, which keeps its current context, instead of printing it.")
	flags.StringVar(&o.Endpoint, "endpoint", o.Endpoint, "URL of the gateway's own endpoint, to spare the hub's API server the traffic. Empty: go through the hub.")
	flags.StringVar(&o.EndpointCAFile, "endpoint-ca-file", o.EndpointCAFile, "PEM file that verifies --endpoint. Empty: its certificate is publicly trusted.")
}

// leaseName is the Lease of the leader. Gateways that run different components
// do not compete: each set has a leader of its own.
func (o *Options) leaseName() string {
	const all = install.LeaderLease
	if sets.New(o.Components...).HasAll(allComponents...) {
		return all
	}
	return all + "-" + strings.Join(sets.List(sets.New(o.Components...)), "-")
}

func (o *Options) runs(component string) bool { return slices.Contains(o.Components, component) }

func (o *Options) serves(api string) bool { return slices.Contains(o.APIs, api) }
