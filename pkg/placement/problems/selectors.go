// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"slices"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// UnmatchedNames describes the selectors that name an object which is not among the selected resources,
// such as an object that is not created yet or a misspelled name. It is empty if there are none, while
// nothing is known about the selection, and if nothing is selected at all. A selector by labels may
// match nothing.
func UnmatchedNames(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) string {
	if len(status.SelectedResources) == 0 {
		return ""
	}
	first, more := "", 0
	for i, term := range placement.GetSpec().ResourceSelectors {
		named := func(r placementv1beta1.ResourceIdentifier) bool {
			return r.Group == term.Group && r.Kind == term.Kind && r.Name == term.Name
		}
		switch {
		case term.Name == "" || slices.ContainsFunc(status.SelectedResources, named):
		case first == "":
			first = fmt.Sprintf("spec.resourceSelectors[%d] selects nothing: %s %q is not on the hub, or cannot be placed", i, term.Kind, term.Name)
		default:
			more++
		}
	}
	switch more {
	case 0:
		return first
	case 1:
		return first + " (and 1 more selector)"
	}
	return fmt.Sprintf("%s (and %d more selectors)", first, more)
}
