// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree shows a placement as a tree of its members, Works and resources with the state of
// each. It consists of functions over objects that were read from the hub.
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
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Node is one line of the tree and its children.
type Node struct {
	// Kind is placement, member, work, or the kind of a resource; empty for a count of resources.
	Kind string `json:"kind,omitempty"`
	// Name has the namespace in front, if there is one. A Work's name is that in the member's
	// namespace.
	Name string `json:"name"`
	// State summarizes the conditions in a word or two.
	State string `json:"state"`
	// Ready is false if the node or one of its children is not ready.
	Ready bool `json:"ready"`
	// Hint is a message or further information; empty for most nodes.
	Hint     string `json:"hint,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// Label is kind and name.
func (n Node) Label() string { return strings.TrimPrefix(n.Kind+" "+n.Name, " ") }

// falseStates are the states for conditions that are False, causes before their consequences.
var falseStates = [...]struct{ condition, isFalse string }{
	{placementv1beta1.ConditionRolloutStarted, "rollout pending"},
	{placementv1beta1.ConditionOverridden, "override failed"},
	{placementv1beta1.ConditionWorkSynchronized, "not delivered"},
	{placementv1beta1.ConditionApplied, "not applied"},
	{placementv1beta1.ConditionDiffReported, "diff not reported"},
	{placementv1beta1.ConditionAvailable, "not available"},
}

// Of builds the tree of a placement. Works are by member; the state of a member without Works is
// that of its binding.
func Of(name string, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, works map[string][]placementv1beta1.Work) Node {
	root := Node{Kind: "placement", Name: name, Ready: true}
	bindings = slices.SortedFunc(slices.Values(bindings), func(a, b placementv1beta1.BindingObject) int {
		return cmp.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
	ready := 0
	for _, b := range bindings {
		node := ofMember(b, works[b.GetSpec().TargetCluster], len(placement.GetStatus().SelectedResources))
		if node.Ready {
			ready++
		}
		root.Ready = root.Ready && node.Ready
		root.Children = append(root.Children, node)
	}
	root.State = fmt.Sprintf("%d of %d members ready", ready, len(bindings))
	scheduled := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled))
	switch {
	case scheduled == nil:
		root.Ready, root.Hint = false, "no gateway has processed the placement"
	case scheduled.Status != metav1.ConditionTrue:
		root.Ready, root.Hint = false, scheduled.Message
	}
	if placementv1beta1.Paused(placement) {
		root.Ready, root.Hint = false, "paused"
	}
	return root
}

func ofMember(b placementv1beta1.BindingObject, works []placementv1beta1.Work, selected int) Node {
	status := b.GetStatus()
	node := Node{Kind: "member", Name: b.GetSpec().TargetCluster, Hint: "snapshot " + cmp.Or(b.GetSpec().ResourceSnapshotName, "not set")}
	node.State, node.Ready = stateOf(status.Conditions)
	if b.GetSpec().State == placementv1beta1.BindingUnscheduled {
		node.State, node.Ready = "removal pending", false
	}
	if len(status.DriftedPlacements) > 0 && node.Ready {
		node.State, node.Ready = "drifted", false
	}
	for i := range works {
		node.Children = append(node.Children, ofWork(&works[i], status.DriftedPlacements))
	}
	if len(works) == 0 && len(status.FailedPlacements) == 0 && selected > 0 {
		node.Children = []Node{{Name: fmt.Sprintf("%d resources", selected), State: node.State, Ready: node.Ready}}
		return node
	}
	if len(works) == 0 {
		for i := range status.FailedPlacements {
			f := &status.FailedPlacements[i]
			node.Children = append(node.Children, Node{Kind: f.Kind, Name: nameOf(f.Namespace, f.Name), State: stateOfFailure(f.Condition.Type), Hint: f.Condition.Message})
		}
	}
	return node
}

func ofWork(work *placementv1beta1.Work, drifted []placementv1beta1.DriftedResourcePlacement) Node {
	node := Node{Kind: "work", Name: work.Name}
	node.State, node.Ready = stateOf(work.Status.Conditions)
	for i := range work.Status.ManifestConditions {
		m := &work.Status.ManifestConditions[i]
		object := Node{Kind: cmp.Or(m.Identifier.Kind, "object"), Name: nameOf(m.Identifier.Namespace, cmp.Or(m.Identifier.Name, fmt.Sprint(m.Identifier.Ordinal)))}
		object.State, object.Ready = stateOf(m.Conditions)
		for _, c := range m.Conditions {
			if c.Status == metav1.ConditionFalse {
				object.Hint = c.Message
				break
			}
		}
		if object.Ready && slices.ContainsFunc(drifted, func(d placementv1beta1.DriftedResourcePlacement) bool {
			return d.Kind == m.Identifier.Kind && d.Namespace == m.Identifier.Namespace && d.Name == m.Identifier.Name
		}) {
			object.State, object.Ready = "drifted", false
		}
		node.Ready = node.Ready && object.Ready
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

// stateOf summarizes conditions, and reports whether the resource is ready.
func stateOf(conditions []metav1.Condition) (state string, ready bool) {
	for _, w := range falseStates {
		if c := meta.FindStatusCondition(conditions, w.condition); c != nil && c.Status == metav1.ConditionFalse {
			return w.isFalse, false
		}
	}
	for _, done := range []struct{ condition, is string }{
		{placementv1beta1.ConditionAvailable, "available"}, {placementv1beta1.ConditionDiffReported, "diff reported"}, {placementv1beta1.ConditionApplied, "applied"},
	} {
		if meta.IsStatusConditionTrue(conditions, done.condition) {
			return done.is, done.condition != placementv1beta1.ConditionApplied
		}
	}
	return "in progress", false
}

func stateOfFailure(condition string) string {
	for _, w := range falseStates {
		if w.condition == condition {
			return w.isFalse
		}
	}
	return "failed"
}

// First returns the names of at most limit members of a placement's tree, those that are not ready
// first.
func (n Node) First(limit int) []string {
	var notReady, ready []string
	for _, c := range n.Children {
		if c.Ready {
			ready = append(ready, c.Name)
		} else {
			notReady = append(notReady, c.Name)
		}
	}
	all := append(notReady, ready...)
	return all[:min(len(all), limit)]
}

// NotReady returns the tree without the nodes that are ready.
func (n Node) NotReady() Node {
	var children []Node
	for _, c := range n.Children {
		if !c.Ready {
			children = append(children, c.NotReady())
		}
	}
	n.Children = children
	return n
}

// maxHint limits the characters of a hint: members write them.
const maxHint = 120

// Draw writes the tree. The error is the writer's.
func (n Node) Draw(out io.Writer) error { return n.draw(out, "", "") }

func (n Node) draw(out io.Writer, first, rest string) error {
	line := first + untrusted.Line(n.Label()) + ": " + n.State
	if n.Hint != "" {
		hint := []rune(untrusted.Line(n.Hint))
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
