// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is an object of the hub, or of members.
type object struct{ kind, namespace, name string }

func (o object) String() string {
	if o.namespace == "" {
		return o.kind + " " + o.name
	}
	return o.kind + " " + o.namespace + "/" + o.name
}

// spot is an object on a member.
type spot struct {
	member string
	object
}

func (s spot) String() string { return s.object.String() + " on " + s.member }

// anyValue is the value of objects whose contents the model does not know.
const anyValue = -1

// placement is a ClusterResourcePlacement of a namespace, or a ResourcePlacement of the ConfigMaps
// of one side of a namespace.
type placement struct {
	name, namespace, side string
	// picks is true for PickN.
	picks  bool
	exists bool
	// lives is how often it was created, and is part of its name.
	lives, n, policies int
	region             string
	// changed is true if its policy changed since the last check. Only then can relabelled members
	// lose it.
	changed bool
	// holds are the members that must keep it.
	holds map[string]bool
}

func (p *placement) String() string { return fmt.Sprintf("%s-%d", p.name, p.lives) }

// replicaSet is a ManifestWorkReplicaSet and the members that its Placement selects.
type replicaSet struct {
	// name is that of its Placement.
	name   string
	exists bool
	lives  int
	// contents are the values of the ConfigMaps of its template.
	contents map[string]int
	holds    map[string]bool
}

func (r *replicaSet) String() string { return fmt.Sprintf("%s-%d", r.name, r.lives) }

// source is an object on the hub. It is in the namespace's ResourceEnvelope if it is enveloped.
type source struct {
	value     int
	side      string
	enveloped bool
}

// claim is a PersistentVolumeClaim that a placement created on a member.
type claim struct {
	placement string
	// left is true if the placement no longer selects the member: nobody may delete the claim.
	left bool
}

// model is the state that users want, and the causes of deletions since the last check.
type model struct {
	members    []string
	regions    map[string]string
	sources    map[object]source
	placements []*placement
	sets       []*replicaSet
	// region is that of the Placement that fleetgate decides about; slices are the members in each
	// PlacementDecision of the other one.
	region string
	slices [2]map[string]bool
	// local are objects of the members' own teams.
	local  map[spot]bool
	claims map[spot]claim

	step   int
	values int
	log    []string
	// gone are the objects of the hub whose deletion was requested.
	gone   []client.Object
	causes map[spot][]cause
}

// cause is why an object on a member may be deleted from some time on.
type cause struct {
	at   time.Time
	step int
	why  string
}

// change applies a change of users to the model. What members need not have any more gets a cause.
// Call it before the change reaches the hub.
func (m *model) change(why string, do func()) {
	before, at := m.needed(), time.Now()
	do()
	after := m.needed()
	m.note(why)
	for s := range before {
		if _, still := after[s]; !still {
			m.causes[s] = append(m.causes[s], cause{at: at, step: m.step, why: why})
		}
	}
}

// note logs an action or a fault for failures.
func (m *model) note(what string) {
	line := fmt.Sprintf("%s step %d: %s", time.Now().Format(clockFormat), m.step, what)
	m.log = append(m.log, line)
	GinkgoWriter.Println(line)
}

// next is a new value.
func (m *model) next() int {
	m.values++
	return m.values
}

func (m *model) matches(p *placement, member string) bool {
	return p.region == "" || p.region == m.regions[member]
}

// selects are the objects that a placement places.
func (m *model) selects(p *placement) map[object]int {
	all := map[object]int{}
	for o, s := range m.sources {
		if o.namespace == p.namespace && s.side == p.side {
			all[o] = s.value
		}
	}
	if p.side == "" {
		all[object{kind: "Namespace", name: p.namespace}] = anyValue
	}
	return all
}

// needed are the objects that members must have now, with their values.
func (m *model) needed() map[spot]int {
	all := map[spot]int{}
	for s := range m.local {
		all[s] = anyValue
		all[spot{s.member, object{kind: "Namespace", name: s.namespace}}] = anyValue
	}
	for s := range m.claims {
		all[s] = anyValue
		all[spot{s.member, object{kind: "Namespace", name: s.namespace}}] = anyValue
	}
	for _, p := range m.placements {
		if !p.exists {
			continue
		}
		for o, value := range m.selects(p) {
			for member := range p.holds {
				all[spot{member, o}] = value
			}
		}
	}
	for _, set := range m.sets {
		if !set.exists {
			continue
		}
		for name, value := range set.contents {
			for member := range set.holds {
				all[spot{member, object{"ConfigMap", setsNamespace, name}}] = value
			}
		}
	}
	return all
}

// repolicy changes a placement's policy: members that do not match can lose it. Of PickAll, members
// that match must get it.
func (m *model) repolicy(p *placement, why string, do func()) {
	m.change(fmt.Sprintf("%s: %s", p, why), func() {
		do()
		p.changed = true
		m.resettle()
	})
}

// relabel moves a member to another region.
func (m *model) relabel(member, region string) {
	m.change(fmt.Sprintf("relabelled %s as %s", member, region), func() {
		m.regions[member] = region
		m.resettle()
		m.decide()
	})
}

// resettle updates the members that must have the placements after a change of policies or labels.
// Only a change of its policy takes a placement from a member.
func (m *model) resettle() {
	for _, p := range m.placements {
		if !p.exists {
			continue
		}
		for _, member := range m.members {
			switch matches := m.matches(p, member); {
			case !matches && p.changed:
				delete(p.holds, member)
			case matches && !p.picks:
				p.holds[member] = true
				m.adopt(p, member)
			case matches: // It can be picked.
				m.adopt(p, member)
			}
		}
		if p.picks && p.changed && len(p.holds) > p.n { // Any of them can lose it.
			p.holds = map[string]bool{}
		}
	}
}

// adopt makes the claims that a placement left on a member its own again.
func (m *model) adopt(p *placement, member string) {
	m.eachClaim(member, p.namespace, func(s spot, c claim) {
		if c.placement == p.String() {
			m.claims[s] = claim{placement: c.placement}
		}
	})
}

func (m *model) eachClaim(member, namespace string, do func(spot, claim)) {
	for _, s := range slices.Collect(maps.Keys(m.claims)) {
		if (member == "" || s.member == member) && s.namespace == namespace {
			do(s, m.claims[s])
		}
	}
}

// decide is what fleetgate decides about Placement "regional", and the specs about "sliced".
func (m *model) decide() {
	for _, set := range m.sets {
		holds := map[string]bool{}
		for _, member := range m.members {
			if set.name == regional && (m.region == "" || m.region == m.regions[member]) || set.name == sliced && (m.slices[0][member] || m.slices[1][member]) {
				holds[member] = true
			}
		}
		set.holds = holds
	}
}

// unplace deletes a placement, and with it its claims on members that it still selects.
func (m *model) unplace(p *placement) {
	m.change(fmt.Sprintf("deleted placement %s", p), func() {
		p.exists, p.holds = false, map[string]bool{}
		for _, member := range m.members {
			m.eachClaim(member, p.namespace, func(s spot, c claim) {
				if c.placement == p.String() && !c.left {
					delete(m.claims, s)
				}
			})
		}
	})
}

// remove deletes an object of the hub, and with it the claims of placements that still select it.
func (m *model) remove(o object) {
	m.change("deleted "+o.String()+" on the hub", func() {
		delete(m.sources, o)
		m.eachClaim("", o.namespace, func(s spot, c claim) {
			if s.object == o && !c.left {
				delete(m.claims, s)
			}
		})
	})
}

// settled starts a round: the members have exactly what is needed, so nothing has a cause any more.
func (m *model) settled(found map[spot]instance) {
	for s, has := range found {
		if s.kind != "PersistentVolumeClaim" || m.local[s] {
			continue
		}
		c, known := m.claims[s]
		p := m.placementOf(s.namespace)
		switch {
		case known && c.placement == p.String():
			m.claims[s] = claim{placement: c.placement, left: !p.holds[s.member]}
		case !known && p.exists && p.holds[s.member]:
			m.claims[s] = claim{placement: p.String()}
		case !known && has.retained: // Of a deleted placement.
			m.local[s] = true
		}
	}
	for _, p := range m.placements {
		p.changed = false
	}
	m.causes, m.log, m.gone = map[spot][]cause{}, nil, nil
}

// placementOf is the ClusterResourcePlacement of a namespace.
func (m *model) placementOf(namespace string) *placement {
	for _, p := range m.placements {
		if p.namespace == namespace && p.side == "" {
			return p
		}
	}
	return nil
}
