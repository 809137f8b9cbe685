// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/reserved"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ControllerName is the name of the controller in logs, metrics and events.
const ControllerName = "work.apply"

// Options says for which member Works are applied, and how.
type Options struct {
	// Member is the member's name.
	Member string
	// HubNamespace is the member's namespace on the hub. Empty: the one that
	// follows from the name.
	HubNamespace string
	// HubName tells what is made on the member for this hub from what another hub's
	// agent makes there; it is part of the names of AppliedWorks. Empty for the only hub,
	// or the first.
	HubName string
	// Reached is the member as works of other families share it, and whose watch somebody
	// else runs.
	Reached *engine.Member
	// NamespacedApplier is the name of the ServiceAccount as which Works of a
	// ResourcePlacement are applied: the account of that name in the placement's
	// namespace, on the member. Empty: the agent applies them as itself.
	NamespacedApplier string
	// OnlyLabelledNamespaces has nothing written into namespaces that existed before, unless they
	// have placementv1beta1.EnterLabel.
	OnlyLabelledNamespaces bool
	// DeletesTakenOver deletes objects that existed before a Work applied them when they leave
	// it, as KubeFleet does.
	DeletesTakenOver bool
	// House are the namespaces of the agent and of its accounts on the member, if they
	// have other names than usual: nothing is brought there.
	House []string
	// Holds counts what is held on the member since the hub went back. Nil: one of its own.
	Holds *retention.Book
	// Effort is how many Works are looked at in parallel, and how often.
	engine.Effort
}

// refusesNamespace is nil if nothing is to be refused.
func (o Options) refusesNamespace() func(metav1.Object) string {
	if !o.OnlyLabelledNamespaces {
		return nil
	}
	return reserved.Existing
}

func (o Options) complete() (Options, error) {
	if o.Member == "" {
		return o, errors.New("the member's name is missing")
	}
	if o.Reached == nil {
		return o, errors.New("the configuration of the member's API server is missing")
	}
	if o.HubNamespace == "" {
		o.HubNamespace = clusterv1beta1.MemberNamespace(o.Member)
	}
	if o.Holds == nil {
		o.Holds = retention.NewBook(nil)
	}
	o.Effort = o.WithDefaults()
	return o, nil
}

// HubRules is what the agent of a member has to be allowed in the member's
// namespace on the hub for this package. All that is in the namespace is the
// member's, so no rule names it.
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
