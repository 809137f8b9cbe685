// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version is the version of fleetgate. Gateway, agent, images and charts of one release
// have the same version.
package version

import "runtime/debug"

// version is the version of this source. A build may set another: -ldflags "-X
// fleetgate.io/fleetgate/pkg/version.version=v0.2.0-rc.1".
var version = "v0.1.0"

// Get returns the semantic version, with a leading v. Versions are compared: an older gateway does
// not replace what a newer one has installed.
func Get() string { return version }

// Describe is the version for people, with the commit if the build knows it.
func Describe() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return version + commitOf(info.Settings)
}

// commitOf reads the build's settings; it also reports uncommitted changes.
func commitOf(settings []debug.BuildSetting) string {
	commit, modified := "", ""
	for _, setting := range settings {
		switch setting.Key {
		case "vcs.revision":
			commit = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	const short = 12
	return " (" + commit[:min(short, len(commit))] + modified + ")"
}
