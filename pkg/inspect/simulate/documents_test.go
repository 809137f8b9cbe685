// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/inspect/simulate"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
)

// docs/reference/placement.md, and pages that use its fleet, mark each example with a comment: "# simulate:" with
// the members that it selects in that fleet, or "# apply".
func TestRun_ExamplesOfDocumentation(t *testing.T) {
	var text []byte
	for _, page := range []string{"reference/placement.md", "how-to/placement.md", "how-to/rollout.md", "how-to/eviction.md", "how-to/overrides.md", "reference/placed-resources.md"} {
		content, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, content...)
	}
	var fleet string
	simulated := 0
	for _, match := range regexp.MustCompile("(?s)```yaml\n# ([a-z]+):? ?([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		mark, members, example := match[1], strings.Fields(match[2]), match[3]
		switch mark {
		case "fleet":
			fleet = example
		case "simulate":
			simulated++
			input := &simulate.Input{}
			if err := input.Parse("docs", strings.NewReader(fleet+"\n---\n"+example)); err != nil {
				t.Errorf("%v in\n%s", err, example)
				continue
			}
			results, err := simulate.Run(scheduler.Profile(), input, simulate.Options{Now: time.Now()})
			if err != nil || len(results) != 1 {
				t.Errorf("%d results, error %v of\n%s", len(results), err, example)
				continue
			}
			var got []string
			for _, c := range results[0].Clusters {
				if c.Selected {
					got = append(got, c.Name)
				}
			}
			slices.Sort(members)
			if diff := cmp.Diff(members, got); diff != "" {
				t.Errorf("%s (-document +decision):\n%s", results[0].Placement, diff)
			}
		case "apply":
		default:
			t.Errorf("unknown mark %q of an example", mark)
		}
	}
	if simulated < 5 {
		t.Errorf("found only %d examples: this test does not read the document correctly", simulated)
	}
}
