// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Problem is one problem with its reason and its remedy.
type Problem struct {
	// Object is what it is about, such as "Deployment shop/web" or "placement shop".
	Object string `json:"object"`
	// Member is the member that has the problem; empty if the problem is not on a member.
	Member string `json:"member,omitempty"`
	// Reason is the problem, in the words of the component that reported it.
	Reason string `json:"reason"`
	// Remedy says how to fix it: an imperative, or a command.
	Remedy string `json:"remedy,omitempty"`
	// Details are further facts, one line each.
	Details []string `json:"details,omitempty"`
	// Others is how many more members have the same problem.
	Others int `json:"others,omitempty"`
	// Of is the object on the member; nil if the answer is not about such an object.
	Of *placementv1beta1.ResourceIdentifier `json:"of,omitempty"`
	// Live is true if the object exists on the member, so that its events and Pods can be read.
	Live bool `json:"-"`
	// code is the reason of the condition whose message is in Reason; empty if there is none.
	code string
	// vague is true if the remedy only says where to look.
	vague bool
}

// maxReason limits the characters of a reason on the first line: members write them.
const maxReason = 600

// String is the first line: object, member, reason, remedy.
func (a Problem) String() string {
	var b strings.Builder
	b.WriteString(untrusted.Line(a.Object))
	if a.Member != "" {
		fmt.Fprintf(&b, " on member %s", untrusted.Line(a.Member))
	}
	switch {
	case a.Others == 1:
		b.WriteString(" (and 1 more)")
	case a.Others > 1:
		fmt.Fprintf(&b, " (and %d more)", a.Others)
	}
	fmt.Fprintf(&b, ": %s", strings.TrimRight(untrusted.Excerpt(a.Reason, maxReason), ". "))
	if a.Remedy != "" {
		fmt.Fprintf(&b, ". Remedy: %s", a.Remedy)
	}
	return b.String()
}
