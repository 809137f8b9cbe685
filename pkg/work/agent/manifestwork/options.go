// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/reserved"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// ControllerName is the name of the controller in logs and metrics.
const ControllerName = "manifestwork.apply"

// NeverEvict is from which grace on nothing is evicted.
const NeverEvict = 100 * 365 * 24 * time.Hour

// Options says for which cluster ManifestWorks are applied, and how.
type Options struct {
	// Cluster is the cluster's name, and that of its namespace on the hub.
	Cluster string
	// HubURL is where the agent reaches the hub. Its hash is in the names of
	// AppliedManifestWorks.
	HubURL string
	// AgentID tells the agents of one cluster apart. Empty: the hash of HubURL.
	AgentID string
	// Reached is the cluster, whose watch somebody else runs.
	Reached *engine.Member
	// House are the namespaces of the agent and of its accounts on the cluster, if they
	// have other names than usual: nothing is brought there.
	House []string
	// OnlyLabelledNamespaces has nothing written into namespaces that existed before, unless they
	// have placementv1beta1.EnterLabel.
	OnlyLabelledNamespaces bool
	// RawFeedback has feedback rules report values that are no text, number or truth
	// value, as JSON.
	RawFeedback bool
	// Impersonate has the objects of a ManifestWork with an executor written as that account.
	Impersonate bool
	// EvictionGrace is for how long what was brought stays when its ManifestWork has
	// vanished from the hub. Zero: an hour. From NeverEvict on it stays for ever.
	EvictionGrace time.Duration
	// Epochs tell whether the hub went back behind what it ordered. Nil: nobody counts them,
	// and nothing is held.
	Epochs *retention.Epochs
	// Holds counts what is held on the cluster since the hub went back. It is there if Epochs
	// are.
	Holds *retention.Book
	// Effort is how many ManifestWorks are looked at in parallel, and how often.
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
	switch {
	case o.Cluster == "":
		return o, errors.New("the cluster's name is missing")
	case o.HubURL == "":
		return o, errors.New("the hub's URL is missing")
	case o.Reached == nil:
		return o, errors.New("the cluster's API server is missing")
	}
	if o.AgentID == "" {
		o.AgentID = HubHash(o.HubURL)
	}
	if o.EvictionGrace == 0 {
		o.EvictionGrace = time.Hour
	}
	o.Effort = o.WithDefaults()
	return o, nil
}

// HubHash is by which name AppliedManifestWorks know a hub: the SHA-256 of its URL as the
// agent is given it, as 64 hexadecimal digits. A hub behind another URL is another hub.
func HubHash(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

// HubRules is what the agent of a cluster has to be allowed in the cluster's namespace on
// the hub for this package.
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
