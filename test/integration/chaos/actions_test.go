// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
)

// act does one random thing that a user may do.
func (c *chaos) act(ctx context.Context) {
	GinkgoHelper()
	shop := c.placements[c.dice.IntN(len(shops))]
	side := c.placements[len(shops)+c.dice.IntN(len(sides))]
	set := c.sets[c.dice.IntN(len(c.sets))]
	member := c.members[c.dice.IntN(len(c.members))]
	switch roll := c.dice.IntN(100); {
	case roll < 32:
		c.changeSource(ctx, object{sourceKinds[c.dice.IntN(len(sourceKinds))], shop.namespace, fmt.Sprintf("object-%d", c.dice.IntN(3))})
	case roll < 48:
		c.changePlacement(ctx, shop)
	case roll < 58:
		c.changeSide(ctx, object{"ConfigMap", sidesNamespace, fmt.Sprintf("object-%d", c.dice.IntN(4))})
	case roll < 66:
		c.changePlacement(ctx, side)
	case roll < 78:
		c.relabel(member, regions[c.dice.IntN(len(regions))])
		c.writeRegion(ctx, member)
	case roll < 88:
		c.changeSet(ctx, set)
	case roll < 94:
		c.changeRegional(ctx)
	default:
		c.changeSlices(ctx, member)
	}
}

// enveloped are the ConfigMaps of the ResourceEnvelope of a namespace.
const enveloped = "enveloped"

var sourceKinds = []string{"ConfigMap", "ConfigMap", "Secret", "Widget", "PersistentVolumeClaim", enveloped}

// changeSource creates, changes or deletes an object on the hub.
func (c *chaos) changeSource(ctx context.Context, o object) {
	GinkgoHelper()
	s := source{}
	if o.kind == enveloped {
		o.kind, o.name, s.enveloped = "ConfigMap", enveloped+"-"+o.name, true
	}
	if o.kind == "Widget" {
		c.end(ctx, conversionDown)
	}
	_, there := c.sources[o]
	if there && c.dice.IntN(2) == 0 {
		c.remove(o)
		c.eraseSource(ctx, o, s.enveloped)
		return
	}
	c.setSource(ctx, o, s)
}

// setSource creates an object on the hub or changes it.
func (c *chaos) setSource(ctx context.Context, o object, s source) {
	GinkgoHelper()
	if o.kind == "PersistentVolumeClaim" { // It can be in deletion.
		if there, err := exists(ctx, manifest(o, source{})); err != nil || there && c.sources[o] == (source{}) {
			return
		}
	}
	s.value = c.next()
	c.change(fmt.Sprintf("wrote %s with value %d", o, s.value), func() { c.sources[o] = s })
	c.writeSource(ctx, o)
}

// changeSide does the same with ConfigMaps that ResourcePlacements select, and moves them between these.
func (c *chaos) changeSide(ctx context.Context, o object) {
	GinkgoHelper()
	s, there := c.sources[o]
	switch {
	case there && c.dice.IntN(3) == 0:
		c.remove(o)
		c.eraseSource(ctx, o, false)
		return
	case !there || c.dice.IntN(2) == 0:
		s.side = sides[c.dice.IntN(len(sides))]
	}
	if there && s.side != c.sources[o].side {
		// A placement can lose it before the other one has it.
		c.change("moved "+o.String()+" to another placement", func() { delete(c.sources, o) })
	}
	c.setSource(ctx, o, s)
}

// changePlacement creates or deletes a placement, or changes its policy.
func (c *chaos) changePlacement(ctx context.Context, p *placement) {
	GinkgoHelper()
	region, n := append(slices.Clone(regions), "", "")[c.dice.IntN(4)], 1+c.dice.IntN(2)
	switch {
	case !p.exists:
		c.place(ctx, p, region, n)
	case c.dice.IntN(4) == 0:
		c.gone = append(c.gone, p.object())
		c.unplace(p)
		erase(ctx, hub, p.object())
	default:
		c.repolicy(p, fmt.Sprintf("changed the policy to region %q, n %d", region, n), func() { p.region, p.n = region, n })
		p.write(ctx)
	}
}

func (c *chaos) place(ctx context.Context, p *placement, region string, n int) {
	GinkgoHelper()
	p.lives++
	c.repolicy(p, fmt.Sprintf("created with region %q, n %d", region, n), func() { p.exists, p.region, p.n = true, region, n })
	p.write(ctx)
}

// changeSet creates or deletes a ManifestWorkReplicaSet, or changes its template.
func (c *chaos) changeSet(ctx context.Context, set *replicaSet) {
	GinkgoHelper()
	name := fmt.Sprintf("%s-%d", set.name, c.dice.IntN(3))
	_, there := set.contents[name]
	switch roll := c.dice.IntN(8); {
	case !set.exists:
		c.createSet(ctx, set)
		return
	case roll == 0:
		c.change("deleted ManifestWorkReplicaSet "+set.String(), func() { set.exists = false })
		c.gone = append(c.gone, set.object())
		erase(ctx, hub, set.object())
		return
	case there && roll < 4:
		c.change(fmt.Sprintf("removed %s from ManifestWorkReplicaSet %s", name, set), func() { delete(set.contents, name) })
	default:
		c.change(fmt.Sprintf("wrote %s to ManifestWorkReplicaSet %s", name, set), func() { set.contents[name] = c.next() })
	}
	set.write(ctx)
}

func (c *chaos) createSet(ctx context.Context, set *replicaSet) {
	GinkgoHelper()
	set.lives++
	c.change("created ManifestWorkReplicaSet "+set.String(), func() { set.exists = true })
	set.write(ctx)
}

// changeRegional changes the Placement about which fleetgate decides, or re-creates it. The
// re-created one has no decisions at first, which is no reason to remove anything.
func (c *chaos) changeRegional(ctx context.Context) {
	GinkgoHelper()
	if c.dice.IntN(3) == 0 {
		c.note("re-created Placement " + regional)
		erase(ctx, hub, &ocmclusterv1beta1.Placement{ObjectMeta: build.In(setsNamespace, regional)})
		c.writeRegional(ctx)
		return
	}
	region := append(slices.Clone(regions), "", "")[c.dice.IntN(4)]
	c.change(fmt.Sprintf("changed Placement %s to region %q", regional, region), func() {
		c.region = region
		c.decide()
	})
	c.writeRegional(ctx)
}

// changeSlices moves a member from one PlacementDecision to the other, or removes it from both.
func (c *chaos) changeSlices(ctx context.Context, member string) {
	GinkgoHelper()
	from := 0
	if c.slices[1][member] {
		from = 1
	}
	selected := c.slices[from][member]
	if selected && c.dice.IntN(3) == 0 {
		c.change("removed "+member+" from the PlacementDecisions", func() {
			delete(c.slices[from], member)
			c.decide()
		})
		c.writeSlice(ctx, from)
		return
	}
	c.change(fmt.Sprintf("moved %s to PlacementDecision %d", member, 2-from), func() {
		c.slices[1-from][member] = true
		c.decide()
	})
	c.writeSlice(ctx, 1-from)
	delete(c.slices[from], member)
	c.decide()
	c.writeSlice(ctx, from)
}

// workLocally has a member's own team create an object in a namespace that fleetgate created.
func (c *chaos) workLocally(ctx context.Context, p *placement, member string) {
	GinkgoHelper()
	if p.exists && p.holds[member] {
		c.note(fmt.Sprintf("the team of %s created an object in %s", member, p.namespace))
		c.addLocal(ctx, member, p.namespace, "local")
	}
}

// removeAll deletes everything that users created on the hub.
func (c *chaos) removeAll(ctx context.Context) {
	GinkgoHelper()
	for _, p := range c.placements {
		if p.exists {
			c.gone = append(c.gone, p.object())
			c.unplace(p)
			erase(ctx, hub, p.object())
		}
	}
	for _, set := range c.sets {
		if set.exists {
			c.change("deleted ManifestWorkReplicaSet "+set.String(), func() { set.exists = false })
			c.gone = append(c.gone, set.object())
			erase(ctx, hub, set.object())
		}
	}
}
