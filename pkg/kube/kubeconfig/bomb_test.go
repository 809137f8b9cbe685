// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/support/bomb"
)

// A user who may write the Secret that a Cluster names for its import chooses what is parsed.
func TestParse_RefusesKubeconfigThatExpandsToGigabytes(t *testing.T) {
	bomb.Check(t, func() {
		_, err := Parse([]byte("apiVersion: v1\nkind: Config\n" + bomb.Secret()))
		if err == nil || !strings.Contains(err.Error(), "line 3: it has more than 1000 aliases") && !strings.Contains(err.Error(), "bytes, with what its aliases repeat") {
			t.Errorf("got %v", err)
		}
	})
}
