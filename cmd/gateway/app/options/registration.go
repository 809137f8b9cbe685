// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/registration"
)

// What clusters that register are given.
const (
	registrationOpen   = "open"
	registrationStrict = "strict"
	labelsCount        = "count"
	labelsIgnore       = "ignore"
)

// Registration says which clusters get in, and with what.
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
	flags.StringSliceVar(&o.Namespaces, "registration-namespaces", o.Namespaces, "Namespaces in which clusters may register; * means every namespace.")
	flags.StringVar(&o.Policy, "registration-policy", o.Policy, "open or strict: what registration tokens let in that do not say otherwise. open: with a token that ends, clusters that are used at once and bring the labels "+registrationv1alpha1.DefaultAllowedLabels+". strict: clusters without labels, which somebody approves. Annotations "+registrationv1alpha1.AnnotationAllowedLabels+" and "+registrationv1alpha1.AnnotationApproval+" of a token stand over it.")
	flags.StringVar(&o.InfiniteTokenApproval, "infinite-token-approval", o.InfiniteTokenApproval, "auto or manual: whether members that register with a token without end may be used at once, or wait for somebody who takes their taint away. A token's annotation "+registrationv1alpha1.AnnotationApproval+" stands over it.")
	flags.StringVar(&o.SelfAssignedLabels, "self-assigned-labels", o.SelfAssignedLabels, "count or ignore: whether MemberClusters get the labels that agents brought when they registered, so that placements can select by them.")
	flags.StringVar(&o.AgentImage, "agent-image", o.AgentImage, "Image of the agent, for clusters that are imported from a kubeconfig. Empty: none is imported.")
	flags.StringSliceVar(&o.ClusterAPILabels, "cluster-api-labels", o.ClusterAPILabels, "Keys of the labels that members get from their Cluster of Cluster API, if that is labelled "+clusterapi.LabelAutoImport+"=true or its namespace is; one may end with *.")
}

// Validate returns every error at once.
func (o *Registration) Validate() []error {
	var all []error
	if len(o.Namespaces) == 0 {
		all = append(all, errors.New("--registration-namespaces is empty: name at least one namespace, or *"))
	}
	all = append(all, known("--infinite-token-approval", []string{o.InfiniteTokenApproval},
		[]string{registrationv1alpha1.ApprovalAuto, registrationv1alpha1.ApprovalManual}),
		known("--registration-policy", []string{o.Policy}, []string{registrationOpen, registrationStrict}),
		known("--self-assigned-labels", []string{o.SelfAssignedLabels}, []string{labelsCount, labelsIgnore}))
	if o.Policy == registrationStrict && o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto {
		all = append(all, errors.New("--infinite-token-approval=auto does not go with --registration-policy=strict: annotate the tokens that may approve with "+
			registrationv1alpha1.AnnotationApproval+"="+registrationv1alpha1.ApprovalAuto))
	}
	return all
}

// Chosen are the namespaces that are named, and none if every one will do.
func (o *Registration) Chosen() []string {
	if slices.Contains(o.Namespaces, "*") {
		return nil
	}
	return o.Namespaces
}

// LabelRule says which labels of their Clusters members get.
func (o *Registration) LabelRule() registration.LabelRule {
	return registration.LabelRule(o.SelfAssignedLabels == labelsIgnore)
}

// Defaults are the terms of registration tokens that do not say otherwise.
func (o *Registration) Defaults() registration.Defaults {
	return registration.Defaults{
		Strict:          o.Policy == registrationStrict,
		ApproveInfinite: o.InfiniteTokenApproval == registrationv1alpha1.ApprovalAuto,
	}
}
