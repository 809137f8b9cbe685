// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Values of registration.policy and registration.selfAssignedLabels.
const (
	registrationOpen   = "open"
	registrationStrict = "strict"
	labelsCount        = "count"
	labelsIgnore       = "ignore"
)

// Registration configures which clusters may register, and with which defaults.
type Registration struct {
	*configv1alpha1.RegistrationConfiguration
}

func defaultRegistration() configv1alpha1.RegistrationConfiguration {
	return configv1alpha1.RegistrationConfiguration{
		Namespaces:            []string{"clusters"},
		Policy:                registrationOpen,
		InfiniteTokenApproval: registrationv1alpha1.ApprovalManual,
		SelfAssignedLabels:    labelsCount,
		ClusterAPILabels:      clusterapi.DefaultLabels(),
		AgentTolerations:      importer.DefaultTaints(),
	}
}

// AddFlags binds the options to a command line.
func (o *Registration) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Namespaces, "registration-namespaces", o.Namespaces, "Namespaces in which clusters may register. Use * for all namespaces.")
	flags.StringVar(&o.Policy, "registration-policy", o.Policy, "Default for registration tokens, open or strict. open: clusters that register with an expiring token are approved at once and may set labels. strict: clusters set no labels and wait for manual approval. The annotations "+registrationv1alpha1.AnnotationAllowedLabels+" and "+registrationv1alpha1.AnnotationApproval+" of a token override it.")
	configfile.Override(flags, "registration-namespaces", "registration.namespaces")
	configfile.Override(flags, "registration-policy", "registration.policy")
}

// Validate returns every error at once.
func (o *Registration) Validate() field.ErrorList {
	at := field.NewPath("registration")
	var all field.ErrorList
	if len(o.Namespaces) == 0 {
		all = append(all, field.Required(at.Child("namespaces"), "set at least one namespace, or *"))
	}
	all = append(all, configfile.OneOf(at.Child("infiniteTokenApproval"), o.InfiniteTokenApproval, registrationv1alpha1.ApprovalAuto, registrationv1alpha1.ApprovalManual)...)
	all = append(all, configfile.OneOf(at.Child("policy"), o.Policy, registrationOpen, registrationStrict)...)
	all = append(all, configfile.OneOf(at.Child("selfAssignedLabels"), o.SelfAssignedLabels, labelsCount, labelsIgnore)...)
	for i, taint := range o.AgentTolerations {
		if _, err := importer.ParseToleration(taint); err != nil {
			all = append(all, field.Invalid(at.Child("agentTolerations").Index(i), taint, err.Error()))
		}
	}
	if o.Policy == registrationStrict && o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto {
		all = append(all, field.Forbidden(at.Child("infiniteTokenApproval"), "auto conflicts with registration.policy strict: instead, annotate each token that may approve with "+
			registrationv1alpha1.AnnotationApproval+"="+registrationv1alpha1.ApprovalAuto))
	}
	return all
}

// Chosen returns the registration namespaces, or nil for all namespaces.
func (o *Registration) Chosen() []string {
	if slices.Contains(o.Namespaces, "*") {
		return nil
	}
	return o.Namespaces
}

// First returns the namespace in which clusters of add-on fleetgate-agent register: the first one, or
// the default one if all are allowed.
func (o *Registration) First() string {
	if chosen := o.Chosen(); len(chosen) > 0 {
		return chosen[0]
	}
	return defaultRegistration().Namespaces[0]
}

// Agents returns the settings of imported agents. The options must be valid.
func (o *Registration) Agents() importer.AgentDefaults {
	defaults := importer.AgentDefaults{HostNetwork: o.AgentHostNetwork}
	for _, taint := range o.AgentTolerations {
		if toleration, err := importer.ParseToleration(taint); err == nil {
			defaults.Tolerations = append(defaults.Tolerations, toleration)
		}
	}
	return defaults
}

// LabelRule returns which labels of a Cluster its member gets.
func (o *Registration) LabelRule() registration.LabelRule {
	return registration.LabelRule(o.SelfAssignedLabels == labelsIgnore)
}

// Defaults returns the defaults of registration tokens without annotations.
func (o *Registration) Defaults() registration.Defaults {
	return registration.Defaults{
		Strict:          o.Policy == registrationStrict,
		ApproveInfinite: o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto,
	}
}
