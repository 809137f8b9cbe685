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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/hubcertificate"
	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

const (
	maxBootstrapBytes = 1 << 20
	// maxHubName is limited by the longest name that contains it, that of the accounts'
	// namespace.
	maxHubName = 16
)

// Options are the flags of the agent. Only this file reads them. Config applies the
// defaults of unset namespaces.
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

// Values of --components.
const (
	componentAll   = "all"
	componentWorks = "works"
)

// Values of --executor.
const (
	executorReview      = "review"
	executorImpersonate = "impersonate"
)

// doesWorksOnly reports whether the agent only applies ManifestWorks.
func (o *Options) doesWorksOnly() bool { return slices.Equal(o.Components, []string{componentWorks}) }

// Values of --tunnel-protocol.
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
	flags.StringVar(&o.MemberKubeconfig, "member-kubeconfig", o.MemberKubeconfig, "Path of the kubeconfig for the member. If unset, the agent uses the ServiceAccount of its Pod.")
	flags.StringVar(&o.HubName, "hub-name", o.HubName, "Name of this hub, at most "+strconv.Itoa(maxHubName)+" characters, if the member belongs to several hubs. It is part of the names of objects that the agent creates on the member. Leave it unset for the only hub or for the first one. Set it before the agent registers.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace of the agent on the member, where it stores its key and its credential. If unset, "+clusterv1beta1.SystemNamespace+", or "+clusterv1beta1.SystemNamespace+"-<hub name> with --hub-name.")
	flags.StringVar(&o.BootstrapFile, "bootstrap-file", o.BootstrapFile,
		"File with the values of a ClusterRegistrationToken, in the format of its Secret. Needed until the agent is registered. If unset, the agent reads the Secret "+enroll.BootstrapSecret+" in --namespace.")
	flags.StringVar(&o.BootstrapKubeconfig, "bootstrap-kubeconfig", o.BootstrapKubeconfig,
		"Instead of --bootstrap-file: kubeconfig with the token of a ClusterRegistrationToken. Its context names the namespace of the token. The agent uses and keeps its proxy-url.")
	flags.StringVar(&o.MemberName, "member-name", o.MemberName, "Name of the MemberCluster that names the identity of this agent. The agent then does not register and uses the hub credential in the --hub-* flags.")
	flags.StringVar(&o.HubURL, "hub-url", o.HubURL, "With --member-name: URL of the hub's API server.")
	flags.StringVar(&o.HubCAFile, "hub-ca-file", o.HubCAFile, "With --hub-url: PEM file that verifies it. If unset, the CAs of the operating system are used.")
	flags.StringVar(&o.HubTokenFile, "hub-token-file", o.HubTokenFile, "With --hub-url: file with a bearer token that another program refreshes. The agent reads it again at least once a minute.")
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", o.HubKubeconfig, "With --member-name, instead of --hub-url: path of the kubeconfig for the hub. An exec plugin in it is run for credentials.")
	flags.StringVar(&o.ClientID, "client-id", o.ClientID, "Text that identifies this cluster to the hub, for a Cluster that was created there before. If unset, the UID of the namespace kube-system is used.")
	flags.StringToStringVar(&o.Labels, "labels", o.Labels, "Labels for the Cluster that the hub creates for this agent.")
	flags.StringVar(&o.AccountNamespace, "account-namespace", o.AccountNamespace,
		"Namespace on the member for the ServiceAccounts of ManagedServiceAccounts. If unset, "+authenticationv1beta1.AccountNamespace+", or "+authenticationv1beta1.AccountNamespace+"-<hub name> with --hub-name. Accounts in a previous namespace stay; delete that namespace.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt,
		"Record which accounts in --account-namespace belong to OCM's agent while that agent runs, and take them over when it stops. Remove the flag afterwards.")
	flags.StringVar(&o.NamespacedApplier, "namespaced-applier", o.NamespacedApplier,
		"Name of the ServiceAccount, in the namespace of the placement on the member, that applies Works of ResourcePlacements. If unset, the agent applies them as itself.")
	flags.BoolVar(&o.CollectNamespaces, "collect-namespaces", o.CollectNamespaces,
		"Report the names of the member's namespaces to the hub, up to 200, and keep them up to date. New ResourcePlacements then skip a member that does not have their namespace.")
	flags.BoolVar(&o.HubCertificate, "hub-certificate", o.HubCertificate, "Request a client certificate of the hub for the user system:open-cluster-management:MEMBER:"+clusterv1.AgentName+", and store it in the Secret "+hubcertificate.Secret+" in --namespace. Managers of Open Cluster Management add-ons identify the cluster by that name.")
	flags.StringSliceVar(&o.Components, "components", o.Components,
		"all, or works. works: only apply the ManifestWorks in the hub namespace of the same name as --member-name, for a cluster that another agent registers.")
	flags.StringVar(&o.AgentID, "agent-id", o.AgentID, "ID that distinguishes agents that apply ManifestWorks on the same cluster. The agent manages the AppliedManifestWorks with this ID. "+
		"When you replace an agent, set the ID of the previous one. If unset, --namespace is used, which stays the same when the URL of the hub changes; with --components=works, the hash of the hub's URL.")
	flags.BoolVar(&o.RawFeedback, "raw-feedback", o.RawFeedback, "Report feedback values of ManifestWorks that are neither string, number nor boolean, as JSON of at most 1024 characters.")
	flags.DurationVar(&o.EvictionGrace, "eviction-grace", o.EvictionGrace,
		"Time that resources of a ManifestWork stay on the cluster after the ManifestWork vanished from the hub without being deleted. 100 years or more: indefinitely.")
	flags.BoolVar(&o.DeleteTakenOver, "delete-taken-over", o.DeleteTakenOver,
		"Delete objects that existed on the member before a placement applied them when they leave the placement, as KubeFleet does. If false, they stay, unless they have the annotation fleetgate.io/delete-policy=Delete.")
	flags.DurationVar(&o.RemovalWait, "removal-wait", o.RemovalWait,
		"Time that a deletion waits for custom resources to end before it deletes the workloads, roles and definitions of the same Work.")
	flags.StringVar(&o.Executor, "executor", o.Executor, "How the agent uses the executor of a ManifestWork. review: check that the account has all rights and write as the agent, like Open Cluster Management. impersonate: write as the account.")
	flags.StringVar(&o.Deployment, "deployment", o.Deployment, "Name of the agent's own Deployment in --namespace. Its status reports why the agent is not registered, so that helm --wait shows it. If unset, no Deployment is updated.")
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics. Set to 0 to disable it.")
	flags.StringVar(&o.TunnelProtocol, "tunnel-protocol", o.TunnelProtocol, "Protocol of the tunnel: native, or konnectivity for a gateway or another server that accepts Konnectivity agents.")
	flags.StringVar(&o.TunnelServer, "tunnel-server", o.TunnelServer, "With --tunnel-protocol=konnectivity: address (host:port) at which the server accepts agents.")
	flags.StringVar(&o.TunnelServerName, "tunnel-server-name", o.TunnelServerName, "With --tunnel-protocol=konnectivity: name for which the certificate of the server must be valid. If unset, the host of --tunnel-server is used.")
	flags.StringVar(&o.TunnelCAFile, "tunnel-ca-file", o.TunnelCAFile, "With --tunnel-protocol=konnectivity: PEM file of the CA that verifies the server. If unset, the CAs of the operating system are used.")
	flags.StringVar(&o.TunnelCertFile, "tunnel-cert-file", o.TunnelCertFile, "With --tunnel-protocol=konnectivity: PEM file of the client certificate of the agent, read for each connection. If unset, the agent uses a token of its account on the hub.")
	flags.StringVar(&o.TunnelKeyFile, "tunnel-key-file", o.TunnelKeyFile, "With --tunnel-protocol=konnectivity: PEM file of the private key of --tunnel-cert-file.")
	flags.StringSliceVar(&o.TunnelAllow, "tunnel-allow", o.TunnelAllow, "With --tunnel-protocol=konnectivity: additional targets, besides the member's API server, that the server may dial: name:port, address:port or network:port. The port can be *.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint, "Address (host:port) of an OpenTelemetry collector in the same Pod or on the same node, reached over gRPC without TLS. If unset, no traces are sent.")
	flags.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion, "Number of the agent's requests per million to trace.")
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
	if err := o.Tracing.Validate(field.NewPath("tracing")).ToAggregate(); err != nil {
		all = append(all, err)
	}
	all = append(all, o.validateTunnel())
	all = append(all, o.validateHub()...)
	return errors.Join(all...)
}

// validateNames validates names that agents of several hubs on one member must not share.
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

// validateWorks validates the options for ManifestWorks.
func (o *Options) validateWorks() []error {
	var all []error
	if !o.doesWorksOnly() && !slices.Equal(o.Components, []string{componentAll}) {
		all = append(all, fmt.Errorf("--components %q is neither all nor works", o.Components))
	}
	if o.doesWorksOnly() && o.MemberName == "" {
		all = append(all, errors.New("--components=works needs --member-name, and --hub-kubeconfig or --hub-url, because such an agent does not register"))
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

// ofHub returns the name for the first hub, or with a suffix for a named hub.
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
			all = append(all, errors.New("--tunnel-server, --tunnel-server-name, --tunnel-ca-file, --tunnel-cert-file and --tunnel-allow have no effect without --tunnel-protocol=konnectivity"))
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

// validateHub validates that exactly one way of authentication to the hub is complete.
func (o *Options) validateHub() []error {
	var all []error
	if o.BootstrapFile != "" && o.BootstrapKubeconfig != "" {
		all = append(all, errors.New("--bootstrap-file and --bootstrap-kubeconfig are both set: choose one"))
	}
	given := o.HubURL != "" || o.HubKubeconfig != ""
	if o.MemberName == "" {
		if given || o.HubCAFile != "" || o.HubTokenFile != "" {
			all = append(all, errors.New("--hub-url, --hub-ca-file, --hub-token-file and --hub-kubeconfig have no effect without --member-name"))
		}
		return all
	}
	if o.HubCertificate {
		all = append(all, errors.New("--hub-certificate needs an agent that registers: a hub issues certificates only to accounts that it created"))
	}
	namespace := clusterv1beta1.MemberNamespace(o.MemberName)
	if o.doesWorksOnly() {
		namespace = o.MemberName
	}
	for _, problem := range validation.IsDNS1123Label(namespace) {
		all = append(all, fmt.Errorf("--member-name %q: %s", o.MemberName, problem))
	}
	if o.BootstrapFile != "" || o.BootstrapKubeconfig != "" {
		all = append(all, errors.New("--member-name is for an agent that does not register: remove --bootstrap-file and --bootstrap-kubeconfig"))
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

// Config contains the options with defaults applied and files read.
type Config struct {
	Options
	// Member reaches the member's own API server.
	Member *rest.Config
	// Bootstrap has the registration values of a file, or is nil.
	Bootstrap *enroll.Bootstrap
	// Missing names the file with registration values if it does not exist.
	Missing string
	// Hub reaches the hub with an identity that the user manages. If nil, the agent
	// registers.
	Hub *rest.Config
}

// Config reads the files in the options. Call Validate first.
func (o *Options) Config() (*Config, error) {
	member, err := loadMember(o.MemberKubeconfig)
	if err != nil {
		return nil, err
	}
	member.QPS = -1 // Priority and fairness of the member's API server limit the agent.
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
		// Agents of a cluster have different namespaces, and the namespace does not depend on the URL of the hub.
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
			return nil, fmt.Errorf("finding the member: %w: run the agent in a Pod of the member or set --member-kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --member-kubeconfig: %w", err)
	}
	return config, nil
}

// loadBootstrap reads the file. A missing file is not an error, because it may be removed
// after the agent has registered.
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
		return nil, flag + " " + path + " does not exist", nil
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
