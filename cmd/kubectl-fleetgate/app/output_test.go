// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
)

// hostile is untrusted text from a member.
const hostile = "a <b>\n\u202e\u009b2J\x1b[2J"

func TestOutput_JSONAndYAML(t *testing.T) {
	settings := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	answer := explain.Problem{Object: "ConfigMap shop/settings", Member: "m", Reason: hostile, Remedy: "wait", Details: []string{hostile}, Others: 2, Of: &settings, Live: true}
	drifted := diffObject{Member: "m", Drift: true, Object: settings, Fields: []placementv1beta1.PatchDetail{{Path: "/data/a", ValueInHub: hostile, ValueInMember: "b"}}}
	for name, test := range map[string]struct {
		// print prints in a format.
		print func(s *session, format string) error
		err   error
		// want is the printed object.
		want map[string]any
	}{
		"why": {func(s *session, format string) error {
			return (&whyOptions{session: s, Output: format}).print([]explain.Problem{answer}, "")
		}, errFound, map[string]any{"healthy": false, "answers": []any{map[string]any{
			"object": "ConfigMap shop/settings", "member": "m", "reason": hostile, "remedy": "wait", "details": []any{hostile}, "others": 2.0,
			"of": map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings"},
		}}}},
		"why, without problems": {func(s *session, format string) error {
			return (&whyOptions{session: s, Output: format}).print(nil, "no problems found")
		}, nil, map[string]any{"healthy": true, "answers": []any{}}},
		"diff": {func(s *session, format string) error {
			return (&diffOptions{session: s, Output: format}).print([]diffObject{drifted})
		}, errFound, map[string]any{"differs": true, "objects": []any{map[string]any{
			"member": "m", "drift": true, "object": map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings"},
			"fields": []any{map[string]any{"path": "/data/a", "valueInHub": hostile, "valueInMember": "b"}},
		}}}},
		"diff, without differences": {func(s *session, format string) error {
			return (&diffOptions{session: s, Output: format}).print([]diffObject{})
		}, nil, map[string]any{"differs": false, "objects": []any{}}},
	} {
		for format, read := range map[string]func([]byte, any) error{
			outputJSON: json.Unmarshal, outputYAML: func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
		} {
			t.Run(name+" as "+format, func(t *testing.T) {
				streams, _, out, _ := genericiooptions.NewTestIOStreams()
				if err := test.print(&session{IOStreams: streams}, format); !errors.Is(err, test.err) {
					t.Errorf("it ends with %v, want %v", err, test.err)
				}
				text := out.String()
				if format == outputJSON && strings.ContainsAny(text, "\u202e\u009b\x1b") {
					t.Errorf("letters that do not show are not escaped: %q", text)
				}
				var got map[string]any
				if err := read([]byte(text), &got); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}
