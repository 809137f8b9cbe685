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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/membership"
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

	BindAddress  string
	SecurePort   int
	WebhookPort  int
	Metrics      string
	HealthProbes string
	LeaderElect  bool

	Install      bool
	Adopt        bool
	Service      string
	ExternalName string

	HubURL             string
	HubCAFile          string
	AgentTokenLifetime time.Duration
	Silence            time.Duration
	ForceDeleteWait    time.Duration
	TaintUnreachable   bool

	RegistrationNamespaces []string
	InfiniteTokenApproval  string
	ClusterProfileManager  string
	AgentImage             string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:          clusterv1beta1.SystemNamespace,
		Components:         slices.Clone(allComponents),
		APIs:               slices.Clone(defaultAPIs),
		BindAddress:        "0.0.0.0",
		SecurePort:         8443,
		WebhookPort:        9443,
		Metrics:            ":8080",
		HealthProbes:       ":8081",
		LeaderElect:        true,
		Service:            "gateway",
		AgentTokenLifetime: 7 * 24 * time.Hour,
		Silence:            membership.DefaultSilence,
		ForceDeleteWait:    membership.DefaultForceDeleteWait,

		RegistrationNamespaces: []string{"clusters"},
		InfiniteTokenApproval:  registrationv1alpha1.ApprovalManual,
		ClusterProfileManager:  multiclusterv1alpha1.ClusterManager,
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
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics; 0 switches it off.")
	flags.StringVar(&o.HealthProbes, "health-probe-bind-address", o.HealthProbes, "Address of /livez and /readyz.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Run controllers in one replica only, chosen by a Lease.")

	flags.BoolVar(&o.Install, "install", o.Install, "Install or update CustomResourceDefinitions, APIServices, policies and webhook configurations on the hub.")
	flags.BoolVar(&o.Adopt, "adopt", o.Adopt, "With --install: take over objects of another product that serves the same APIs and does not run any more.")
	flags.StringVar(&o.Service, "service", o.Service, "Name of the Service, in --namespace, through which the hub's API server reaches the gateway.")
	flags.StringVar(&o.ExternalName, "external-name", o.ExternalName, "With --install: DNS name or address of a gateway that runs outside the hub; makes the Service lead there.")

	flags.StringVar(&o.HubURL, "hub-url", o.HubURL, "URL of the hub's API server as members reach it, written into registration tokens. Empty: the one of the kubeconfig.")
	flags.StringVar(&o.HubCAFile, "hub-ca-file", o.HubCAFile, "PEM file that verifies --hub-url. Empty: the CA of the kubeconfig.")
	flags.DurationVar(&o.AgentTokenLifetime, "agent-token-lifetime", o.AgentTokenLifetime, "Life of the tokens that members' agents hold, and renew every hour.")
	flags.DurationVar(&o.Silence, "cluster-unhealthy-threshold", o.Silence, "How long a member may send no heartbeat until its state is Unknown.")
	flags.DurationVar(&o.ForceDeleteWait, "force-delete-wait-time", o.ForceDeleteWait, "How long a deleted MemberCluster waits for its agent to confirm that it leaves.")
	flags.BoolVar(&o.TaintUnreachable, "taint-unreachable", o.TaintUnreachable, "Taint members whose state is Unknown with "+clusterv1beta1.TaintUnreachable+":NoSchedule until they are heard of again.")

	flags.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "Image of the agent, for clusters that are imported from a kubeconfig. Empty: none is imported.")
	flags.StringVar(&o.ClusterProfileManager, "clusterprofile-manager", o.ClusterProfileManager, "Name of the cluster manager in the ClusterProfiles that the gateway publishes. It cannot be changed for profiles that are there.")
	flags.StringSliceVar(&o.RegistrationNamespaces, "registration-namespaces", o.RegistrationNamespaces, "Namespaces in which clusters may register; * means every namespace.")
	flags.StringVar(&o.InfiniteTokenApproval, "infinite-token-approval", o.InfiniteTokenApproval, "auto or manual: whether members that register with a token without end may be used at once, or wait for somebody who takes their taint away. A token's annotation "+registrationv1alpha1.AnnotationApproval+" stands over it.")
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
	if o.Adopt && !o.Install {
		all = append(all, errors.New("--adopt does nothing without --install"))
	}
	if o.ExternalName != "" && !o.Install {
		all = append(all, errors.New("--external-name does nothing without --install"))
	}
	if o.HubURL != "" {
		if parsed, err := url.Parse(o.HubURL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			all = append(all, fmt.Errorf("--hub-url %q is not a URL that begins with https://", o.HubURL))
		}
	}
	if o.AgentTokenLifetime < minTokenLifetime || o.AgentTokenLifetime > maxTokenLifetime {
		all = append(all, fmt.Errorf("--agent-token-lifetime %s is not between %s and %s", o.AgentTokenLifetime, minTokenLifetime, maxTokenLifetime))
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
		[]string{registrationv1alpha1.ApprovalAuto, registrationv1alpha1.ApprovalManual}))
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

// Config is what the options mean, ready to run with.
type Config struct {
	Options
	// Hub reaches the hub's API server as the gateway itself.
	Hub *rest.Config
	// HubCA verifies HubURL (PEM).
	HubCA []byte
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
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxCABytes {
		err = fmt.Errorf("it has more than %d bytes", maxCABytes)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the hub's CA: %w", err)
	}
	ca, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's CA: %w", err)
	}
	return ca, nil
}

// leaseName is the Lease of the leader. Gateways that run different components
// do not compete: each set has a leader of its own.
func (o *Options) leaseName() string {
	const all = "fleetgate-gateway"
	if sets.New(o.Components...).HasAll(allComponents...) {
		return all
	}
	return all + "-" + strings.Join(sets.List(sets.New(o.Components...)), "-")
}

func (o *Options) runs(component string) bool { return slices.Contains(o.Components, component) }

func (o *Options) serves(api string) bool { return slices.Contains(o.APIs, api) }
