// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWithPullSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		before, manifest, live string // names of secrets
		mode                   Mode
		want                   string
	}{
		"keeps those of others in their order":    {before: "a", manifest: "a", live: "theirs a", want: "theirs a"},
		"adds those of the manifest":              {before: "a", manifest: "a b", live: "a theirs", want: "a theirs b"},
		"removes those that left the manifest":    {before: "a", manifest: "b", live: "a theirs", want: "theirs b"},
		"removes all of an earlier manifest":      {before: "a", live: "a theirs", want: "theirs"},
		"leaves out a list that no manifest had":  {live: "theirs", want: ""},
		"replaces a list without those of others": {before: "a", manifest: "b", live: "a", want: "b"},
		"takes the order of the manifest":         {before: "b a", manifest: "a b", live: "b a", want: "a b"},
		"does not change a server-side apply":     {before: "a", manifest: "a", live: "a theirs", mode: Mode{Method: ServerSide}, want: "a"},
		"reports those of others with all fields": {manifest: "a", live: "a theirs", mode: Mode{Method: Compare, Whole: true}, want: "a"},
		"does not report them otherwise":          {manifest: "a", live: "a theirs", mode: Mode{Method: Compare}, want: "a theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			it := Item{object: accountWith(t, tc.manifest), Mode: tc.mode}
			if it.Mode.Method == "" {
				it.Mode.Method = Merge
			}
			live := accountWith(t, tc.live)
			if tc.before != "" {
				text, err := accountWith(t, tc.before).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				live.SetAnnotations(map[string]string{ours().AppliedAnnotation: string(text)})
			}
			got := leavingEngine().adoptMemberFields(it, live)
			var names []string
			for _, secret := range items(got.object.Object[pullSecrets]) {
				names = append(names, fmt.Sprint(secret["name"]))
			}
			if strings.Join(names, " ") != tc.want {
				t.Errorf("pull secrets are %v, want %s", names, tc.want)
			}
		})
	}
}

func accountWith(t *testing.T, secrets string) *unstructured.Unstructured {
	t.Helper()
	account := objectOfYAML(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: app, namespace: ns}}")
	if secrets == "" {
		return account
	}
	var list []any
	for _, name := range strings.Fields(secrets) {
		list = append(list, map[string]any{"name": name})
	}
	account.Object[pullSecrets] = list
	return account
}
