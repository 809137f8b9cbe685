// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/support/bomb"
)

func TestParseBootstrap_RejectsYAMLAliasBombs(t *testing.T) {
	bomb.Check(t, func() {
		_, err := ParseBootstrap([]byte("token: token\n" + bomb.Secret()))
		if err == nil || !strings.Contains(err.Error(), "aliases") && !strings.Contains(err.Error(), "more than") {
			t.Errorf("got %v", err)
		}
	})
}
