// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestEvaluator_Of(t *testing.T) {
	const running = `{apiVersion: example.com/v1, kind: Gadget, metadata: {generation: 2, name: a}, spec: {size: 3}, status: {phase: Running, ready: 3}}`
	const hostile = `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c,
		[1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))`
	cases := map[string]struct {
		object                      string
		inProgress, failed, current string
		want                        State
		mention                     string
	}{
		"the kind's rule without expressions":        {object: running, want: NotTrackable},
		"current holds":                              {object: running, current: "status.phase == 'Running'", want: Available, mention: "health-current"},
		"current reads several fields":               {object: running, current: "status.ready == spec.size && metadata.name == 'a' && kind == 'Gadget'", want: Available},
		"current does not hold":                      {object: running, current: "status.phase == 'Done'", want: NotYet, mention: "health-current"},
		"failed holds":                               {object: running, failed: "status.ready > 2", current: "status.phase == 'Running'", want: Failed, mention: "health-failed"},
		"in progress holds, although failed does":    {object: running, inProgress: "true", failed: "true", want: NotYet, mention: "health-in-progress"},
		"only failed, which does not hold":           {object: running, failed: "status.phase == 'Broken'", want: NotTrackable},
		"only failed, of an object that is Ready":    {object: resource("status: {conditions: [{type: Ready, status: 'True'}]}"), failed: "status.?phase.orValue('') == 'Broken'", want: Available},
		"replaces the rule of a built-in kind":       {object: `{apiVersion: v1, kind: ConfigMap, data: {ready: "no"}}`, current: "data.ready == 'yes'", want: NotYet},
		"a Flux expression over conditions":          {object: resource("status: {conditions: [{type: Ready, status: 'False'}]}"), failed: "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')", want: Failed},
		"a status of an earlier generation":          {object: resource("status: {observedGeneration: 1, phase: Running}"), current: "status.phase == 'Running'", want: NotYet, mention: "latest change"},
		"a field that is not written yet":            {object: resource("{}"), current: "status.phase == 'Running'", want: NotYet, mention: "(status.phase == 'Running'): the expression cannot be evaluated yet: no such key: phase"},
		"a field that is not written yet, tested":    {object: resource("{}"), failed: "has(status.phase) && status.phase == 'Broken'", current: "has(status.phase)", want: NotYet, mention: "does not hold"},
		"an expression that does not compile":        {object: running, current: "stauts.phase == 'Running'", want: HealthCheckInvalid, mention: "(stauts.phase == 'Running'): the expression is invalid: ERROR: <input>:1:1: undeclared reference to 'stauts'"},
		"a syntax error":                             {object: running, failed: "status.phase ==", want: HealthCheckInvalid, mention: "annotation example.com/health-failed (status.phase ==)"},
		"a result that is no bool":                   {object: running, current: "status.phase", want: HealthCheckInvalid, mention: "string instead of bool"},
		"an expression that would take minutes":      {object: running, current: hostile, want: HealthCheckInvalid, mention: "too expensive"},
		"a quantity that would take minutes":         {object: running, current: `quantity("1e-99999999").isGreaterThan(quantity("1"))`, want: NotYet, mention: "digits in its exponent"},
		"a Secret, whose values a result could tell": {object: `{apiVersion: v1, kind: Secret, data: {a: Yg==}}`, current: "data.a == 'Yg=='", want: HealthCheckInvalid, mention: "Secret"},
	}
	evaluator, err := NewEvaluator()
	if err != nil {
		t.Fatal(err)
	}
	names := HealthAnnotations{InProgress: "example.com/health-in-progress", Failed: "example.com/health-failed", Current: "example.com/health-current"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			wanted := object.DeepCopy()
			wanted.SetAnnotations(map[string]string{names.InProgress: tc.inProgress, names.Failed: tc.failed, names.Current: tc.current})
			found := evaluator.Of(object, wanted, names)
			if found.State != tc.want || !strings.Contains(found.Message, tc.mention) {
				t.Errorf("%s: %s, want %s with %q", found.State, found.Message, tc.want, tc.mention)
			}
		})
	}
}

// Without names, annotations of a manifest have no meaning.
func TestEvaluator_OfWithoutAnnotationNames(t *testing.T) {
	object := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {example.com/health-current: "false"}}}`)
	if found := (&Evaluator{}).Of(object, object, HealthAnnotations{}); found.State != Available {
		t.Errorf("%s, want %s", found.State, Available)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return integers(object)
}

// resource is a custom resource of generation 2.
func resource(rest string) string {
	text := "{apiVersion: example.com/v1, kind: Gadget, metadata: {generation: 2}"
	if rest != "{}" {
		text += ", " + rest
	}
	return text + "}"
}
