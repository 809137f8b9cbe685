// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpproxy"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/certificate"
	"fleetgate.io/fleetgate/pkg/cluster/enroll"
	"fleetgate.io/fleetgate/pkg/tracing"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

const (
	maxBootstrapBytes = 1 << 20
	// maxHubName is what fits behind the longest name that carries it, which is that of
	// the accounts' namespace.
	maxHubName = 16
)

// Options are the agent's flags. This file is the only one that reads them. Config says
// which namespaces are meant where they are left empty.
type Options struct {
	MemberKubeconfig string
	HubName          string
	Namespace        string
	BootstrapFile    string
	ClientID         string
	Labels           map[string]string
	AccountNamespace string
	Adopt            bool
	Deployment       string
	Metrics          string
	HealthProbes     string
	Tracing          tracing.Config
	HTTPSProxy       string
	NoProxy          string

	TunnelProtocol   string
	TunnelServer     string
	TunnelServerName string
	TunnelCAFile     string
	TunnelCertFile   string
	TunnelKeyFile    string
	TunnelAllow      []string

	BootstrapKubeconfig string
	MemberName          string
	HubURL              string
	HubCAFile           string
	HubTokenFile        string
	HubKubeconfig       string

	NamespacedApplier string
	CollectNamespaces bool
	HubCertificate    bool

	Components    []string
	AgentID       string
	RawFeedback   bool
	Executor      string
	EvictionGrace time.Duration

	DeleteTakenOver bool
	RemovalWait     time.Duration
}

// What an agent can do for nothing else.
const (
	componentAll   = "all"
	componentWorks = "works"
)

// What becomes of the executor of a ManifestWork.
const (
	executorReview      = "review"
	executorImpersonate = "impersonate"
)

// doesWorksOnly reports whether the agent applies ManifestWorks and does nothing else.
func (o *Options) doesWorksOnly() bool { return slices.Equal(o.Components, []string{componentWorks}) }

// The protocols of a tunnel.
const (
	tunnelNative       = "native"
	tunnelKonnectivity = "konnectivity"
)

// NewOptions returns the defaults.
func NewOptions() *Options {
	proxy := httpproxy.FromEnvironment()
	return &Options{
		Metrics:      ":8080",
		HealthProbes: ":8081",
		HTTPSProxy:   proxy.HTTPSProxy,
		NoProxy:      proxy.NoProxy,

		TunnelProtocol: tunnelNative,

		Components:    []string{componentAll},
		EvictionGrace: time.Hour,
		Executor:      executorReview,
		RemovalWait:   5 * time.Minute,
	}
}

// AddFlags binds the options to a command line.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.MemberKubeconfig, "member-kubeconfig", o.MemberKubeconfig, "Kubeconfig of the member. Empty: the account of the Pod that the agent runs in.")
	flags.StringVar(&o.HubName, "hub-name", o.HubName, "Name that tells this hub from others that the member belongs to, "+
		"at most "+strconv.Itoa(maxHubName)+" characters: it is part of the names of what the agent makes on the member. Empty for the only hub, or the first. Choose it before the agent registers.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace of the agent on the member, where it keeps its key and its credential. Empty: "+clusterv1beta1.SystemNamespace+", and with --hub-name that, a hyphen and the name.")
	flags.StringVar(&o.BootstrapFile, "bootstrap-file", o.BootstrapFile,
		"File with the values of a ClusterRegistrationToken, as its Secret holds them. Needed until the agent is registered; empty: Secret "+enroll.BootstrapSecret+" in --namespace.")
	flags.StringVar(&o.BootstrapKubeconfig, "bootstrap-kubeconfig", o.BootstrapKubeconfig,
		"Instead of --bootstrap-file: a kubeconfig with the token of a ClusterRegistrationToken, whose context names the token's namespace; its proxy-url is used and kept.")
	flags.StringVar(&o.MemberName, "member-name", o.MemberName, "Name of the MemberCluster on the hub that names this agent's identity. With it the agent does not register, and its hub credential is the one that the flags --hub-* give.")
	flags.StringVar(&o.HubURL, "hub-url", o.HubURL, "With --member-name: URL of the hub's API server.")
	flags.StringVar(&o.HubCAFile, "hub-ca-file", o.HubCAFile, "With --hub-url: PEM file that verifies it. Empty: what the operating system trusts.")
	flags.StringVar(&o.HubTokenFile, "hub-token-file", o.HubTokenFile, "With --hub-url: file with a bearer token that somebody refreshes; it is read again at least once a minute.")
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", o.HubKubeconfig, "With --member-name, instead of --hub-url: kubeconfig of the hub. A command in it is run for credentials.")
	flags.StringVar(&o.ClientID, "client-id", o.ClientID, "Text that identifies this cluster to the hub, for a Cluster that was made there beforehand. Empty: the UID of namespace kube-system.")
	flags.StringToStringVar(&o.Labels, "labels", o.Labels, "Labels that the cluster gets when the hub makes it for this agent.")
	flags.StringVar(&o.AccountNamespace, "account-namespace", o.AccountNamespace,
		"Namespace on the member for the accounts of ManagedServiceAccounts. Empty: "+authenticationv1beta1.AccountNamespace+", and with --hub-name that, a hyphen and the name. Accounts in a former one stay: delete that namespace.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt,
		"Note which accounts in --account-namespace OCM's agent holds for ManagedServiceAccounts while it runs, and take them over when it is stopped. Take the flag away afterwards.")
	flags.StringVar(&o.NamespacedApplier, "namespaced-applier", o.NamespacedApplier,
		"Name of the ServiceAccount as which Works of ResourcePlacements are applied, in the placement's namespace on the member. Empty: as the agent.")
	flags.BoolVar(&o.CollectNamespaces, "collect-namespaces", o.CollectNamespaces,
		"Tell the hub the names of the member's namespaces, up to 200, and keep that up to date: new ResourcePlacements leave a member out that does not have theirs.")
	flags.BoolVar(&o.HubCertificate, "hub-certificate", o.HubCertificate,
		"Have a client's certificate of the hub, of the user system:open-cluster-management:MEMBER:"+certificate.Agent+", in Secret "+certificate.Secret+" of --namespace: by that name managers of Open Cluster Management's add-ons know the cluster.")
	flags.StringSliceVar(&o.Components, "components", o.Components,
		"What the agent does: all, or works, which is to apply the ManifestWorks in the namespace on the hub that has --member-name, as a cluster has it whose registration another agent keeps, and nothing else.")
	flags.StringVar(&o.AgentID, "agent-id", o.AgentID, "Tells agents that apply ManifestWorks on one cluster apart: AppliedManifestWorks with this ID are this agent's to look after. "+
		"Give the one that the agent had which is replaced. Empty: --namespace, which stays when the hub moves to another URL; with --components=works the hash of the hub's URL.")
	flags.BoolVar(&o.RawFeedback, "raw-feedback", o.RawFeedback, "Report values of feedback rules of ManifestWorks that are no text, number or truth value, as JSON of 1024 characters at most.")
	flags.DurationVar(&o.EvictionGrace, "eviction-grace", o.EvictionGrace,
		"For how long what a ManifestWork brought stays on the cluster after it vanished from the hub without being deleted. From 100 years on: for ever.")
	flags.BoolVar(&o.DeleteTakenOver, "delete-taken-over", o.DeleteTakenOver,
		"Delete objects that existed on the member before a placement applied them when they leave it, as KubeFleet does. Without it they stay, unless they are annotated fleetgate.io/delete-policy=Delete.")
	flags.DurationVar(&o.RemovalWait, "removal-wait", o.RemovalWait,
		"For how long custom resources may end before the workloads, roles and definitions of the same Work are deleted too.")
	flags.StringVar(&o.Executor, "executor", o.Executor, "What becomes of the executor of a ManifestWork: review asks whether that account has every right and writes as the agent, as Open Cluster Management does; impersonate writes as the account.")
	flags.StringVar(&o.Deployment, "deployment", o.Deployment, "Name of the agent's own Deployment in --namespace, whose status tells those who wait for it why the agent is not registered. Empty: none.")
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics; 0 switches it off.")
	flags.StringVar(&o.TunnelProtocol, "tunnel-protocol", o.TunnelProtocol, "Protocol of the tunnel: native, or konnectivity to a gateway, or another server, that takes Konnectivity's agents.")
	flags.StringVar(&o.TunnelServer, "tunnel-server", o.TunnelServer, "With konnectivity: address (host:port) at which the server takes agents.")
	flags.StringVar(&o.TunnelServerName, "tunnel-server-name", o.TunnelServerName, "With konnectivity: name for which the server's certificate must be valid. Empty: the host of --tunnel-server.")
	flags.StringVar(&o.TunnelCAFile, "tunnel-ca-file", o.TunnelCAFile, "With konnectivity: PEM file of the CA that verifies the server. Empty: the system's CAs.")
	flags.StringVar(&o.TunnelCertFile, "tunnel-cert-file", o.TunnelCertFile, "With konnectivity: PEM file of the agent's own certificate, read anew for each connection. Empty: a token of the agent's account on the hub.")
	flags.StringVar(&o.TunnelKeyFile, "tunnel-key-file", o.TunnelKeyFile, "With konnectivity: PEM file of that certificate's key.")
	flags.StringSliceVar(&o.TunnelAllow, "tunnel-allow", o.TunnelAllow, "With konnectivity: what may be dialed beside the member's API server: name:port, address:port or network:port, where the port may be *.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Host and port of a collector of OpenTelemetry traces nearby, reached by gRPC without TLS. Empty: no traces.")
	flags.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion, "How many of a million requests of the agent are traced.")
	flags.StringVar(&o.HealthProbes, "health-probe-bind-address", o.HealthProbes, "Address of /livez and /readyz.")
}

// Validate returns every error at once.
func (o *Options) Validate() error {
	var all []error
	all = append(all, o.validateNames()...)
	all = append(all, o.validateWorks()...)
	for key, value := range o.Labels {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			all = append(all, fmt.Errorf("--labels %s=%s: %s", key, value, problem))
		}
	}
	if _, _, err := net.SplitHostPort(o.Metrics); err != nil && o.Metrics != "0" {
		all = append(all, fmt.Errorf("--metrics-bind-address %q is not host:port", o.Metrics))
	}
	if _, _, err := net.SplitHostPort(o.HealthProbes); err != nil {
		all = append(all, fmt.Errorf("--health-probe-bind-address %q is not host:port", o.HealthProbes))
	}
	if err := o.Tracing.Validate(); err != nil {
		all = append(all, fmt.Errorf("--tracing-endpoint, --tracing-sampling-rate-per-million: %w", err))
	}
	all = append(all, o.validateTunnel())
	all = append(all, o.validateHub()...)
	return errors.Join(all...)
}

// validateNames looks at what agents of several hubs on one member must not share.
func (o *Options) validateNames() []error {
	var all []error
	if o.HubName != "" {
		for _, problem := range validation.IsDNS1123Label(o.HubName) {
			all = append(all, fmt.Errorf("--hub-name %q: %s", o.HubName, problem))
		}
		if len(o.HubName) > maxHubName {
			all = append(all, fmt.Errorf("--hub-name %q has more than %d characters", o.HubName, maxHubName))
		}
	}
	for _, given := range []struct{ flag, namespace string }{{"--namespace", o.Namespace}, {"--account-namespace", o.AccountNamespace}} {
		if given.namespace == "" {
			continue
		}
		for _, problem := range validation.IsDNS1123Label(given.namespace) {
			all = append(all, fmt.Errorf("%s %q: %s", given.flag, given.namespace, problem))
		}
	}
	if o.NamespacedApplier != "" {
		for _, problem := range validation.IsDNS1123Subdomain(o.NamespacedApplier) {
			all = append(all, fmt.Errorf("--namespaced-applier %q: %s", o.NamespacedApplier, problem))
		}
	}
	return all
}

// validateWorks looks at how ManifestWorks are applied.
func (o *Options) validateWorks() []error {
	var all []error
	if !o.doesWorksOnly() && !slices.Equal(o.Components, []string{componentAll}) {
		all = append(all, fmt.Errorf("--components %q is neither all nor works", o.Components))
	}
	if o.doesWorksOnly() && o.MemberName == "" {
		all = append(all, errors.New("--components=works needs --member-name, and --hub-kubeconfig or --hub-url: such an agent does not register"))
	}
	if o.Executor != executorReview && o.Executor != executorImpersonate {
		all = append(all, fmt.Errorf("--executor %q is neither review nor impersonate", o.Executor))
	}
	if o.EvictionGrace < 0 {
		all = append(all, fmt.Errorf("--eviction-grace %s is negative", o.EvictionGrace))
	}
	if o.RemovalWait < time.Second {
		all = append(all, fmt.Errorf("--removal-wait %s is less than a second", o.RemovalWait))
	}
	for _, problem := range validation.IsValidLabelValue(o.AgentID) {
		all = append(all, fmt.Errorf("--agent-id %q: %s", o.AgentID, problem))
	}
	return all
}

// ofHub is a name of the first hub, or the one that the named hub has in its place.
func (o *Options) ofHub(name string) string {
	if o.HubName == "" {
		return name
	}
	return name + "-" + o.HubName
}

func (o *Options) validateTunnel() error {
	var all []error
	switch o.TunnelProtocol {
	case tunnelNative:
		if o.TunnelServer != "" || o.TunnelCAFile != "" || o.TunnelServerName != "" || o.TunnelCertFile != "" || len(o.TunnelAllow) > 0 {
			all = append(all, errors.New("--tunnel-server, --tunnel-server-name, --tunnel-ca-file, --tunnel-cert-file and --tunnel-allow do nothing without --tunnel-protocol=konnectivity"))
		}
	case tunnelKonnectivity:
		if host, _, err := net.SplitHostPort(o.TunnelServer); err != nil || host == "" {
			all = append(all, fmt.Errorf("--tunnel-server %q is not host:port", o.TunnelServer))
		}
	default:
		all = append(all, fmt.Errorf("--tunnel-protocol %q is neither native nor konnectivity", o.TunnelProtocol))
	}
	if (o.TunnelCertFile == "") != (o.TunnelKeyFile == "") {
		all = append(all, errors.New("--tunnel-cert-file and --tunnel-key-file need each other"))
	}
	if _, err := konnectivity.ParseAllow(o.TunnelAllow); err != nil {
		all = append(all, fmt.Errorf("--tunnel-allow: %w", err))
	}
	return errors.Join(all...)
}

// validateHub looks at the two ways to the hub, of which one must be taken whole.
func (o *Options) validateHub() []error {
	var all []error
	if o.BootstrapFile != "" && o.BootstrapKubeconfig != "" {
		all = append(all, errors.New("--bootstrap-file and --bootstrap-kubeconfig are both given: choose one"))
	}
	given := o.HubURL != "" || o.HubKubeconfig != ""
	if o.MemberName == "" {
		if given || o.HubCAFile != "" || o.HubTokenFile != "" {
			all = append(all, errors.New("--hub-url, --hub-ca-file, --hub-token-file and --hub-kubeconfig do nothing without --member-name"))
		}
		return all
	}
	if o.HubCertificate {
		all = append(all, errors.New("--hub-certificate is for an agent that registers: a hub gives certificates to the accounts that it makes"))
	}
	namespace := clusterv1beta1.MemberNamespace(o.MemberName)
	if o.doesWorksOnly() {
		namespace = o.MemberName
	}
	for _, problem := range validation.IsDNS1123Label(namespace) {
		all = append(all, fmt.Errorf("--member-name %q: %s", o.MemberName, problem))
	}
	if o.BootstrapFile != "" || o.BootstrapKubeconfig != "" {
		all = append(all, errors.New("--member-name is for an agent that does not register: leave --bootstrap-file and --bootstrap-kubeconfig out"))
	}
	if !given || o.HubURL != "" && o.HubKubeconfig != "" {
		all = append(all, errors.New("--member-name needs either --hub-url or --hub-kubeconfig"))
	}
	if o.HubURL != "" {
		if parsed, err := url.Parse(o.HubURL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			all = append(all, fmt.Errorf("--hub-url %q is not a URL that begins with https://", o.HubURL))
		}
		if o.HubTokenFile == "" {
			all = append(all, errors.New("--hub-url needs --hub-token-file"))
		}
	}
	return all
}

// Config is what the options mean, ready to run with.
type Config struct {
	Options
	// Member reaches the member's own API server.
	Member *rest.Config
	// Bootstrap is what a file gave to register with, or nil.
	Bootstrap *enroll.Bootstrap
	// Missing says which file with them is not there, if one was named.
	Missing string
	// Hub reaches the hub with an identity that others keep, or is nil: then the agent
	// registers.
	Hub *rest.Config
}

// Config reads the files that the options name. Call Validate before.
func (o *Options) Config() (*Config, error) {
	member, err := loadMember(o.MemberKubeconfig)
	if err != nil {
		return nil, err
	}
	member.QPS = -1 // The member's own priority and fairness limits the agent.
	bootstrap, missing, err := o.loadBootstrap()
	if err != nil {
		return nil, err
	}
	hub, err := o.loadHub()
	if err != nil {
		return nil, err
	}
	config := &Config{Options: *o, Member: member, Bootstrap: bootstrap, Missing: missing, Hub: hub}
	config.Namespace = cmp.Or(o.Namespace, o.ofHub(clusterv1beta1.SystemNamespace))
	if !o.doesWorksOnly() {
		// No two agents of a cluster share a namespace, and it is the same wherever the hub is.
		config.AgentID = cmp.Or(o.AgentID, config.Namespace)
	}
	config.AccountNamespace = cmp.Or(o.AccountNamespace, o.ofHub(authenticationv1beta1.AccountNamespace))
	return config, nil
}

// loadHub returns nil for an agent that registers.
func (o *Options) loadHub() (*rest.Config, error) {
	if o.MemberName == "" {
		return nil, nil
	}
	if o.HubKubeconfig == "" {
		return &rest.Config{
			Host: o.HubURL, TLSClientConfig: rest.TLSClientConfig{CAFile: o.HubCAFile}, BearerTokenFile: o.HubTokenFile,
		}, nil
	}
	hub, err := clientcmd.BuildConfigFromFlags("", o.HubKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	return hub, nil
}

func loadMember(path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the member: %w: run the agent in a Pod of the member or give --member-kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --member-kubeconfig: %w", err)
	}
	return config, nil
}

// loadBootstrap reads the file if it is there, and says so if not: once the agent is
// registered it is not needed, and whoever wrote it may have removed it.
func (o *Options) loadBootstrap() (bootstrap *enroll.Bootstrap, missing string, err error) {
	flag, path, parse := "--bootstrap-file", o.BootstrapFile, enroll.ParseBootstrap
	if o.BootstrapKubeconfig != "" {
		flag, path, parse = "--bootstrap-kubeconfig", o.BootstrapKubeconfig, enroll.ParseBootstrapKubeconfig
	}
	if path == "" {
		return nil, "", nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, flag + " " + path + " is not there", nil
	}
	if err == nil && info.Size() > maxBootstrapBytes {
		err = fmt.Errorf("it has more than %d bytes", maxBootstrapBytes)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", flag, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", flag, err)
	}
	bootstrap, err = parse(content)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s %s: %w", flag, path, err)
	}
	return bootstrap, "", nil
}
