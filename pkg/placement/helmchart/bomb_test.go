// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/support/bomb"
)

// The gateway itself decodes values, before the rendering process starts.
func TestRead_RefusesValuesThatExpandToGigabytes(t *testing.T) {
	bomb.Check(t, func() {
		_, err := Read(encoded(t, configMap(map[string]string{KeyValues: bomb.Secret()})), west(), "")
		if err == nil || !strings.Contains(err.Error(), KeyValues) || !strings.Contains(err.Error(), "with what its aliases repeat") {
			t.Errorf("got %v", err)
		}
	})
}
