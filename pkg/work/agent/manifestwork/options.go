// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"errors"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ControllerName is the name of the controller in logs and metrics.
const ControllerName = "manifestwork.apply"

// NeverEvict is the grace period from which on nothing is evicted.
const NeverEvict = 100 * 365 * 24 * time.Hour

// Options configures how ManifestWorks are applied to one cluster.
type Options struct {
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// HubURL is the agent's URL of the hub. Names of AppliedManifestWorks contain its hash.
	HubURL string
	// AgentID distinguishes the agents of one cluster. If unset, it is the hash of HubURL.
	AgentID string
	// MemberAPI is the API server of the cluster. The caller runs its Watcher.
	MemberAPI *engine.Member
	// ReservedNamespaces are the namespaces of the agent and its accounts on the cluster, if they differ from
	// the defaults. ManifestWorks cannot place objects there.
	ReservedNamespaces []string
	// OnlyLabelledNamespaces writes nothing into namespaces that existed before, unless they have
	// placementv1beta1.EnterLabel.
	OnlyLabelledNamespaces bool
	// RawFeedback lets feedback rules report lists and maps, as JSON.
	RawFeedback bool
	// Impersonate writes the objects of a ManifestWork with an executor as that account.
	Impersonate bool
	// EvictionGrace is how long objects stay after their ManifestWork disappeared from the hub. If
	// unset, an hour. From NeverEvict on they stay indefinitely.
	EvictionGrace time.Duration
	// Epochs detect a restored hub. If nil, nothing is retained.
	Epochs *retention.Epochs
	// Retention counts the objects that are retained after a restore of the hub. It must be set if
	// Epochs is.
	Retention *retention.Tracker
	// Tuning limits concurrency and intervals.
	engine.Tuning
}

func (o Options) complete() (Options, error) {
	switch {
	case o.Cluster == "":
		return o, errors.New("the cluster's name is missing")
	case o.HubURL == "":
		return o, errors.New("the hub's URL is missing")
	case o.MemberAPI == nil:
		return o, errors.New("the cluster's API server is missing")
	}
	if o.AgentID == "" {
		o.AgentID = HubHash(o.HubURL)
	}
	if o.EvictionGrace == 0 {
		o.EvictionGrace = time.Hour
	}
	o.Tuning = o.WithDefaults()
	return o, nil
}

// HubHash identifies a hub in the names of AppliedManifestWorks: the hexadecimal SHA-256 of its URL
// as configured. A hub with another URL is another hub.
func HubHash(url string) string {
	return hash.Of(url)
}

// HubRules returns the rights that this package needs in the cluster's namespace on the hub.
func HubRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{workv1.GroupName},
			Resources: []string{"manifestworks"},
			Verbs:     []string{"get", "list", "watch", "update", "patch"},
		},
		{
			APIGroups: []string{workv1.GroupName},
			Resources: []string{"manifestworks/status"},
			Verbs:     []string{"patch", "update"},
		},
	}
}
