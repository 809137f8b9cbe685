// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/bomb"
)

// Values are read in the gateway, before the process that renders has begun.
func TestValuesThatStandForGigabytesAreRefused(t *testing.T) {
	bomb.Check(t, func() {
		_, err := Read(encoded(t, configMap(map[string]string{KeyValues: bomb.Secret()})), west(), "")
		if err == nil || !strings.Contains(err.Error(), KeyValues) || !strings.Contains(err.Error(), "with what its aliases repeat") {
			t.Errorf("got %v", err)
		}
	})
}
