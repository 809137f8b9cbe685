// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ControllerName is the name of the controller in logs, metrics and events.
const ControllerName = "work.apply"

// Options configures how Works are applied to one member.
type Options struct {
	// Member is the name of the member.
	Member string
	// HubNamespace is the member's namespace on the hub. If unset, it is derived from the member's
	// name.
	HubNamespace string
	// HubName distinguishes objects on the member from those of another hub; it is part of the
	// names of AppliedWorks. It is empty for the only hub, or the first.
	HubName string
	// MemberAPI is the member's API server, which works of all families share. The caller runs its
	// Watcher.
	MemberAPI *engine.Member
	// NamespacedApplier is the name of the ServiceAccount that applies Works of a
	// ResourcePlacement: the account of that name in the placement's namespace on the member. If
	// unset, the agent applies them with its own rights.
	NamespacedApplier string
	// OnlyLabelledNamespaces writes nothing into namespaces that existed before, unless they have
	// placementv1beta1.EnterLabel.
	OnlyLabelledNamespaces bool
	// DeletesTakenOver deletes taken-over objects when they leave a Work, as KubeFleet does.
	DeletesTakenOver bool
	// ReservedNamespaces are the namespaces of the agent and its accounts on the member, if they differ from the
	// defaults. Works cannot place objects there.
	ReservedNamespaces []string
	// Retention counts the objects that are retained after a restore of the hub. If nil, New creates
	// one.
	Retention *retention.Tracker
	// Tuning limits concurrency and intervals.
	engine.Tuning
}

func (o Options) complete() (Options, error) {
	if o.Member == "" {
		return o, errors.New("the member's name is missing")
	}
	if o.MemberAPI == nil {
		return o, errors.New("the configuration of the member's API server is missing")
	}
	if o.HubNamespace == "" {
		o.HubNamespace = clusterv1beta1.MemberNamespace(o.Member)
	}
	if o.Retention == nil {
		o.Retention = retention.NewTracker(nil)
	}
	o.Tuning = o.WithDefaults()
	return o, nil
}

// HubRules returns the rights that this package needs in the member's namespace on the hub.
// Everything in that namespace belongs to the member, so that no rule needs resource names.
func HubRules(string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{placementv1beta1.GroupName},
			Resources: []string{"works"},
			Verbs:     []string{"get", "list", "watch", "patch"},
		},
		{
			APIGroups: []string{placementv1beta1.GroupName},
			Resources: []string{"works/status"},
			Verbs:     []string{"patch"},
		},
		{
			APIGroups: []string{eventsv1.GroupName},
			Resources: []string{"events"},
			Verbs:     []string{"create", "patch"},
		},
		{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group},
			Resources: []string{"internalmemberclusters"},
			Verbs:     []string{"get", "list", "watch"},
		},
	}
}
