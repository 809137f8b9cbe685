// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GatewayConfiguration configures the gateway.
type GatewayConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Hub is the address of the hub for the gateway and for members.
	Hub HubConfiguration `json:"hub"`
	// Features selects the components of this process and their APIs.
	Features FeaturesConfiguration `json:"features"`
	// Install configures the objects that the gateway installs on the hub.
	Install InstallConfiguration `json:"install"`
	// Serving configures the addresses and the serving certificate of the gateway.
	Serving ServingConfiguration `json:"serving"`
	// Webhooks configures admission reviews.
	Webhooks WebhooksConfiguration `json:"webhooks"`
	// Proxy configures authorization, audit and limits of requests to members.
	Proxy ProxyConfiguration `json:"proxy"`
	// Tunnels configures the listeners for agents and for other replicas.
	Tunnels TunnelsConfiguration `json:"tunnels"`
	// Registration configures which clusters may register, and with which defaults.
	Registration RegistrationConfiguration `json:"registration"`
	// Klusterlets configures the registration of clusters with agents of Open Cluster Management. It
	// has no effect without registration in features.ocm.
	Klusterlets KlusterletsConfiguration `json:"klusterlets"`
	// Members configures the tokens of agents, heartbeats, and the publication of members.
	Members MembersConfiguration `json:"members"`
	// Placement configures what may be placed and by whom.
	Placement PlacementConfiguration `json:"placement"`
	// Process configures metrics, probes, profiles, leader election and tracing.
	Process ProcessConfiguration `json:"process"`
}

// HubConfiguration is the address of the hub for the gateway and for members.
type HubConfiguration struct {
	// Namespace of the gateway on the hub.
	Namespace string `json:"namespace"`
	// URL at which members reach the hub's API server. The gateway writes it into registration tokens.
	// If unset, the server in the kubeconfig is used.
	URL string `json:"url"`
	// CAFile is the path of the PEM file that verifies url. If unset, the CA in the kubeconfig is used.
	CAFile string `json:"caFile"`
	// MoveAgents moves the agents of all members to url, verified by caFile. Each agent moves after it
	// has reached the hub there. Agents whose hub credential is provided by flags (--member-name) do
	// not move.
	MoveAgents bool `json:"moveAgents"`
}

// FeaturesConfiguration selects the components of this process and their APIs.
type FeaturesConfiguration struct {
	// Components to run in this process: proxy, webhook, controllers.
	Components []string `json:"components"`
	// APIs are the API families to install and serve: fleet, rancher, msa, gateway, clusterprofile,
	// admission, fleet-azure, ocm.
	APIs []string `json:"apis"`
	// OCM are the parts of the Open Cluster Management API to serve, with ocm in apis. works:
	// ManifestWorks and ManifestWorkReplicaSets. placement: decisions of Placements. registration:
	// ManagedClusters, ManagedClusterSets and the agents of clusters. OCM's own controllers serve the
	// other parts and can run next to this gateway.
	OCM []string `json:"ocm"`
}

// InstallConfiguration configures the objects that the gateway installs on the hub.
type InstallConfiguration struct {
	// Enabled installs or updates CustomResourceDefinitions, APIServices, policies and webhook
	// configurations on the hub.
	Enabled bool `json:"enabled"`
	// Adopt takes over objects of another product that serves the same APIs and no longer runs.
	Adopt bool `json:"adopt"`
	// ExternalName is the DNS name or IPv4 address of a gateway that runs outside the hub. The Service
	// becomes type ExternalName and points there.
	ExternalName string `json:"externalName"`
	// GuardRails is what the hub rejects. off: nothing. selected: Pods and ReplicaSets in namespaces
	// that a placement selects. reference: Pods and ReplicaSets in every namespace, and changes to
	// reserved namespaces, members and CustomResourceDefinitions of the fleet.
	// reference-with-workloads: like reference, but Pods and ReplicaSets are allowed.
	GuardRails string `json:"guardRails"`
	// ConfirmDelete is off, warn or deny. It applies to the deletion of placements on many members and
	// of namespaces that a placement selects or that a ManagedCluster has, unless the object has the
	// annotation fleetgate.io/confirm-delete=true.
	ConfirmDelete string `json:"confirmDelete"`
	// ConfirmDeleteMembers is the number of members above which the deletion of a placement must be
	// confirmed.
	ConfirmDeleteMembers int `json:"confirmDeleteMembers"`
}

// ServingConfiguration configures the addresses and the serving certificate of the gateway.
type ServingConfiguration struct {
	// BindAddress is the IP address on which the aggregated API and the webhooks listen.
	BindAddress string `json:"bindAddress"`
	// SecurePort is the port of the aggregated API.
	SecurePort int `json:"securePort"`
	// WebhookPort is the port of the webhooks.
	WebhookPort int `json:"webhookPort"`
	// Certificates is the source of the serving certificate. own: a CA that the gateway manages.
	// cert-manager: a Certificate that the gateway requests. files: certFile, keyFile and caFile.
	Certificates string `json:"certificates"`
	// CertFile is the PEM file with the serving certificate. The file is reloaded when it changes.
	CertFile string `json:"certFile"`
	// KeyFile is the PEM file with the private key of the serving certificate.
	KeyFile string `json:"keyFile"`
	// CAFile is the PEM file with the CAs that verify the serving certificate.
	CAFile string `json:"caFile"`
	// Service is the name of the Service in hub.namespace through which the hub's API server reaches
	// the gateway.
	Service string `json:"service"`
	// EndpointNames are DNS names and IP addresses, besides those of service, at which clients reach
	// the gateway's own endpoint. The serving certificate includes them.
	EndpointNames []string `json:"endpointNames"`
	// MemberDomain is the domain under which each member has its own host at the gateway's endpoint,
	// <member>.<domain>. Needed for clients that drop the path of a server URL and for cookies of web
	// pages on members. Point the wildcard DNS record to the gateway. The serving certificate includes
	// it.
	MemberDomain string `json:"memberDomain"`
}

// WebhooksConfiguration configures admission reviews.
type WebhooksConfiguration struct {
	// Caller is how the hub's API server authenticates to the webhooks. loopback: reviews go through
	// the API server's own aggregation layer, as system:apiserver. certificate: reviews come directly,
	// with a client certificate of clientCAFile that the API server's AdmissionConfiguration names.
	Caller string `json:"caller"`
	// ClientCAFile is the PEM file of the CA of that client certificate. The CA must sign no other
	// certificate. The file is reloaded when it changes.
	ClientCAFile string `json:"clientCAFile"`
	// FailClosedGroups are API groups for which an ImmutabilityPolicy with failurePolicy Fail rejects
	// requests while no gateway is available. If unset, no group is fail-closed.
	FailClosedGroups []string `json:"failClosedGroups"`
}

// ProxyConfiguration configures authorization, audit and limits of requests to members.
type ProxyConfiguration struct {
	// AuthorizeMemberRequests also authorizes each request to a member on the hub, with the verb, the
	// namespace, the resource (with its group after a dot), API group request.fleetgate.io and the
	// member as name.
	AuthorizeMemberRequests bool `json:"authorizeMemberRequests"`
	// MemberGroups maps groups of the hub to the groups that members see instead, such as
	// system:masters to fleet-administrators. Callers in system:masters and kubeadm:cluster-admins are
	// rejected unless their group is mapped. A group of members cannot begin with system:.
	MemberGroups map[string]string `json:"memberGroups"`
	// AuditRequests logs one line for each request to a member: user, impersonated user, request,
	// status code, bytes and duration.
	AuditRequests bool `json:"auditRequests"`
	// AuditPolicyFile is the path of the audit policy, in the format of kube-apiserver, for events of
	// the aggregated API. Events are written to auditLogPath.
	AuditPolicyFile string `json:"auditPolicyFile"`
	// AuditLogPath is the path of the audit log, or - for standard output. The file is rotated at
	// 100 MiB, and ten files are kept.
	AuditLogPath string `json:"auditLogPath"`
	// MaxRequestsPerMember is the maximum number of short requests in flight for one member. Further
	// requests get 429.
	MaxRequestsPerMember int `json:"maxRequestsPerMember"`
	// MaxRequestsPerUser is the maximum number of short requests in flight of one user, for all members
	// together. Further requests get 429.
	MaxRequestsPerUser int `json:"maxRequestsPerUser"`
	// MaxLongRequestsPerMember is the maximum number of long-running requests (watch, logs -f, exec,
	// port-forward) in flight for one member. Further requests get 429.
	MaxLongRequestsPerMember int `json:"maxLongRequestsPerMember"`
	// MaxLongRequestsPerUser is the maximum number of long-running requests in flight of one user, for
	// all members together. Further requests get 429.
	MaxLongRequestsPerUser int `json:"maxLongRequestsPerUser"`
}

// TunnelsConfiguration configures the listeners for agents and for other replicas.
type TunnelsConfiguration struct {
	// AgentsAddress is the address (host:port) at which agents reach agentsPort. If unset, the port is
	// closed and all tunnels go through the hub's API server.
	AgentsAddress string `json:"agentsAddress"`
	// AgentsPort is the port for tunnels of agents. Used with agentsAddress.
	AgentsPort int `json:"agentsPort"`
	// AgentsClientCAFile is the PEM file of a CA for client certificates of agents at agentsPort,
	// accepted besides tokens. The common name is the user.
	AgentsClientCAFile string `json:"agentsClientCAFile"`
	// DataConnections asks agents with a tunnel at agentsPort to connect there again for each
	// connection to their API server. It carries the TLS of that connection without encrypting it
	// again. The field of that name in the configuration of an agent must be true too.
	DataConnections bool `json:"dataConnections"`
	// PeerPort is the port on which replicas of the gateway forward requests to the replica that holds
	// the tunnel of a member; 8092 is the usual value. If 0, replicas do not forward requests.
	PeerPort int `json:"peerPort"`
	// Peers are the addresses (host:port) of the other replicas. If unset, replicas are found by the
	// endpoints of serving.service. Used with peerPort.
	Peers []string `json:"peers"`
	// Konnectivity configures the listeners for Konnectivity agents and frontends.
	Konnectivity KonnectivityConfiguration `json:"konnectivity"`
}

// KonnectivityConfiguration configures the listeners for Konnectivity agents and frontends.
type KonnectivityConfiguration struct {
	// Agents also accepts Konnectivity agents at tunnels.agentsPort. They authenticate with a token for
	// audience tunnel.fleetgate.io or with a certificate.
	Agents bool `json:"agents"`
	// FrontendsAddress is the address (host:port) on which the gateway accepts Konnectivity frontends.
	// They authenticate with a token for audience frontends.tunnel.fleetgate.io or with a certificate.
	// If unset, frontends are not accepted.
	FrontendsAddress string `json:"frontendsAddress"`
	// FrontendsCAFile is the PEM file of the CA for client certificates of frontends. It must differ
	// from tunnels.agentsClientCAFile. If unset, frontends must use tokens.
	FrontendsCAFile string `json:"frontendsCAFile"`
	// FrontendsDomain is the domain for frontends. A frontend that connects to <member>.<domain> dials
	// addresses of that member. If unset, the dialed address is the name of the member.
	FrontendsDomain string `json:"frontendsDomain"`
	// Allow are additional targets, besides the API servers of members, that frontends may dial:
	// name:port, address:port or network:port. The port can be *.
	Allow []string `json:"allow"`
	// APIServer is the address at which upstream Konnectivity agents reach the API server of their
	// member. The annotation fleetgate.io/konnectivity-apiserver of a MemberCluster overrides it.
	APIServer string `json:"apiServer"`
	// Replicas is the number of gateway replicas that a Konnectivity agent connects to. If 0, an agent
	// connects to two replicas, if two exist. More than one needs tunnels.peerPort.
	Replicas int `json:"replicas"`
	// Streams is the number of streams that a Konnectivity agent opens to each replica. A slow
	// connection blocks only the connections in its own stream.
	Streams int `json:"streams"`
}

// RegistrationConfiguration configures which clusters may register, and with which defaults.
type RegistrationConfiguration struct {
	// Namespaces in which clusters may register. Use * for all namespaces.
	Namespaces []string `json:"namespaces"`
	// Policy is the default for registration tokens. open: clusters that register with an expiring
	// token are approved at once and may set labels. strict: clusters set no labels and wait for manual
	// approval. Annotations of a token override it.
	Policy string `json:"policy"`
	// InfiniteTokenApproval is auto or manual. auto: members that register with a token that never
	// expires are approved at once. manual: they wait until an administrator removes their taint. An
	// annotation of a token overrides it.
	InfiniteTokenApproval string `json:"infiniteTokenApproval"`
	// SelfAssignedLabels is count or ignore. count: MemberClusters get the labels that their agents set
	// at registration, and placements can select by them. ignore: they do not.
	SelfAssignedLabels string `json:"selfAssignedLabels"`
	// AgentImage is the image of the agent for clusters that are imported with a kubeconfig. If unset,
	// clusters cannot be imported.
	AgentImage string `json:"agentImage"`
	// AgentHostNetwork runs the agents of imported clusters in the host network, unless
	// spec.hostNetwork of the Cluster says otherwise. Set it if the hub delivers the network plugin of
	// clusters. A change installs agents again.
	AgentHostNetwork bool `json:"agentHostNetwork"`
	// AgentTolerations are taints that the agents of imported clusters tolerate: key, key:effect,
	// key=value or key=value:effect. By default, taints of nodes without a network plugin or a cloud
	// provider, and of the control plane. A change installs agents again.
	AgentTolerations []string `json:"agentTolerations"`
	// ClusterAPILabels are label keys to copy from a Cluster of Cluster API to its member, if the
	// Cluster or its namespace has the label fleetgate.io/auto-import=true. A key can
	// end with *.
	ClusterAPILabels []string `json:"clusterAPILabels"`
}

// KlusterletsConfiguration configures the registration of clusters with agents of Open Cluster
// Management.
type KlusterletsConfiguration struct {
	// AutoApprovedUsers are users whose clusters are accepted, and get their first certificate, without
	// manual approval. The bearer of such a user's credential can admit any cluster that has no agent
	// yet.
	AutoApprovedUsers []string `json:"autoApprovedUsers"`
	// SignerCertFile is for a hub where no signer issues client certificates: a PEM file with the
	// certificate of a CA that is in the API server's --client-ca-file. The gateway signs certificates
	// of klusterlets with it, and no others. If unset, the hub's controller manager signs.
	SignerCertFile string `json:"signerCertFile"`
	// SignerKeyFile is the PEM file with the private key of signerCertFile.
	SignerKeyFile string `json:"signerKeyFile"`
	// Labels for the namespaces, roles and bindings that the gateway creates for clusters.
	Labels map[string]string `json:"labels"`
}

// MembersConfiguration configures the tokens of agents, heartbeats, and the publication of members.
type MembersConfiguration struct {
	// AgentTokenLifetime is the lifetime of the hub tokens of agents. Agents renew their token every
	// hour.
	AgentTokenLifetime metav1.Duration `json:"agentTokenLifetime"`
	// AgentsPriorityLevel is the PriorityLevelConfiguration of the hub's API server for requests of
	// agents. The gateway maintains FlowSchemas that assign these requests to it, and the Leases of
	// agents to node-high. If unset, the gateway maintains no FlowSchemas.
	AgentsPriorityLevel string `json:"agentsPriorityLevel"`
	// UnhealthyThreshold is the time without a heartbeat after which the state of a member becomes
	// Unknown.
	UnhealthyThreshold metav1.Duration `json:"unhealthyThreshold"`
	// ForceDeleteWaitTime is the time that a deleted MemberCluster waits for its agent to confirm that
	// it has left.
	ForceDeleteWaitTime metav1.Duration `json:"forceDeleteWaitTime"`
	// TaintUnreachable adds the taint fleetgate.io/unreachable:NoSchedule to members whose state is
	// Unknown, and removes it at their next heartbeat.
	TaintUnreachable bool `json:"taintUnreachable"`
	// ArgoCDNamespace is the namespace of Argo CD on the hub. The gateway creates a Secret there for
	// each MemberCluster with the label fleetgate.io/argocd=true.
	ArgoCDNamespace string `json:"argoCDNamespace"`
	// ClusterProfileManager is the name of the cluster manager in the ClusterProfiles that the gateway
	// publishes. It cannot change for existing profiles.
	ClusterProfileManager string `json:"clusterProfileManager"`
}

// PlacementConfiguration configures what may be placed and by whom.
type PlacementConfiguration struct {
	// ConfigMapEnvelopes treats ConfigMaps with the annotation
	// kubernetes-fleet.io/envelope-configmap=true as envelopes, as KubeFleet did in 2023. Their content
	// is not checked: anyone who may write ConfigMaps in a placed namespace decides what members get.
	ConfigMapEnvelopes bool `json:"configMapEnvelopes"`
	// HelmCharts renders the Helm charts in annotated ConfigMaps and Secrets, for each member that they
	// are placed on. Setting the annotation needs the verb render on the object.
	HelmCharts bool `json:"helmCharts"`
	// HelmChartRegistries are OCI registries that charts may be fetched from, optionally with a
	// repository prefix (ghcr.io/acme/charts). A registry that starts with http:// is contacted without
	// TLS. If unset, no chart is fetched.
	HelmChartRegistries []string `json:"helmChartRegistries"`
	// HelmChartCredentialsFile has credentials for private registries, in the format of helm registry
	// login and of a Secret of type kubernetes.io/dockerconfigjson. The file can be replaced at any
	// time.
	HelmChartCredentialsFile string `json:"helmChartCredentialsFile"`
	// AuthorizeAuthors requires that the author of a placement may get, list or place what it selects,
	// that the author of an override may update the object, and that the author of a
	// ManifestWorkReplicaSet may create what is in its template. If false, anyone who may write
	// placements in a namespace can place everything in it.
	AuthorizeAuthors bool `json:"authorizeAuthors"`
	// Tenancy limits ResourcePlacements. off: they can place on all members. cluster-sets: they place
	// only on members of ManagedClusterSets that are bound to their namespace; needs registration in
	// features.ocm.
	Tenancy string `json:"tenancy"`
	// StandardDecisions publishes the members of every ClusterResourcePlacement and ResourcePlacement
	// as PlacementDecisions of multicluster.x-k8s.io that name ClusterProfiles; needs clusterprofile in
	// features.apis. If false, only placements with the annotation fleetgate.io/standard-decisions=true
	// get them.
	StandardDecisions bool `json:"standardDecisions"`
	// StrictEnvelopes rejects an envelope that contains an object that cannot be placed from it: an
	// object of another namespace, a cluster-scoped object in a ResourceEnvelope, or an object with
	// generateName and no name. If false, the author gets a warning, and placements report why the
	// object is not placed.
	StrictEnvelopes bool `json:"strictEnvelopes"`
	// ManifestLimit is the maximum size in bytes of all manifests of a ManifestWork, or of the template
	// of a ManifestWorkReplicaSet.
	ManifestLimit int `json:"manifestLimit"`
	// SnapshotMinimumInterval is the minimum age of the latest resource snapshot of a placement before
	// changes create another one. If 0, there is no minimum age.
	SnapshotMinimumInterval metav1.Duration `json:"snapshotMinimumInterval"`
	// ChangesCollectionDuration is the time to collect changes of the selected resources, from the
	// first change, before a resource snapshot is created. If 0, a snapshot is created at once.
	ChangesCollectionDuration metav1.Duration `json:"changesCollectionDuration"`
	// SkippedAPIs are kinds that are never placed, in KubeFleet's format: entries end with a semicolon
	// and are group, group/version or group/version/Kind,Kind; v1/Kind for the core group. Members lose
	// placed objects of these kinds.
	SkippedAPIs string `json:"skippedAPIs"`
	// AllowedAPIs are the only kinds that are placed, in the same format, besides Namespaces and
	// envelopes. Cannot be combined with skippedAPIs. If unset, all kinds are placed.
	AllowedAPIs string `json:"allowedAPIs"`
	// SkippedNamespaces are never placed, with their content. They are separated by semicolons or
	// commas. A placement that selects one reports it in its status.
	SkippedNamespaces string `json:"skippedNamespaces"`
}

// ProcessConfiguration configures metrics, probes, profiles, leader election and tracing.
type ProcessConfiguration struct {
	// MetricsBindAddress is the address of /metrics. Set to 0 to disable it.
	MetricsBindAddress string `json:"metricsBindAddress"`
	// HealthProbeBindAddress is the address of /livez and /readyz.
	HealthProbeBindAddress string `json:"healthProbeBindAddress"`
	// PprofBindAddress is the loopback address of /debug/pprof/ for go tool pprof, such as
	// 127.0.0.1:6060. Set to 0 to disable it.
	PprofBindAddress string `json:"pprofBindAddress"`
	// LeaderElect runs the controllers only in the replica that holds the leader Lease.
	LeaderElect bool `json:"leaderElect"`
	// Tracing configures where spans are sent.
	Tracing TracingConfiguration `json:"tracing"`
}
