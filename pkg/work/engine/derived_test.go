// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const webService = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: "

func podTemplate(spec string) string {
	return webDeployment + "}, spec: {template: {spec: " + spec + "}}}"
}

func TestWithDerived(t *testing.T) {
	for name, tc := range map[string]struct {
		before, wanted, live string
		want                 string // the last manifest; as before if empty
	}{
		"alias of an account that left the manifest": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
			want: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"account that was set by its alias": {
			before: podTemplate("{serviceAccount: a}"), wanted: podTemplate("{serviceAccount: b}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
			want: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"alias that the manifest sets": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{serviceAccount: a}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"alias that does not come from the manifest": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{}"), live: podTemplate("{serviceAccountName: a, serviceAccount: b}"),
		},
		"unchanged source": {
			before: podTemplate("{serviceAccountName: a, containers: [{name: c, image: i}]}"),
			wanted: podTemplate("{serviceAccountName: a, containers: [{name: c, image: 'i:latest'}]}"),
			live:   podTemplate("{serviceAccountName: a, serviceAccount: a, containers: [{name: c, image: i, imagePullPolicy: Always}]}"),
		},
		"pull policy from the tag": {
			before: podTemplate("{containers: [{name: c, image: 'example.org:5000/a'}]}"), wanted: podTemplate("{containers: [{name: c, image: 'example.org:5000/a:1'}]}"),
			live: podTemplate("{containers: [{name: c, image: 'example.org:5000/a', imagePullPolicy: Always}]}"),
			want: podTemplate("{containers: [{name: c, image: 'example.org:5000/a', imagePullPolicy: Always}]}"),
		},
		"the same pull policy for another tag": {
			before: podTemplate("{containers: [{name: c, image: 'a:1'}]}"), wanted: podTemplate("{containers: [{name: c, image: 'a@sha256:0'}]}"),
			live: podTemplate("{containers: [{name: c, image: 'a:1', imagePullPolicy: IfNotPresent}]}"),
		},
		"timeout of session affinity": {
			before: webService + "{sessionAffinity: ClientIP}}", wanted: webService + "{sessionAffinity: None}}",
			live: webService + "{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}}",
			want: webService + "{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}}",
		},
		"manifest with values of other types": {
			before: podTemplate("{serviceAccountName: {}, containers: [{name: c, image: 1}]}"),
			wanted: podTemplate("{serviceAccountName: {}, containers: [{name: {}}, {name: c}]}"), live: podTemplate("{containers: [{name: c}]}"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := objectOfYAML(t, tc.before)
			text, err := before.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if tc.want != "" {
				want = objectOfYAML(t, tc.want)
			}
			got := withDerived(text, objectOfYAML(t, tc.wanted), objectOfYAML(t, tc.live))
			if diff := cmp.Diff(want.Object, objectOfYAML(t, string(got)).Object); diff != "" {
				t.Errorf("last manifest (-want +got):\n%s", diff)
			}
		})
	}
}
