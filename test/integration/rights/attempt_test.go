// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// The entrances by which objects reach members. Overrides go with each of the first six.
const (
	viaResourcePlacement = "ResourcePlacement"
	viaClusterPlacement  = "ClusterResourcePlacement"
	viaEnvelope          = "ResourceEnvelope"
	viaClusterEnvelope   = "ClusterResourceEnvelope"
	viaChart             = "Helm chart"
	viaUpdateRun         = "ClusterStagedUpdateRun"
	viaSet               = "ManifestWorkReplicaSet"
)

var entrances = []string{viaResourcePlacement, viaClusterPlacement, viaEnvelope, viaClusterEnvelope, viaChart, viaUpdateRun, viaSet}

// administrator is the author of what no other user writes.
const administrator = "administrator"

// executor is an account of the member with all rights there, in whose name ManifestWorks may be applied.
const executor = "executor"

var executing = access{"execute-as", workv1.GroupName, "manifestworks", "", "system:serviceaccount:default:" + executor}

// attempt is an attempt to write something on the member. The names of all its objects begin with its
// prefix.
type attempt struct {
	*rand.Rand
	prefix, entrance string
	// placer, author and overrider write the placement; the envelope, the chart or the set; and the
	// override. Each is the administrator or a user with random rights.
	placer, author, overrider string
	// onHub are objects of the hub, later are those that are created after the placement.
	onHub, later []object
	// entries are in the envelope, the chart or the set.
	entries []object
	// bundle is the envelope or the ConfigMap of the chart.
	bundle object
	terms  []placementv1beta1.ResourceSelectorTerm
	// target is the object that the override selects; nil without an override.
	target *object
	// bound is set if a ManagedClusterSet is bound to the namespace, executed if the set has an executor.
	bound, executed bool
	// owner is set if the author of the set has all rights in one namespace, which all manifests name, and
	// no others.
	owner bool
	// earlier is set if an update run rolls out a snapshot of the administrator.
	earlier bool
	rights  []grant

	// accepted is set when the hub accepted what the author of the entrance wrote.
	accepted bool
	// started is set when the hub accepted a run, which can be of what an administrator placed before.
	started bool
	log     []string
}

var prefixPattern = regexp.MustCompile(`^p\d+-\d+`)

// prefixOf returns the prefix of the attempt to which a name belongs, "" for none.
func prefixOf(name string) string { return prefixPattern.FindString(name) }

func isRecord(owner metav1.OwnerReference) bool {
	return owner.Kind == "AppliedWork" || owner.Kind == "AppliedManifestWork"
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// newAttempt returns the nth attempt of a seed, whatever the other attempts do.
func newAttempt(seed uint64, round, nth int) *attempt {
	a := &attempt{Rand: rand.New(rand.NewPCG(seed, uint64(nth))), prefix: fmt.Sprintf("p%d-%d", round, nth), entrance: entrances[nth%len(entrances)]}
	a.placer, a.author, a.overrider = a.user("placer"), a.user("author"), a.name("overrider")
	switch a.entrance {
	case viaEnvelope, viaClusterEnvelope, viaChart, viaSet:
		a.author = a.name("author")
	default:
		a.placer = a.name("placer")
	}
	a.fillHub()
	a.fillBundle()
	a.earlier = a.IntN(2) == 0
	wanted := a.selectResources()
	a.grant(a.placer, wanted)
	switch {
	case a.owner:
		a.rights = append(a.rights, grant{a.author, a.name("x"), rule("*", "*", "*")})
	case a.bundle.name != "" || a.entrance == viaSet:
		a.grant(a.author, a.bundleAccesses())
	}
	if a.entrance != viaSet && a.IntN(3) == 0 {
		a.override()
	}
	return a
}

func (a *attempt) name(suffix string) string { return a.prefix + "-" + suffix }

func (a *attempt) user(role string) string { return pick(a.Rand, administrator, a.name(role)) }

func (a *attempt) grant(user string, wanted []access) {
	if user != administrator && len(wanted) > 0 {
		a.rights = append(a.rights, grants(a.Rand, user, a.name(pick(a.Rand, "x", "x", "y")), wanted)...)
	}
}

// object returns a random object. One of a cluster-scoped kind may name a namespace.
func (a *attempt) object() object {
	o := object{kind: pick(a.Rand, pool...), name: a.name(pick(a.Rand, "1", "2"))}
	if o.kind.onMember == namespaced || o.kind.onHub == namespaced || a.IntN(2) == 0 {
		o.namespace = a.name(pick(a.Rand, "x", "x", "x", "y"))
	}
	if o.isBinding() {
		o.role = roleRef("ClusterRole", pick(a.Rand, "cluster-admin", "view"))
		if o.kind.onHub == namespaced && a.IntN(3) == 0 {
			o.role = roleRef("Role", a.name("1"))
		}
	}
	return o
}

func (a *attempt) named(kindName, namespace, suffix string) object {
	if namespace != "" {
		namespace = a.name(namespace)
	}
	return object{kind: kindNamed(kindName), namespace: namespace, name: a.name(suffix)}
}

func (a *attempt) fillHub() {
	a.onHub = []object{a.named("ConfigMap", "x", "1"), a.named("Secret", "x", "1"), a.named("Secret", "y", "1"), a.named("Gadget", "", "1"), a.named("ClusterRole", "", "1")}
	for range 3 {
		if o := a.object(); o.kind.onHub != "" && o.kind.Kind != "Namespace" {
			if o.kind.onHub == clusterScoped {
				o.namespace = ""
			}
			a.onHub = append(a.onHub, o)
		}
	}
	a.later = []object{a.named("Secret", "x", "later"), a.named("Widget", "x", "later"), a.named("ServiceAccount", "x", "later"), a.named("Gadget", "", "later")}
}

// fillBundle chooses what the envelope, the chart or the set contains.
func (a *attempt) fillBundle() {
	ofPlacement := func(name, resource string) kind {
		return kind{GroupVersionKind: schema.GroupVersionKind{Group: placementv1beta1.GroupName, Version: "v1beta1", Kind: name}, resource: resource}
	}
	switch a.entrance {
	case viaEnvelope:
		a.bundle = object{kind: ofPlacement(a.entrance, "resourceenvelopes"), namespace: a.name("x"), name: a.name("envelope")}
	case viaClusterEnvelope:
		a.bundle = object{kind: ofPlacement(a.entrance, "clusterresourceenvelopes"), name: a.name("envelope")}
	case viaChart:
		a.bundle = a.named("ConfigMap", "x", "chart")
	case viaSet:
		a.bound, a.executed, a.owner = a.IntN(5) > 0, a.IntN(5) == 0, a.IntN(3) == 0
	default:
		return
	}
	for range 20 {
		o, fits := a.object(), true
		switch a.entrance {
		case viaEnvelope: // A misfit keeps all of the envelope from being placed.
			fits = o.kind.onMember == namespaced && o.namespace == a.name("x") || o.kind.Kind == "Grown" && o.namespace == a.name("x") || a.IntN(30) == 0
		case viaSet:
			if a.owner {
				o.namespace = a.name("x")
			}
			fits = o.kind.Group != groupChecked || a.IntN(4) == 0
		case viaClusterEnvelope:
			if a.IntN(8) > 0 {
				o.namespace = ""
			}
			fits = o.kind.onMember == clusterScoped && o.kind.onHub != namespaced || a.IntN(30) == 0
		}
		if fits && len(a.entries) < 1+nthBit(a.prefix) {
			a.entries = append(a.entries, o)
		}
	}
}

// nthBit is 0 or 1, so that half of the bundles have two entries.
func nthBit(prefix string) int { return int(prefix[len(prefix)-1]) & 1 }

// rendering is the right to have the chart rendered.
func (a *attempt) rendering() access {
	return access{placementv1beta1.RenderVerb, "", "configmaps", a.bundle.namespace, a.bundle.name}
}

// bundleAccesses returns what the author needs for the envelope, the chart or the set.
func (a *attempt) bundleAccesses() []access {
	if a.entrance == viaChart {
		// Creating the ConfigMap itself is not what is tested.
		a.rights = append(a.rights, grant{a.author, a.bundle.namespace, rule("", "create", "configmaps")})
		return []access{a.rendering()}
	}
	if a.executed {
		return []access{executing}
	}
	var all []access
	for _, o := range a.entries {
		namespace := o.namespace
		if o.kind.onMember == clusterScoped {
			namespace = ""
		}
		all = append(all, writing(o, namespace)...)
	}
	return all
}

// override chooses an object to override.
func (a *attempt) override() {
	target := a.named("Namespace", "", "x")
	switch {
	case a.entrance == viaChart && a.IntN(4) > 0:
		target = a.bundle
	case len(a.entries) > 0 && a.IntN(4) > 0:
		target = pick(a.Rand, a.entries...)
	case a.IntN(4) > 0:
		target = pick(a.Rand, a.onHub...)
		for i := 0; i < 10 && !a.selected(target); i++ {
			target = pick(a.Rand, a.onHub...)
		}
	}
	namespace := target.namespace
	if target.kind.onMember == clusterScoped {
		namespace = ""
	}
	wanted := accesses("update", target, namespace)
	switch {
	case a.entrance == viaChart && target == a.bundle:
		wanted = append(wanted, a.rendering())
	case target.kind.Kind == "Namespace" && target.name == a.name("x"):
		inside := a.name("x")
		wanted = append(wanted, access{"update", "*", "*", inside, ""}, access{"escalate", "rbac.authorization.k8s.io", "roles", inside, ""},
			access{"bind", "rbac.authorization.k8s.io", "clusterroles", inside, ""}, access{"bind", "rbac.authorization.k8s.io", "roles", inside, ""})
	case target.isBinding():
		wanted[1] = access{"bind", "rbac.authorization.k8s.io", "clusterroles", namespace, ""}
		if namespace != "" {
			wanted = append(wanted, access{"bind", "rbac.authorization.k8s.io", "roles", namespace, ""})
		}
	}
	a.target = &target
	a.grant(a.overrider, wanted)
}
