// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AgentConfiguration configures the agent.
type AgentConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Member configures the agent on the member.
	Member MemberConfiguration `json:"member"`
	// Hub is the hub and, for an agent that does not register, its credential there.
	Hub AgentHubConfiguration `json:"hub"`
	// Registration configures how the agent registers.
	Registration AgentRegistrationConfiguration `json:"registration"`
	// Accounts configures the ServiceAccounts of ManagedServiceAccounts.
	Accounts AccountsConfiguration `json:"accounts"`
	// Works configures how the agent applies resources.
	Works WorksConfiguration `json:"works"`
	// Tunnel configures the tunnel to the hub.
	Tunnel TunnelConfiguration `json:"tunnel"`
	// Process configures metrics, probes and tracing.
	Process AgentProcessConfiguration `json:"process"`
}

// MemberConfiguration configures the agent on the member.
type MemberConfiguration struct {
	// Namespace of the agent on the member, where it stores its key and its credential. If unset,
	// fleet-system, or fleet-system-<hub name> with hub.name.
	Namespace string `json:"namespace"`
	// Deployment is the name of the agent's own Deployment in namespace. Its status reports why the
	// agent is not registered, so that helm --wait shows it. If unset, no Deployment is updated.
	Deployment string `json:"deployment"`
	// Components are all, or works. works: only apply the ManifestWorks in the hub namespace of the same
	// name as hub.memberName, for a cluster that another agent registers.
	Components []string `json:"components"`
	// CollectNamespaces reports the names of the member's namespaces to the hub, up to 200, and keeps
	// them up to date. New ResourcePlacements then skip a member that does not have their namespace.
	CollectNamespaces bool `json:"collectNamespaces"`
	// ResourceScores writes scores for the free CPU, memory and extended resources of the member to the
	// AddOnPlacementScore resource-usage-score in the namespace of its ManagedCluster on the hub.
	// Placements of Open Cluster Management rank clusters by them.
	ResourceScores bool `json:"resourceScores"`
}

// AgentHubConfiguration is the hub and, for an agent that does not register, its credential there.
type AgentHubConfiguration struct {
	// Name of this hub, at most 16 characters, if the member belongs to several hubs. It is part of the
	// names of objects that the agent creates on the member. Leave it unset for the only hub or for the
	// first one. Set it before the agent registers.
	Name string `json:"name"`
	// MemberName is the name of the MemberCluster that names the identity of this agent. The agent then
	// does not register and uses the hub credential in this section.
	MemberName string `json:"memberName"`
	// URL of the hub's API server. Used with memberName.
	URL string `json:"url"`
	// CAFile is the PEM file that verifies url. If unset, the CAs of the operating system are used.
	CAFile string `json:"caFile"`
	// TokenFile has a bearer token that another program refreshes. The agent reads it again at least
	// once a minute. Used with url.
	TokenFile string `json:"tokenFile"`
	// Kubeconfig is the path of the kubeconfig for the hub, with memberName and instead of url. An exec
	// plugin in it is run for credentials.
	Kubeconfig string `json:"kubeconfig"`
}

// AgentRegistrationConfiguration configures how the agent registers.
type AgentRegistrationConfiguration struct {
	// BootstrapFile has the values of a ClusterRegistrationToken, in the format of its Secret. Needed
	// until the agent is registered. If unset, the agent reads the Secret fleet-agent-bootstrap in
	// member.namespace.
	BootstrapFile string `json:"bootstrapFile"`
	// BootstrapKubeconfig is, instead of bootstrapFile, a kubeconfig with the token of a
	// ClusterRegistrationToken. Its context names the namespace of the token. The agent uses and keeps
	// its proxy-url.
	BootstrapKubeconfig string `json:"bootstrapKubeconfig"`
	// ClientID identifies this cluster to the hub, for a Cluster that was created there before. If
	// unset, the UID of the namespace kube-system is used.
	ClientID string `json:"clientID"`
	// Labels for the Cluster that the hub creates for this agent.
	Labels map[string]string `json:"labels"`
	// HubCertificate requests a client certificate of the hub for the user
	// system:open-cluster-management:MEMBER:fleetgate, and stores it in the Secret agent-certificate in
	// member.namespace. Managers of Open Cluster Management add-ons identify the cluster by that name.
	// Agents of add-ons then authenticate to the hub with certificates, and otherwise with tokens.
	HubCertificate bool `json:"hubCertificate"`
}

// AccountsConfiguration configures the ServiceAccounts of ManagedServiceAccounts.
type AccountsConfiguration struct {
	// Namespace on the member for the ServiceAccounts of ManagedServiceAccounts. If unset,
	// open-cluster-management-managed-serviceaccount, with -<hub name> after it with hub.name. Accounts
	// in a previous namespace stay; delete that namespace.
	Namespace string `json:"namespace"`
	// Adopt records which accounts in namespace belong to OCM's agent while that agent runs, and takes
	// them over when it stops. Remove the field afterwards.
	Adopt bool `json:"adopt"`
}

// WorksConfiguration configures how the agent applies resources.
type WorksConfiguration struct {
	// AgentID distinguishes agents that apply ManifestWorks on the same cluster. The agent manages the
	// AppliedManifestWorks with this ID. When you replace an agent, set the ID of the previous one. If
	// unset, member.namespace is used, which stays the same when the URL of the hub changes; with
	// component works, the hash of the hub's URL.
	AgentID string `json:"agentID"`
	// NamespacedApplier is the name of the ServiceAccount, in the namespace of the placement on the
	// member, that applies Works of ResourcePlacements. If unset, the agent applies them as itself.
	NamespacedApplier string `json:"namespacedApplier"`
	// Executor is how the agent uses the executor of a ManifestWork. review: check that the account has
	// all rights and write as the agent, like Open Cluster Management. impersonate: write as the
	// account.
	Executor string `json:"executor"`
	// RawFeedback reports feedback values of ManifestWorks that are neither string, number nor boolean,
	// as JSON of at most 1024 characters.
	RawFeedback bool `json:"rawFeedback"`
	// EvictionGracePeriod is the time that resources of a ManifestWork stay on the cluster after the
	// ManifestWork vanished from the hub without being deleted. 100 years or more: indefinitely.
	EvictionGracePeriod metav1.Duration `json:"evictionGracePeriod"`
	// DeleteTakenOver deletes objects that existed on the member before a placement applied them when
	// they leave the placement, as KubeFleet does. If false, they stay, unless they have the annotation
	// fleetgate.io/delete-policy=Delete.
	DeleteTakenOver bool `json:"deleteTakenOver"`
	// OnlyLabelledNamespaces writes into a namespace that the fleet did not create only if it has the
	// label fleetgate.io/enter=true on the member. Recommended in production, because Pods in such a
	// namespace can run as its accounts.
	OnlyLabelledNamespaces bool `json:"onlyLabelledNamespaces"`
	// RemovalWait is the time that a deletion waits for custom resources to end before it deletes the
	// workloads, roles and definitions of the same Work.
	RemovalWait metav1.Duration `json:"removalWait"`
}

// TunnelConfiguration configures the tunnel to the hub.
type TunnelConfiguration struct {
	// Protocol of the tunnel: native, or konnectivity for a gateway or another server that accepts
	// Konnectivity agents. The other fields but dataConnections belong to konnectivity.
	Protocol string `json:"protocol"`
	// DataConnections opens additional connections to the gateway's agents' port, if the gateway asks
	// for them with its field of that name. Used with protocol native.
	DataConnections bool `json:"dataConnections"`
	// Server is the address (host:port) at which the server accepts agents.
	Server string `json:"server"`
	// ServerName is the name for which the certificate of the server must be valid. If unset, the host
	// of server is used.
	ServerName string `json:"serverName"`
	// CAFile is the PEM file of the CA that verifies the server. If unset, the CAs of the operating
	// system are used.
	CAFile string `json:"caFile"`
	// CertFile is the PEM file of the client certificate of the agent, read for each connection. If
	// unset, the agent uses a token of its account on the hub.
	CertFile string `json:"certFile"`
	// KeyFile is the PEM file of the private key of certFile.
	KeyFile string `json:"keyFile"`
	// Allow are additional targets, besides the member's API server, that the server may dial:
	// name:port, address:port or network:port. The port can be *.
	Allow []string `json:"allow"`
}

// AgentProcessConfiguration configures metrics, probes and tracing.
type AgentProcessConfiguration struct {
	// MetricsBindAddress is the address of /metrics. Set to 0 to disable it.
	MetricsBindAddress string `json:"metricsBindAddress"`
	// HealthProbeBindAddress is the address of /livez and /readyz.
	HealthProbeBindAddress string `json:"healthProbeBindAddress"`
	// Tracing configures where spans are sent.
	Tracing TracingConfiguration `json:"tracing"`
}
