// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// maxExamples limits the objects that are named for one placement.
	maxExamples = 5
	// maxExample limits the bytes of one name.
	maxExample = 600
	// maxOrigins limits the placements, because the text is in a status.
	maxOrigins = 100
)

// Leftovers are the objects that stay on a member although their placement no longer selects it, by the
// placement, which is a value of RetainedFromAnnotation. An agent reports them as text.
type Leftovers map[string]Leftover

// Leftover is what stays of one placement.
type Leftover struct {
	Objects  int      `json:"objects"`
	Examples []string `json:"examples"`
}

// OriginOf is the name of a placement in Leftovers. The namespace is empty for a
// ClusterResourcePlacement.
func OriginOf(namespace, name string) string {
	if namespace == "" {
		return "ClusterResourcePlacement " + name
	}
	return fmt.Sprintf("ResourcePlacement %s/%s", namespace, name)
}

// ofHub separates an origin from the name of its hub in RetainedFromAnnotation.
const ofHub = " of hub "

// WithHub is the value of RetainedFromAnnotation. The name of the hub is empty if the member has one hub.
func WithHub(origin, hub string) string {
	if hub == "" {
		return origin
	}
	return origin + ofHub + hub
}

// CutHub reads a value of RetainedFromAnnotation.
func CutHub(text string) (origin, hub string) {
	origin, hub, _ = strings.Cut(text, ofHub)
	return origin, hub
}

// PlacementOf is the placement of a name in Leftovers.
func PlacementOf(origin string) (namespace, name string, ok bool) {
	if name, ok := strings.CutPrefix(origin, "ClusterResourcePlacement "); ok {
		return "", name, true
	}
	key, ok := strings.CutPrefix(origin, "ResourcePlacement ")
	namespace, name, found := strings.Cut(key, "/")
	return namespace, name, ok && found
}

// Add counts an object.
func (l Leftovers) Add(origin, object string) {
	of := l[origin]
	of.Objects++
	if len(of.Examples) < maxExamples {
		of.Examples = append(of.Examples, object)
	}
	l[origin] = of
}

// String is the text of a report; empty if there are none.
func (l Leftovers) String() string {
	if len(l) == 0 {
		return ""
	}
	first := Leftovers{}
	for _, origin := range slices.Sorted(maps.Keys(l))[:min(len(l), maxOrigins)] {
		first[origin] = l[origin]
	}
	text, err := json.Marshal(first)
	if err != nil {
		return "" // Numbers and texts can always be encoded.
	}
	return string(text)
}

// ParseLeftovers reads a report, which comes from a member. An unreadable or oversized one has none.
func ParseLeftovers(text string) Leftovers {
	var all Leftovers
	if text == "" || untrusted.UnmarshalJSON([]byte(text), reportLimits(), &all) != nil {
		return nil
	}
	for origin, of := range all {
		of.Examples = of.Examples[:min(len(of.Examples), maxExamples)]
		for i, example := range of.Examples {
			of.Examples[i] = untrusted.Truncate(example, maxExample)
		}
		all[origin] = of
	}
	return all
}

func reportLimits() untrusted.Limits {
	limits := untrusted.Object
	limits.Bytes, limits.Values = 256<<10, 10_000
	return limits
}
