// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"regexp"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxText limits the bytes of untrusted text.
const maxText = 240

const removed = "[removed]"

// secrets match what looks like a credential: PEM blocks, JWTs, Authorization headers, values after a
// name such as token or password, passwords in URLs, and long base64 strings.
var secrets = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)`), removed},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*){0,2}`), removed},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"',;]+`), "${1} " + removed},
	{regexp.MustCompile(`(?i)\b((?:[a-z0-9_-]*(?:token|password|passwd|secret|api-?key|client-key-data|client-certificate-data))["']?\s*[:=]\s*["']?)[^\s"',;]+`), "${1}" + removed},
	{regexp.MustCompile(`(://)[^/\s@"']+@`), "${1}" + removed + "@"},
	{regexp.MustCompile(`[A-Za-z0-9+/_-]{80,}={0,2}`), removed},
}

// clean redacts untrusted text and makes it printable on one line.
func clean(text string) string {
	for _, secret := range secrets {
		text = secret.pattern.ReplaceAllString(text, secret.by)
	}
	return untrusted.Excerpt(text, maxText)
}
