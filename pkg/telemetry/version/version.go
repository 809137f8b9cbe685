// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version is which fleetgate this is. Gateway, agent, images and charts of one
// release have one version.
package version

import "runtime/debug"

// version is what this source is. A build may say more: -ldflags "-X
// fleetgate.io/fleetgate/pkg/version.version=v0.2.0-rc.1".
var version = "v0.1.0"

// Get returns the semantic version, with a leading v. Versions are compared: what a newer
// gateway has installed, an older one leaves alone.
func Get() string { return version }

// Describe is the version for people, with the commit if the build knows it.
func Describe() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return version + commitOf(info.Settings)
}

// commitOf reads the build's settings; a change that was not committed is told too.
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
