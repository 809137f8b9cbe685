// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
)

const (
	minTokenLifetime = 10 * time.Minute
	maxTokenLifetime = 365 * 24 * time.Hour
)

// Members configures tokens and priority of agents, heartbeat timeouts, and the publication of members.
type Members struct {
	AgentTokenLifetime    time.Duration
	AgentPriorityLevel    string
	Silence               time.Duration
	ForceDeleteWait       time.Duration
	TaintUnreachable      bool
	ArgoCDNamespace       string
	ClusterProfileManager string
}

func newMembers() Members {
	return Members{
		AgentTokenLifetime:    7 * 24 * time.Hour,
		Silence:               membership.DefaultSilence,
		ForceDeleteWait:       membership.DefaultForceDeleteWait,
		ArgoCDNamespace:       "argocd",
		ClusterProfileManager: multiclusterv1alpha1.ClusterManager,
	}
}

// AddFlags binds the options to a command line.
func (o *Members) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.AgentTokenLifetime, "agent-token-lifetime", o.AgentTokenLifetime, "Lifetime of the hub tokens of agents. Agents renew their token every hour.")
	flags.StringVar(&o.AgentPriorityLevel, "agents-priority-level", o.AgentPriorityLevel, "PriorityLevelConfiguration of the hub's API server for requests of agents. The gateway maintains FlowSchemas that assign these requests to it, and the Leases of agents to node-high. If unset, the gateway maintains no FlowSchemas.")
	flags.DurationVar(&o.Silence, "cluster-unhealthy-threshold", o.Silence, "Time without a heartbeat after which the state of a member becomes Unknown.")
	flags.DurationVar(&o.ForceDeleteWait, "force-delete-wait-time", o.ForceDeleteWait, "Time that a deleted MemberCluster waits for its agent to confirm that it has left.")
	flags.BoolVar(&o.TaintUnreachable, "taint-unreachable", o.TaintUnreachable, "Add the taint "+clusterv1beta1.TaintUnreachable+":NoSchedule to members whose state is Unknown, and remove it at their next heartbeat.")
	flags.StringVar(&o.ArgoCDNamespace, "argocd-namespace", o.ArgoCDNamespace, "Namespace of Argo CD on the hub. The gateway creates a Secret there for each MemberCluster with the label "+authenticationv1beta1.LabelArgoCD+"="+authenticationv1beta1.LabelArgoCDValue+".")
	flags.StringVar(&o.ClusterProfileManager, "clusterprofile-manager", o.ClusterProfileManager, "Name of the cluster manager in the ClusterProfiles that the gateway publishes. It cannot change for existing profiles.")
}

// Validate returns every error at once.
func (o *Members) Validate() []error {
	var all []error
	for _, problem := range validation.IsDNS1123Label(o.ArgoCDNamespace) {
		all = append(all, fmt.Errorf("--argocd-namespace %q: %s", o.ArgoCDNamespace, problem))
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
	return all
}
