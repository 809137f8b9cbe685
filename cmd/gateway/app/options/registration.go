// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
)

// Values of --registration-policy and --self-assigned-labels.
const (
	registrationOpen   = "open"
	registrationStrict = "strict"
	labelsCount        = "count"
	labelsIgnore       = "ignore"
)

// Registration configures which clusters may register, and with which defaults.
type Registration struct {
	Namespaces            []string
	Policy                string
	InfiniteTokenApproval string
	SelfAssignedLabels    string
	AgentImage            string
	ClusterAPILabels      []string
}

func newRegistration() Registration {
	return Registration{
		Namespaces:            []string{"clusters"},
		Policy:                registrationOpen,
		InfiniteTokenApproval: registrationv1alpha1.ApprovalManual,
		SelfAssignedLabels:    labelsCount,
		ClusterAPILabels:      clusterapi.DefaultLabels(),
	}
}

// AddFlags binds the options to a command line.
func (o *Registration) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Namespaces, "registration-namespaces", o.Namespaces, "Namespaces in which clusters may register. Use * for all namespaces.")
	flags.StringVar(&o.Policy, "registration-policy", o.Policy, "Default for registration tokens, open or strict. open: clusters that register with an expiring token are approved at once and may set the labels "+registrationv1alpha1.DefaultAllowedLabels+". strict: clusters set no labels and wait for manual approval. The annotations "+registrationv1alpha1.AnnotationAllowedLabels+" and "+registrationv1alpha1.AnnotationApproval+" of a token override it.")
	flags.StringVar(&o.InfiniteTokenApproval, "infinite-token-approval", o.InfiniteTokenApproval, "auto or manual. auto: members that register with a token that never expires are approved at once. manual: they wait until an administrator removes their taint. The annotation "+registrationv1alpha1.AnnotationApproval+" of a token overrides it.")
	flags.StringVar(&o.SelfAssignedLabels, "self-assigned-labels", o.SelfAssignedLabels, "count or ignore. count: MemberClusters get the labels that their agents set at registration, and placements can select by them. ignore: they do not.")
	flags.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "Image of the agent for clusters that are imported with a kubeconfig. If unset, clusters cannot be imported.")
	flags.StringSliceVar(&o.ClusterAPILabels, "cluster-api-labels", o.ClusterAPILabels, "Label keys to copy from a Cluster of Cluster API to its member, if the Cluster or its namespace has the label "+clusterapi.LabelAutoImport+"=true. A key can end with *.")
}

// Validate returns every error at once.
func (o *Registration) Validate() []error {
	var all []error
	if len(o.Namespaces) == 0 {
		all = append(all, errors.New("--registration-namespaces is empty: set at least one namespace, or *"))
	}
	all = append(all, known("--infinite-token-approval", []string{o.InfiniteTokenApproval},
		[]string{registrationv1alpha1.ApprovalAuto, registrationv1alpha1.ApprovalManual}),
		known("--registration-policy", []string{o.Policy}, []string{registrationOpen, registrationStrict}),
		known("--self-assigned-labels", []string{o.SelfAssignedLabels}, []string{labelsCount, labelsIgnore}))
	if o.Policy == registrationStrict && o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto {
		all = append(all, errors.New("--infinite-token-approval=auto conflicts with --registration-policy=strict: instead, annotate each token that may approve with "+
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
