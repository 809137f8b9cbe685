// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Annotation is on what is held on a member, or on its record there: since when, in RFC 3339,
// by the member's clock, for people; the id by which it is let go; and "another-work" if the
// hub did not go back as far as can be seen. There are slashes between. An agent of before
// wrote the time alone. The agent writes it.
const Annotation = "fleetgate.io/held-since"

// anotherWork is the last part of Annotation where a Work has come in the place of another, as
// when a member leaves and joins again.
const anotherWork = "another-work"

// Mark is what Annotation says. The zero value is nothing: it is not held.
type Mark struct {
	Since, ID string
	// Another is set when a Work has come in the place of another.
	Another bool
}

// MarkOn is what an object says.
func MarkOn(object metav1.Object) Mark {
	parts := append(strings.SplitN(object.GetAnnotations()[Annotation], "/", 3), "", "")
	return Mark{Since: parts[0], ID: parts[1], Another: parts[2] == anotherWork}
}

// Text is the value of Annotation; empty if nothing is held.
func (m Mark) Text() string {
	switch {
	case !m.Is():
		return ""
	case m.Another:
		return m.Since + "/" + m.ID + "/" + anotherWork
	}
	return m.Since + "/" + m.ID
}

// Is reports whether something is held.
func (m Mark) Is() bool { return m != Mark{} }

// IsReleased reports whether the ids that an administrator releases include that of the mark.
// Marks of agents that do not support ids have none: a time in RFC 3339 releases those that are
// not later.
func (m Mark) IsReleased(ids []string) bool {
	if m.ID != "" {
		return slices.Contains(ids, m.ID)
	}
	since, err := time.Parse(time.RFC3339, m.Since)
	return err == nil && slices.ContainsFunc(ids, func(id string) bool {
		until, err := time.Parse(time.RFC3339, id)
		return err == nil && !since.After(until)
	})
}

// ReleasedIDs are the ids that an InternalMemberCluster releases, of this member or of others.
func ReleasedIDs(member metav1.Object) []string {
	return strings.Split(Released(member), ",")
}

// Released is ReleasedIDs as the annotation has them, separated by commas.
func Released(member metav1.Object) string {
	if ids, ok := member.GetAnnotations()[clusterv1beta1.AnnotationRelease]; ok {
		return ids
	}
	// A hub of the previous version copies the old key only. Remove after the next release.
	return member.GetAnnotations()[clusterv1beta1.DeprecatedAnnotationLetGo]
}
