// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeftovers_AreReadAsReported(t *testing.T) {
	reported := Leftovers{}
	for i := range 7 {
		reported.Add(OriginOf("", "shop"), fmt.Sprintf("PersistentVolumeClaim shop/data-%d", i))
	}
	reported.Add(OriginOf("team", "web"), "Namespace team")
	read := ParseLeftovers(reported.String())
	if diff := cmp.Diff(reported, read); diff != "" {
		t.Errorf("read (-reported +read):\n%s", diff)
	}
	if of := read["ClusterResourcePlacement shop"]; of.Objects != 7 || len(of.Examples) != maxExamples {
		t.Errorf("%d objects with %d examples", of.Objects, len(of.Examples))
	}
	if namespace, name, ok := PlacementOf("ResourcePlacement team/web"); !ok || namespace != "team" || name != "web" {
		t.Errorf("PlacementOf() = %q %q %t", namespace, name, ok)
	}
	if _, _, ok := PlacementOf("Work web-work"); ok {
		t.Error("a Work is a placement")
	}
}

func TestParseLeftovers_BoundsWhatAMemberReports(t *testing.T) {
	examples := strings.Repeat(`"`+strings.Repeat("x", 2000)+`",`, 20)
	of := ParseLeftovers(`{"ClusterResourcePlacement a":{"objects":20,"examples":[` + strings.TrimSuffix(examples, ",") + `]}}`)["ClusterResourcePlacement a"]
	if len(of.Examples) != maxExamples || len(of.Examples[0]) != maxExample {
		t.Errorf("%d examples of %d bytes", len(of.Examples), len(of.Examples[0]))
	}
	for _, text := range []string{"", "x", `{"a":1}`, `{"a":{"examples":["` + strings.Repeat("x", 300<<10) + `"]}}`} {
		if read := ParseLeftovers(text); len(read) > 0 {
			t.Errorf("%.20s: read %v", text, read)
		}
	}
	if text := (Leftovers{}).String(); text != "" {
		t.Errorf("nothing is reported as %q", text)
	}
}
