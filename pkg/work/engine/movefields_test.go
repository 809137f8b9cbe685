// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetFields(t *testing.T) {
	const (
		http = `"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}`
		dns  = `"k:{\"containerPort\":53,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{}}`
	)
	cases := map[string]struct{ fields, manifest, want string }{
		"a field with its default sibling": {`{"f:spec":{"f:rules":{},"f:ingressClassName":{}}}`, `{spec: {rules: []}}`, `{"f:spec":{"f:rules":{}}}`},
		"all of a map":                     {`{"f:spec":{"f:selector":{}}}`, `{spec: {selector: {a: b}}}`, `{"f:spec":{"f:selector":{}}}`},
		"items, also one whose key has a default": {`{"f:ports":{".":{},` + http + `,` + dns + `}}`, `{ports: [{containerPort: 80}]}`,
			`{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}`},
		"values of a set": {`{"f:words":{"v:\"a\"":{},"v:\"b\"":{}}}`, `{words: [b]}`, `{"f:words":{"v:\"b\"":{}}}`},
		"an empty map":    {`{"f:data":{".":{},"f:a":{}}}`, `{data: {}}`, `{"f:data":{".":{}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decoded := func(text string) (fields map[string]any) {
				if err := json.Unmarshal([]byte(text), &fields); err != nil {
					t.Fatal(err)
				}
				return fields
			}
			if diff := cmp.Diff(decoded(tc.want), setFields(decoded(tc.fields), objectOfYAML(t, "{apiVersion: v1, kind: Thing, "+tc.manifest[1:]).Object)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
