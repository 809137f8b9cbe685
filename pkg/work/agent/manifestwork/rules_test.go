// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func rulerFor(t testing.TB) *ruler {
	t.Helper()
	r, err := newRuler()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{Type: workv1.ConditionCEL, Condition: condition, CELExpressions: expressions}
}

func TestRuler_EvaluatesConditions(t *testing.T) {
	const widget = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: "10Gi", at: "10.0.0.1", url: "https://example.com:80/x"}, status: {phase: Ready}}`
	message := func(rule workv1.ConditionRule, text, expression string) workv1.ConditionRule {
		rule.Message, rule.MessageExpression = text, expression
		return rule
	}
	known := workv1.ConditionRule{Type: workv1.ConditionWellKnown, Condition: "Complete"}
	job := func(status string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: ` + status + `}`
	}
	for name, tc := range map[string]struct {
		object string
		rule   workv1.ConditionRule
		want   []string // parts of the one condition; none: there is none
	}{
		"true":              {widget, celRule("Ready", "object.status.phase == 'Ready'"), []string{"Ready True ConditionRuleEvaluated 0: Manifest is Ready"}},
		"false":             {widget, celRule("Ready", "object.status.phase == 'Done'"), []string{"Ready False ConditionRuleEvaluated 0: Manifest is not Ready"}},
		"all have to hold":  {widget, celRule("Ready", "true", "false"), []string{"Ready False ConditionRuleEvaluated"}},
		"no expression":     {widget, celRule("Ready"), []string{"Ready True ConditionRuleEvaluated"}},
		"a message":         {widget, message(celRule("Ready", "true"), "all well", ""), []string{": all well"}},
		"a message made":    {widget, message(celRule("Ready", "true"), "other", "object.kind + (result ? ' is' : ' is not')"), []string{": Widget is"}},
		"an empty one made": {widget, message(celRule("Ready", "true"), "other", "''"), []string{": other"}},
		"a wrong message":   {widget, message(celRule("Ready", "true"), "", "object.no.such"), []string{"Ready True ConditionRuleEvaluated 0: no such key: no"}},
		"a message of no text": {widget, message(celRule("Ready", "true"), "", "1"),
			[]string{"expected message expression to have a string result, got int64"}},
		"a syntax error":    {widget, celRule("Ready", "object.status.phase ="), []string{"Ready False ConditionRuleExpressionError", "Syntax error"}},
		"a missing field":   {widget, celRule("Ready", "object.status.none == 1"), []string{"Ready False ConditionRuleExpressionError 0: no such key: none"}},
		"no truth value":    {widget, celRule("Ready", "1"), []string{"Ready False ConditionRuleExpressionError 0: expected bool result, got int64"}},
		"result, in a rule": {widget, celRule("Ready", "result"), []string{"ConditionRuleExpressionError", "undeclared reference to 'result'"}},
		"too long":          {widget, celRule("Ready", strings.Repeat(" ", 20<<10)+"true"), []string{"ConditionRuleExpressionError", "the limit is 16384"}},
		"too expensive":     {widget, celRule("Ready", "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))"), []string{"ConditionRuleExpressionError", "cost"}},
		"functions of upstream": {widget, celRule("Ready", "quantity(object.spec.size).isGreaterThan(quantity('1Gi'))", "ip(object.spec.at).family() == 4",
			"cidr('10.0.0.0/8').containsIP(object.spec.at)", "url(object.spec.url).getHost() == 'example.com:80'", "[1,2].isSorted()", "'a1'.find('[0-9]') == '1'",
			"semver('1.2.3').major() == 1", "!format.dns1123Label().validate('a').hasValue()", "hasConditions(object.status) == false"), []string{"Ready True ConditionRuleEvaluated"}},
		"a rule of a later version": {widget, workv1.ConditionRule{Type: "JQ", Condition: "Ready"}, []string{"Ready Unknown ConditionRuleInvalid 0: unrecognized condition rule type JQ"}},

		"a Job that succeeded":     {job(`{conditions: [{type: Complete, status: "True"}]}`), known, []string{"Complete True ConditionRuleEvaluated 0: Job is finished"}},
		"a Job that failed":        {job(`{conditions: [{type: Failed, status: "True"}]}`), known, []string{"Complete True ConditionRuleEvaluated 0: Job is finished"}},
		"a Job that runs":          {job(`{active: 1}`), known, []string{"Complete False ConditionRuleEvaluated 0: Job is not finished"}},
		"a Job without a status":   {`{apiVersion: batch/v1, kind: Job, metadata: {name: a}}`, known, []string{"Complete False ConditionRuleEvaluated 0: Job is not finished"}},
		"a Pod that is done":       {`{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Succeeded}}`, known, []string{"Complete True ConditionRuleEvaluated 0: Pod is in phase Succeeded"}},
		"a Pod that is new":        {`{apiVersion: v1, kind: Pod, metadata: {name: a}}`, known, []string{"Complete False ConditionRuleEvaluated 0: Pod is in phase Unknown"}},
		"a Job, in own words":      {job(`{active: 1}`), message(known, "", "'wait'"), []string{": wait"}},
		"no well-known rule":       {widget, known, nil},
		"another condition of one": {job(`{}`), workv1.ConditionRule{Type: workv1.ConditionWellKnown, Condition: "Progressing"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(rulerFor(t).evaluate(object(t, tc.object), []workv1.ConditionRule{tc.rule}))
			if len(tc.want) == 0 && len(got) == 0 {
				return
			}
			for _, part := range tc.want {
				if len(got) != 1 || !strings.Contains(got[0], part) {
					t.Errorf("the conditions are %q, want one with %q", got, part)
				}
			}
		})
	}
}

func TestRuler_HidesDataOfASecret(t *testing.T) {
	secret := object(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {password: hidden}}`)
	rule := celRule("Ready", "true")
	rule.MessageExpression = "string(object.data.password)"
	if got := lines(rulerFor(t).evaluate(secret, []workv1.ConditionRule{rule})); strings.Contains(strings.Join(got, ""), "hidden") {
		t.Errorf("the conditions are %q", got)
	}
}

func TestRuler_SharesOneBudgetAmongAllRulesOfAnObject(t *testing.T) {
	expensive := "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a+b+c+d > 0))))"
	var rules []workv1.ConditionRule
	for range 300 {
		rules = append(rules, celRule("X", expensive))
	}
	got := rulerFor(t).evaluate(object(t, deploymentText), rules)
	if got[0].Status != metav1.ConditionTrue {
		t.Fatalf("the first is %q", lines(got[:1]))
	}
	if last := got[len(got)-1]; last.Reason != workv1.ReasonRuleExpressionError || !strings.Contains(last.Message, "CEL evaluation budget exceeded") {
		t.Errorf("the last is %q", lines(got[len(got)-1:]))
	}
}

func TestAggregated_CombinesConditionsOfManifests(t *testing.T) {
	merged := func(conditions ...metav1.Condition) workv1.ManifestCondition {
		return workv1.ManifestCondition{Conditions: conditions}
	}
	c := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: workv1.ReasonRuleEvaluated, Message: message}
	}
	for name, tc := range map[string]struct {
		manifests []workv1.ManifestCondition
		want      []string
	}{
		"none":             {[]workv1.ManifestCondition{merged(metav1.Condition{Type: "Applied", Status: "True", Reason: "AppliedManifestComplete"})}, nil},
		"one":              {[]workv1.ManifestCondition{merged(c("Complete", "True", "Job is finished")), merged()}, []string{"Complete True ConditionRulesAggregated 0: Job is finished"}},
		"several":          {[]workv1.ManifestCondition{merged(c("Complete", "True", "a")), merged(c("Complete", "True", "b"))}, []string{"Complete True ConditionRulesAggregated 0: Aggregated from 2 manifest conditions"}},
		"one is false":     {[]workv1.ManifestCondition{merged(c("Complete", "Unknown", "")), merged(c("Complete", "False", "")), merged(c("Complete", "True", ""))}, []string{"Complete False ConditionRulesAggregated 0: Aggregated from 3 manifest conditions"}},
		"one is unknown":   {[]workv1.ManifestCondition{merged(c("Complete", "Unknown", "")), merged(c("Complete", "True", ""))}, []string{"Complete Unknown ConditionRulesAggregated 0: Aggregated from 2 manifest conditions"}},
		"one progresses":   {[]workv1.ManifestCondition{merged(c("Progressing", "True", "")), merged(c("Progressing", "False", ""))}, []string{"Progressing True ConditionRulesAggregated 0: Aggregated from 2 manifest conditions"}},
		"none progresses":  {[]workv1.ManifestCondition{merged(c("Progressing", "False", "done"))}, []string{"Progressing False ConditionRulesAggregated 0: done"}},
		"of several types": {[]workv1.ManifestCondition{merged(c("Z", "True", "z"), c("A", "False", "a"))}, []string{"A False ConditionRulesAggregated 0: a", "Z True ConditionRulesAggregated 0: z"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(aggregated(tc.manifests))); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredStatus_RemovesConditionsOfDeletedRules(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	found := &examined{rules: []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue, Reason: workv1.ReasonRuleEvaluated, Message: "done"}}}
	work.Status = desiredStatus(work, []engine.ManifestResult{{Ref: refTo("a"), UID: "1", Examined: found}}, early)
	if !isResting(work) || !isComplete(work, refTo("a")) {
		t.Fatalf("the work is not Complete: %q", lines(work.Status.Conditions))
	}
	work.Generation = 2
	after := desiredStatus(work, []engine.ManifestResult{{Ref: refTo("a"), UID: "1", Examined: &examined{}}}, later)
	want := []string{"Applied True AppliedManifestWorkComplete 2: Apply manifest work complete", "Available True ResourcesAvailable 2: All resources are available"}
	if diff := cmp.Diff(want, lines(after.Conditions)); diff != "" {
		t.Errorf("conditions of the work (-want +got):\n%s", diff)
	}
	if got := lines(after.ResourceStatus.Manifests[0].Conditions); len(got) != 3 {
		t.Errorf("conditions of the manifest: %q", got)
	}
}

func FuzzRules(f *testing.F) {
	for _, text := range []string{"object.status.readyReplicas == 2", "object", "[", "hasConditions(object.status)", "object.map(x, x)", "'a'.matches('(a*)*b')"} {
		f.Add(text)
	}
	r := rulerFor(f)
	f.Fuzz(func(t *testing.T, text string) {
		rule := celRule("Ready", text)
		rule.MessageExpression = text
		live := object(t, deploymentText)
		for _, c := range r.evaluate(live, []workv1.ConditionRule{rule}) {
			if c.Reason == "" || c.Status == "" || len(c.Message) > 32<<10 {
				t.Errorf("%q makes %+v", text, c)
			}
		}
		if diff := cmp.Diff(object(t, deploymentText).Object, live.Object); diff != "" {
			t.Errorf("%q changed the object (-before +after):\n%s", text, diff)
		}
	})
}
