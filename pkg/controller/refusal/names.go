// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"fmt"
	"strings"
)

// Names lists names for a message, at most so many: "a, b and 3 more".
func Names(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
