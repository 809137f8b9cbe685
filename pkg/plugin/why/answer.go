// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"unicode"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Answer is why something is not as it should be.
type Answer struct {
	// Object is what it is about, such as "Deployment shop/web" or "placement shop".
	Object string `json:"object"`
	// Member is on which member; empty if it is not about one.
	Member string `json:"member,omitempty"`
	// Reason says what is wrong, in the words of whoever found it.
	Reason string `json:"reason"`
	// Remedy says what to do.
	Remedy string `json:"remedy,omitempty"`
	// Details are what else there is to know, a line each.
	Details []string `json:"details,omitempty"`
	// Others is how many more members have the same.
	Others int `json:"others,omitempty"`
	// Of is the object on the member; nil if the answer is of something else.
	Of *placementv1beta1.ResourceIdentifier `json:"of,omitempty"`
	// Live is true if the object is there, so that the member can be asked about it.
	Live bool `json:"-"`
	// code is the reason of the condition that says Reason; empty if none does.
	code string
	// vague is true if the remedy is no more than to look at it.
	vague bool
}

// maxReason is how many letters of a reason the first line has: members write them.
const maxReason = 600

// String is the first line: object, member, reason, remedy.
func (a Answer) String() string {
	var b strings.Builder
	b.WriteString(Plain(a.Object))
	if a.Member != "" {
		fmt.Fprintf(&b, " on member %s", Plain(a.Member))
	}
	switch {
	case a.Others == 1:
		b.WriteString(" (and 1 more)")
	case a.Others > 1:
		fmt.Fprintf(&b, " (and %d more)", a.Others)
	}
	fmt.Fprintf(&b, ": %s", strings.TrimRight(shorten(Plain(a.Reason)), ". "))
	if a.Remedy != "" {
		fmt.Fprintf(&b, ". To do: %s", a.Remedy)
	}
	return b.String()
}

// Plain makes a text of others fit for a terminal: one line, and no letter that moves the
// cursor or turns the direction of what follows.
func Plain(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || !unicode.IsPrint(r)
	}), " ")
}

func shorten(text string) string {
	if letters := []rune(text); len(letters) > maxReason {
		return string(letters[:maxReason]) + "..."
	}
	return text
}
