// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return object
}

// merged formats feedback values.
func merged(values []workv1.FeedbackValue) []string {
	var texts []string
	for _, v := range values {
		var value any
		switch v.Value.Type {
		case workv1.ValueInteger:
			value = *v.Value.Integer
		case workv1.ValueString:
			value = *v.Value.String
		case workv1.ValueBoolean:
			value = *v.Value.Boolean
		case workv1.ValueJSONRaw:
			value = *v.Value.JSONRaw
		}
		texts = append(texts, fmt.Sprintf("%s %s %v", v.Name, v.Value.Type, value))
	}
	return texts
}

const deploymentText = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: default, name: web, labels: {app: web}},
spec: {paused: false, replicas: 3}, status: {readyReplicas: 2, replicas: 3, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]}}`

func TestFeedback_ReportsTheValuesOfRules(t *testing.T) {
	paths := func(paths ...workv1.JSONPath) []workv1.FeedbackRule {
		return []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: paths}}
	}
	wellKnown := []workv1.FeedbackRule{{Type: workv1.FeedbackWellKnownStatus}}
	for name, tc := range map[string]struct {
		object  string
		rules   []workv1.FeedbackRule
		raw     bool
		want    []string
		failure string
	}{
		"nothing": {object: deploymentText},
		"well-known values of a Deployment, except missing ones": {
			object: deploymentText, rules: wellKnown,
			want: []string{"ReadyReplicas Integer 2", "Replicas Integer 3"}},
		"well-known values of a DaemonSet": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, status: {numberReady: 1, desiredNumberScheduled: 2, numberAvailable: 0}}`, rules: wellKnown,
			want: []string{"NumberReady Integer 1", "DesiredNumberScheduled Integer 2", "NumberAvailable Integer 0"}},
		"well-known values of a Job": {
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, rules: wellKnown,
			want: []string{"JobComplete String True", "JobSucceeded Integer 1"}},
		"well-known values of a Pod": {
			object: `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, rules: wellKnown,
			want: []string{"PodReady String False", "PodPhase String Running"}},
		"a kind without well-known values": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, rules: wellKnown,
			failure: "cannot find the wellknown statuses for resource with gvk /v1, Kind=ConfigMap"},
		"paths to values of all types": {
			object: deploymentText,
			rules: paths(workv1.JSONPath{Name: "paused", Path: ".spec.paused"}, workv1.JSONPath{Name: "app", Path: ".metadata.labels.app"},
				workv1.JSONPath{Name: "available", Path: `.status.conditions[?(@.type=="Available")].status`}, workv1.JSONPath{Name: "none", Path: ".status.none.at.all"}),
			want: []string{"paused Boolean false", "app String web", "available String True"}},
		"a path for another version": {
			object: deploymentText, rules: paths(workv1.JSONPath{Name: "old", Version: "v1beta1", Path: ".spec.replicas"}, workv1.JSONPath{Name: "new", Version: "v1", Path: ".spec.replicas"}),
			want: []string{"new Integer 3"}, failure: "version set in the path old is not matched for the related resource"},
		"a path that is none": {
			object: deploymentText, rules: paths(workv1.JSONPath{Name: "bad", Path: ".status["}),
			failure: "failed to parse json path .status[ of bad"},
		"an object, which is not reported": {
			object: deploymentText, rules: paths(workv1.JSONPath{Name: "labels", Path: ".metadata.labels"}),
			failure: "the type map[string]interface {} of the value for labels is not found"},
		"an object, as JSON": {
			object: deploymentText, raw: true, rules: paths(workv1.JSONPath{Name: "labels", Path: ".metadata.labels"}),
			want: []string{`labels JsonRaw {"app":"web"}`}},
		"several values, as JSON": {
			object: deploymentText, raw: true, rules: paths(workv1.JSONPath{Name: "types", Path: ".status.conditions[*].type"}),
			want: []string{`types JsonRaw ["Available","Progressing"]`}},
		"more JSON than the hub keeps": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {long: ` + strings.Repeat("x", 1024) + `}}`, raw: true,
			rules:   paths(workv1.JSONPath{Name: "data", Path: ".data"}),
			failure: "the length of returned json raw string for name data is larger than the maximum length 1024"},
		"recursive descent": {
			object: deploymentText, raw: true, rules: paths(workv1.JSONPath{Name: "replicas", Path: "..replicas"}),
			want: []string{"replicas JsonRaw [3,3]"}},
		"two of the fields": {
			object: deploymentText, raw: true, rules: paths(workv1.JSONPath{Name: "two", Path: ".status['replicas','readyReplicas']"}),
			want: []string{"two JsonRaw [3,2]"}},
		"recursive descent twice": {
			object: nested(60), raw: true, rules: paths(workv1.JSONPath{Name: "bomb", Path: strings.Repeat("..x", 9)}),
			failure: "of bomb with error: recursive descent (..) is allowed only once"},
		"the same again and again": {
			object: nested(60), raw: true, rules: paths(workv1.JSONPath{Name: "bomb", Path: strings.Repeat("['x','x']", 60)}),
			failure: "of bomb with error: the product of all alternatives must not exceed 64"},
		"a comparison with all that is below": {
			object: nested(60), raw: true, rules: paths(workv1.JSONPath{Name: "bomb", Path: "..x[?(@..x==1)]"}),
			failure: "of bomb with error: recursive descent (..) is allowed only once"},
		"loops": {
			object: nested(60), raw: true, rules: paths(workv1.JSONPath{Name: "bomb", Path: ".x}{range .*}{.*"}),
			failure: "of bomb with error: loops (range) are not evaluated"},
		"all that is below, of which each holds the others": {
			object: nested(2000), raw: true, rules: paths(workv1.JSONPath{Name: "bomb", Path: "..x"}),
			failure: "the length of returned json raw string for name bomb is larger than the maximum length 1024"},
		"one name for two values": {
			object: deploymentText, rules: append(paths(workv1.JSONPath{Name: "Replicas", Path: ".spec.replicas"}), wellKnown...),
			want: []string{"Replicas Integer 3", "ReadyReplicas Integer 2"}},
		"a rule of a later version": {
			object: deploymentText, rules: []workv1.FeedbackRule{{Type: "CEL"}},
			failure: `feedback rules of type "CEL" are not known to this agent`},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := feedbackOf(object(t, tc.object), tc.rules, tc.raw)
			if diff := cmp.Diff(tc.want, merged(values)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if tc.failure == "" && err != nil || tc.failure != "" && (err == nil || !strings.Contains(err.Error(), tc.failure)) {
				t.Errorf("the error is %v, want %q", err, tc.failure)
			}
		})
	}
}

// nested returns an object with nested maps.
func nested(levels int) string {
	return `{apiVersion: example.org/v1, kind: Nested, metadata: {name: a}, x: ` + strings.Repeat("{x: ", levels) + "1" + strings.Repeat("}", levels) + "}"
}

func TestFeedback_HidesDataOfASecret(t *testing.T) {
	secret := object(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a, annotations: {last: hidden}}, data: {password: hidden}, stringData: {more: hidden}}`)
	before := secret.DeepCopy()
	for _, path := range []string{".data.password", ".data", ".stringData.more", ".metadata.annotations", "..password", "['data']", ".", "..*"} {
		values, _ := feedbackOf(secret, []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "x", Path: path}}}}, true)
		if text := fmt.Sprint(merged(values)); strings.Contains(text, "hidden") {
			t.Errorf("%s tells %s", path, text)
		}
	}
	values, err := feedbackOf(secret, []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "type", Path: ".type"}}}}, false)
	if diff := cmp.Diff([]string{"type String Opaque"}, merged(values)); diff != "" || err != nil {
		t.Errorf("its type: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(before.Object, secret.Object); diff != "" {
		t.Errorf("the object was changed (-before +after):\n%s", diff)
	}
}

func FuzzFeedback(f *testing.F) {
	for _, path := range []string{".status.readyReplicas", `.status.conditions[?(@.type=="Available")].status`, "..*", ".[", "[0:1:0]", ".a[-1]", "range .items[*]", "'"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		live := object(t, deploymentText)
		values, _ := feedbackOf(live, []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "x", Path: path}}}}, true)
		for _, v := range values {
			if v.Value.JSONRaw != nil && len(*v.Value.JSONRaw) > maxRaw {
				t.Errorf("%q makes a value of %d bytes", path, len(*v.Value.JSONRaw))
			}
		}
		if diff := cmp.Diff(object(t, deploymentText).Object, live.Object); diff != "" {
			t.Errorf("%q changed the object (-before +after):\n%s", path, diff)
		}
	})
}
