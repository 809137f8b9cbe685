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

// Annotation is set on retained objects of a member, or on their record. It consists of three
// parts, separated by slashes: the start time in RFC 3339 by the member's clock, for people; the id
// for the release; and "another-work" if a Work was replaced rather than the hub restored. Earlier
// versions of the agent wrote only the time. The agent writes it.
const Annotation = "fleetgate.io/held-since"

// anotherWork is the last part of Annotation if a Work was replaced, for example because a member
// left and rejoined.
const anotherWork = "another-work"

// Mark is the decoded Annotation. The zero value means that nothing is retained.
type Mark struct {
	Since, ID string
	// Another is set if a Work was replaced.
	Another bool
}

// MarkOn returns the mark of an object.
func MarkOn(object metav1.Object) Mark {
	parts := append(strings.SplitN(object.GetAnnotations()[Annotation], "/", 3), "", "")
	return Mark{Since: parts[0], ID: parts[1], Another: parts[2] == anotherWork}
}

// Text returns the value of Annotation; empty if nothing is retained.
func (m Mark) Text() string {
	switch {
	case !m.Is():
		return ""
	case m.Another:
		return m.Since + "/" + m.ID + "/" + anotherWork
	}
	return m.Since + "/" + m.ID
}

// Is reports whether something is retained.
func (m Mark) Is() bool { return m != Mark{} }

// IsReleased reports whether the ids that an administrator releases include that of the mark. Marks
// of agents without support for ids have none: a time in RFC 3339 releases those that are not
// later.
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

// ReleasedIDs returns the ids that an InternalMemberCluster releases, of this member or of others.
func ReleasedIDs(member metav1.Object) []string {
	return strings.Split(Released(member), ",")
}

// Released is ReleasedIDs as one comma-separated value.
func Released(member metav1.Object) string {
	if ids, ok := member.GetAnnotations()[clusterv1beta1.AnnotationRelease]; ok {
		return ids
	}
	// A hub of the previous version copies the old key only. Remove after the next release.
	return member.GetAnnotations()[clusterv1beta1.DeprecatedAnnotationLetGo]
}
