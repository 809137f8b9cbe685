// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree draws a placement with all that it consists of: members, Works, objects, and
// the state of each. It is a function of what was read.
package tree

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/plugin/why"
)

// Node is one line, and what is below it.
type Node struct {
	// Kind is placement, member, work, or the kind of an object; empty for objects that are
	// only counted.
	Kind string `json:"kind,omitempty"`
	// Name is what it is called, with the namespace in front where there is one; a Work's is
	// that in the member's namespace.
	Name string `json:"name"`
	// State is a word or two for how it is.
	State string `json:"state"`
	// Well is false if it, or something below it, is not as it should be.
	Well bool `json:"well"`
	// Hint says what more there is to know; empty for most.
	Hint     string `json:"hint,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// Label is what people call it.
func (n Node) Label() string { return strings.TrimPrefix(n.Kind+" "+n.Name, " ") }

// words are the states by condition that is not True, the cause before what follows of it.
var words = [...]struct{ condition, isFalse string }{
	{placementv1beta1.ConditionRolloutStarted, "waits for its turn"},
	{placementv1beta1.ConditionOverridden, "not overridden"},
	{placementv1beta1.ConditionWorkSynchronized, "not delivered"},
	{placementv1beta1.ConditionApplied, "not applied"},
	{placementv1beta1.ConditionDiffReported, "not compared"},
	{placementv1beta1.ConditionAvailable, "not available"},
}

// Of builds the tree of a placement. Works are by member; a member without has its state
// from the binding alone.
func Of(name string, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, works map[string][]placementv1beta1.Work) Node {
	root := Node{Kind: "placement", Name: name, Well: true}
	bindings = slices.SortedFunc(slices.Values(bindings), func(a, b placementv1beta1.BindingObject) int {
		return cmp.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
	well := 0
	for _, b := range bindings {
		node := ofMember(b, works[b.GetSpec().TargetCluster], len(placement.GetStatus().SelectedResources))
		if node.Well {
			well++
		}
		root.Well = root.Well && node.Well
		root.Children = append(root.Children, node)
	}
	root.State = fmt.Sprintf("%d of %d members are well", well, len(bindings))
	scheduled := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled))
	switch {
	case scheduled == nil:
		root.Well, root.Hint = false, "no gateway has looked at it"
	case scheduled.Status != metav1.ConditionTrue:
		root.Well, root.Hint = false, scheduled.Message
	}
	if placementv1beta1.Paused(placement) {
		root.Well, root.Hint = false, "it is paused"
	}
	return root
}

func ofMember(b placementv1beta1.BindingObject, works []placementv1beta1.Work, selected int) Node {
	status := b.GetStatus()
	node := Node{Kind: "member", Name: b.GetSpec().TargetCluster, Hint: "snapshot " + cmp.Or(b.GetSpec().ResourceSnapshotName, "none yet")}
	node.State, node.Well = stateOf(status.Conditions)
	if b.GetSpec().State == placementv1beta1.BindingUnscheduled {
		node.State, node.Well = "is to lose it", false
	}
	if len(status.DriftedPlacements) > 0 && node.Well {
		node.State, node.Well = "drifted", false
	}
	for i := range works {
		node.Children = append(node.Children, ofWork(&works[i], status.DriftedPlacements))
	}
	if len(works) == 0 && len(status.FailedPlacements) == 0 && selected > 0 {
		node.Children = []Node{{Name: fmt.Sprintf("%d objects", selected), State: node.State, Well: node.Well}}
		return node
	}
	if len(works) == 0 {
		for i := range status.FailedPlacements {
			f := &status.FailedPlacements[i]
			node.Children = append(node.Children, Node{Kind: f.Kind, Name: nameOf(f.Namespace, f.Name), State: wordOf(f.Condition.Type), Hint: f.Condition.Message})
		}
	}
	return node
}

func ofWork(work *placementv1beta1.Work, drifted []placementv1beta1.DriftedResourcePlacement) Node {
	node := Node{Kind: "work", Name: work.Name}
	node.State, node.Well = stateOf(work.Status.Conditions)
	for i := range work.Status.ManifestConditions {
		m := &work.Status.ManifestConditions[i]
		object := Node{Kind: cmp.Or(m.Identifier.Kind, "object"), Name: nameOf(m.Identifier.Namespace, cmp.Or(m.Identifier.Name, fmt.Sprint(m.Identifier.Ordinal)))}
		object.State, object.Well = stateOf(m.Conditions)
		for _, c := range m.Conditions {
			if c.Status == metav1.ConditionFalse {
				object.Hint = c.Message
				break
			}
		}
		if object.Well && slices.ContainsFunc(drifted, func(d placementv1beta1.DriftedResourcePlacement) bool {
			return d.Kind == m.Identifier.Kind && d.Namespace == m.Identifier.Namespace && d.Name == m.Identifier.Name
		}) {
			object.State, object.Well = "drifted", false
		}
		node.Well = node.Well && object.Well
		node.Children = append(node.Children, object)
	}
	return node
}

func nameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// stateOf is a word for conditions, and whether all is well.
func stateOf(conditions []metav1.Condition) (state string, well bool) {
	for _, w := range words {
		if c := meta.FindStatusCondition(conditions, w.condition); c != nil && c.Status == metav1.ConditionFalse {
			return w.isFalse, false
		}
	}
	for _, done := range []struct{ condition, is string }{
		{placementv1beta1.ConditionAvailable, "available"}, {placementv1beta1.ConditionDiffReported, "compared"}, {placementv1beta1.ConditionApplied, "applied"},
	} {
		if meta.IsStatusConditionTrue(conditions, done.condition) {
			return done.is, done.condition != placementv1beta1.ConditionApplied
		}
	}
	return "on its way", false
}

func wordOf(condition string) string {
	for _, w := range words {
		if w.condition == condition {
			return w.isFalse
		}
	}
	return "failed"
}

// First are the names of at most n members of a placement's tree, those that are not well
// before the others.
func (n Node) First(limit int) []string {
	var unwell, well []string
	for _, c := range n.Children {
		if c.Well {
			well = append(well, c.Name)
		} else {
			unwell = append(unwell, c.Name)
		}
	}
	all := append(unwell, well...)
	return all[:min(len(all), limit)]
}

// Unwell leaves out what is well.
func (n Node) Unwell() Node {
	var children []Node
	for _, c := range n.Children {
		if !c.Well {
			children = append(children, c.Unwell())
		}
	}
	n.Children = children
	return n
}

// maxHint is how many letters of a hint are drawn: members write them.
const maxHint = 120

// Draw writes the tree. The error is the writer's.
func (n Node) Draw(out io.Writer) error { return n.draw(out, "", "") }

func (n Node) draw(out io.Writer, first, rest string) error {
	line := first + why.Plain(n.Label()) + ": " + n.State
	if n.Hint != "" {
		hint := []rune(why.Plain(n.Hint))
		line += " (" + string(hint[:min(len(hint), maxHint)]) + ")"
	}
	if _, err := fmt.Fprintln(out, line); err != nil {
		return err
	}
	for i, c := range n.Children {
		head, tail := "├─ ", "│  "
		if i == len(n.Children)-1 {
			head, tail = "└─ ", "   "
		}
		if err := c.draw(out, rest+head, rest+tail); err != nil {
			return err
		}
	}
	return nil
}
