// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWithExcluded(t *testing.T) {
	for name, tc := range map[string]struct {
		base, wanted, live string
		field              string
		cause              metav1.CauseType
		message            string
		bySchema           bool
		want               string
	}{
		"another handler of a probe": {
			base:   `{"spec":{"template":{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":80}}}]}}}}`,
			wanted: `{"spec":{"template":{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":80}}}]}}}}`,
			live:   `{"spec":{"template":{"spec":{"containers":[{"name":"theirs"},{"name":"c","livenessProbe":{"exec":{"command":["true"]}}}]}}}}`,
			field:  "spec.template.spec.containers[1].livenessProbe.httpGet",
			want:   `{"spec":{"template":{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":80},"exec":{"command":["true"]}}}]}}}}`,
		},
		"value beside valueFrom in an item that no earlier manifest had": {
			base:   `{"spec":{}}`,
			wanted: `{"spec":{"containers":[{"name":"c","env":[{"name":"A","valueFrom":{}}]}]}}`,
			live:   `{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"x"}]}]}}`,
			field:  "spec.containers[0].env[0].valueFrom",
			want:   `{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"x"}]}]}}`,
		},
		"default of another strategy": {
			wanted: `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`,
			live:   `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`,
			field:  "spec.updateStrategy.rollingUpdate",
			want:   `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`,
		},
		"oneOf in a schema": {
			wanted: `{"spec":{"source":{"git":{}}}}`, live: `{"spec":{"source":{"oci":{}}}}`,
			field: "spec.source", bySchema: true,
			want: `{"spec":{"source":{"oci":{}}}}`,
		},
		"a port whose number was changed": {
			base:   `{"spec":{"ports":[{"name":"http","port":80}]}}`,
			wanted: `{"spec":{"ports":[{"name":"http","port":80}]}}`,
			live:   `{"spec":{"ports":[{"name":"http","port":81}]}}`,
			field:  "spec.ports[1].name", cause: metav1.CauseTypeFieldValueDuplicate,
			want: `{"spec":{"ports":[{"name":"http","port":80},{"port":81}]}}`,
		},
		"a port of a container beside one without a name": {
			wanted: `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80}]}]}}`,
			live:   `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80},{"containerPort":81}]}]}}`,
			field:  "spec.containers[0].ports[0].name", cause: metav1.CauseTypeFieldValueRequired,
			want: `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":81}]}]}}`,
		},
		"a port with a node port whose number was changed": {
			wanted:  `{"spec":{"ports":[{"port":80,"nodePort":30080}]}}`,
			live:    `{"spec":{"ports":[{"port":81,"nodePort":30080}]}}`,
			message: "duplicate nodePort: {TCP 30080}",
			want:    `{"spec":{"ports":[{"port":81}]}}`,
		},
		"a field of the spec that the manifest does not have": {
			wanted: `{"spec":{"sessionAffinity":"None"}}`,
			live:   `{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{}},"theirs":1}}`,
			field:  "spec.sessionAffinityConfig",
			want:   `{"spec":{"sessionAffinityConfig":{"clientIP":{}}}}`,
		},
		"an item of a list that the manifest does not have": {
			wanted: `{"spec":{"clusterIP":"None"}}`,
			live:   `{"spec":{"clusterIP":"None","ipFamilies":["IPv4","IPv6"],"theirs":1}}`,
			field:  "spec.ipFamilies[1]",
			want:   `{"spec":{"ipFamilies":["IPv4","IPv6"]}}`,
		},
		"the other limit of a PodDisruptionBudget": {
			wanted: `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"maxUnavailable":1}}`,
			live:   `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"minAvailable":1}}`,
			field:  "spec",
			want:   `{"spec":{"minAvailable":1}}`,
		},
		"a port that the manifest has twice": {
			wanted: `{"spec":{"ports":[{"name":"a","port":80},{"name":"a","port":81}]}}`,
			live:   `{"spec":{"ports":[{"name":"a","port":80}]}}`,
			field:  "spec.ports[1].name", cause: metav1.CauseTypeFieldValueDuplicate,
		},
		"a port with an invalid name": {
			wanted: `{"spec":{"ports":[{"name":"A","port":80}]}}`, live: `{"spec":{"ports":[{"name":"a","port":81}]}}`,
			field: "spec.ports[0].name", cause: metav1.CauseTypeFieldValueInvalid,
		},
		"the spec itself":                {wanted: `{"spec":{"a":1}}`, live: `{"spec":{"b":1}}`, field: "spec.a"},
		"a field that nobody else added": {wanted: `{"spec":{"a":{"b":1}}}`, live: `{"spec":{"a":{"b":2}}}`, field: "spec.a.b"},
		"annotations of others":          {wanted: `{"metadata":{"annotations":{"a":"1"}}}`, live: `{"metadata":{"annotations":{"b":"1"}}}`, field: "metadata.annotations.a", bySchema: true},
		"an item that is not of the manifest": {
			wanted: `{"spec":{"containers":[{"name":"c"}]}}`, live: `{"spec":{"containers":[{"name":"theirs","env":[]}]}}`,
			field: "spec.containers[0].image",
		},
		"an unreadable field": {wanted: `{"spec":{"a":{"b":1}}}`, live: `{"spec":{"a":{"c":1}}}`, field: "spec.a[x.y].b"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: tc.message,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: tc.cause, Field: tc.field}}}}}
			got := withExcluded([]byte(tc.base), parsed(t, tc.wanted), parsed(t, tc.live), refused, tc.bySchema)
			if (got == nil) != (tc.want == "") {
				t.Fatalf("got %s, want %s", got, tc.want)
			}
			if got != nil {
				if diff := cmp.Diff(parsed(t, tc.want).Object, parsed(t, string(got)).Object); diff != "" {
					t.Errorf("base (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
