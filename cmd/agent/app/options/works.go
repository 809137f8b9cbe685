// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Values of works.executor.
const (
	executorReview      = "review"
	executorImpersonate = "impersonate"
)

// Impersonates reports whether the agent writes as the executor of a ManifestWork.
func (o *Options) Impersonates() bool { return o.Works.Executor == executorImpersonate }

func (o *Options) addWorksFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Works.AgentID, "agent-id", o.Works.AgentID, "ID that distinguishes agents that apply ManifestWorks on the same cluster. The agent manages the AppliedManifestWorks with this ID. "+
		"When you replace an agent, set the ID of the previous one. If unset, --namespace is used, which stays the same when the URL of the hub changes; with --components=works, the hash of the hub's URL.")
	configfile.Override(flags, "agent-id", "works.agentID")
}

func (o *Options) validateWorks() field.ErrorList {
	at := field.NewPath("works")
	all := configfile.OneOf(at.Child("executor"), o.Works.Executor, executorReview, executorImpersonate)
	all = append(all, configfile.Invalid(at.Child("agentID"), o.Works.AgentID, validation.IsValidLabelValue(o.Works.AgentID)...)...)
	if name := o.Works.NamespacedApplier; name != "" {
		all = append(all, configfile.Invalid(at.Child("namespacedApplier"), name, validation.IsDNS1123Subdomain(name)...)...)
	}
	if grace := o.Works.EvictionGracePeriod.Duration; grace < 0 {
		all = append(all, field.Invalid(at.Child("evictionGracePeriod"), grace.String(), "must not be negative"))
	}
	if wait := o.Works.RemovalWait.Duration; wait < time.Second {
		all = append(all, field.Invalid(at.Child("removalWait"), wait.String(), "must be at least a second"))
	}
	return all
}
