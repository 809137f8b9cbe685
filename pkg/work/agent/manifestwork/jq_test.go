// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

func scaledObject(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(scaled), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestRemoveByJQ_AcceptsExpressionsThatSelectFields(t *testing.T) {
	for expression, gone := range map[string]string{
		`.spec.template.spec.containers[] | select(.name | IN("proxy", "other")) | .image`:    `,"image":"p:1"`,
		`.spec.template.spec.containers[] | select(any(.name, .image; test("^p:"))) | .image`: `,"image":"p:1"`,
		`getpath(["spec", "replicas"])`:                                                                    `"replicas":3,`,
		`.. | objects | select(has("replicas")) | .replicas`:                                               `"replicas":3,`,
		`if .kind == "Deployment" and (.spec.replicas > 2 | not | not) then .spec.replicas else empty end`: `"replicas":3,`,
		`.metadata.labels["b"]?`:                                                                           `,"b":"2"`,
		`.spec.template.spec.containers | last | .image`:                                                   `,"image":"p:1"`,
		`.spec.template.spec.containers[1:][] | .image # the second`:                                       `,"image":"p:1"`,
	} {
		object := scaledObject(t)
		if err := removeByJQ(t.Context(), object, expression); err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		want := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(strings.Replace(scaled, gone, "", 1)), &want.Object); err != nil {
			t.Fatal(err)
		}
		got, _ := object.MarshalJSON()
		wanted, _ := want.MarshalJSON()
		if string(got) != string(wanted) {
			t.Errorf("%s leaves %s, want %s", expression, got, wanted)
		}
	}
}

// Each of these expressions used gigabytes of memory within its time limit.
func TestRemoveByJQ_RejectsExpressionsThatBuildLargeValues(t *testing.T) {
	for _, expression := range []string{
		`.a | select([range(1e18)])`,
		`select("x" * 1e9 == .kind)`,
		`select("x" | ` + strings.TrimSuffix(strings.Repeat(".+.|", 40), "|") + ` | true)`,
		`select("x" | "\(.)\(.)" | "\(.)\(.)" | true)`,
		`select([..] | [..] | [..] | true)`,
		`select({a: .} | {a: .} | true)`,
		`select(reduce repeat(1) as $x ([]; . + [$x]))`,
		`select(foreach repeat(1) as $x ([]; . + [$x]))`,
		`def f: [f]; f`,
		`. as $x | [$x, $x] | .[0]`,
		`recurse(if . then [., .] else . end)`,
		`select(tojson | tojson | tojson)`,
		`select(@json | @json)`,
		`select([limit(1e9; repeat(1))])`,
		`.a[[.. , ..] | length]`,
		`."a\(1e9 * "x")"`,
		`.a = ("x" * 1e9)`,
		`.spec.replicas), (.kind`,
	} {
		if err := removeByJQ(t.Context(), scaledObject(t), expression); err == nil {
			t.Errorf("%s is run", expression)
		}
	}
	// Commas and pipes are enough to match more places than fit in memory.
	everywhere := strings.TrimSuffix(strings.Repeat("(.,.)|", 600), "|") + "|.spec.replicas"
	if err := removeByJQ(t.Context(), scaledObject(t), everywhere); err == nil || !strings.Contains(err.Error(), "more than 1000 places") {
		t.Errorf("many places: %v", err)
	}
}
