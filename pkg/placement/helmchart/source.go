// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"fmt"
	"regexp"
	"strings"
)

// SchemeOCI is the prefix of a Source's chart.
const SchemeOCI = "oci://"

// maxSource limits the length of a chart's repository, and of its version.
const maxSource = 255

var (
	repository   = regexp.MustCompile(`^oci://[^/@\s]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
	exactVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]*$`)
	exactDigest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Source is where a chart is fetched from: one version of it, never a range, so that it is
// the author who decides what members get.
type Source struct {
	// Chart is a repository, "oci://registry/path/name".
	Chart string `json:"chart"`
	// Version is a tag of it.
	Version string `json:"version"`
	// Digest is what the tag has to lead to, or empty.
	Digest string `json:"digest,omitempty"`
}

// String is for messages.
func (s Source) String() string { return strings.TrimSpace(s.Chart + " " + s.Version) }

// sourceOf is the Source that data describes, or nil.
func sourceOf(data map[string][]byte) *Source {
	if len(data[KeyChart])+len(data[KeyVersion])+len(data[KeyDigest]) == 0 {
		return nil
	}
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	return &Source{Chart: text(KeyChart), Version: text(KeyVersion), Digest: text(KeyDigest)}
}

func (s Source) validate() error {
	switch {
	case !repository.MatchString(s.Chart) || len(s.Chart) > maxSource:
		return fmt.Errorf("%s: %q is no chart in a registry: write %sregistry/path/name", KeyChart, s.Chart, SchemeOCI)
	case !exactVersion.MatchString(s.Version) || len(s.Version) > maxSource:
		return fmt.Errorf("%s: %q is not one version: write it in full, as 1.2.3", KeyVersion, s.Version)
	case s.Digest != "" && !exactDigest.MatchString(s.Digest):
		return fmt.Errorf("%s: %q is no digest: write sha256: and 64 digits", KeyDigest, s.Digest)
	}
	return nil
}
