// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

func TestGet_IsSemanticVersion(t *testing.T) {
	if _, err := utilversion.ParseSemantic(Get()); err != nil {
		t.Errorf("version %q: %v", Get(), err)
	}
}

func TestDescribe_IncludesCommit(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	tests := map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"nothing is known":    {nil, ""},
		"committed":           {[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, " (0123456789ab)"},
		"changed since":       {[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, " (0123456789ab, modified)"},
		"a shorter revision":  {[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}}, " (0123)"},
		"modified, no commit": {[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := commitOf(tt.settings); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
