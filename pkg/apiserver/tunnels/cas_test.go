// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFollowCAs_FailsForBundleWithoutCertificate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FollowCAs("tunnels.konnectivity.frontendsCAFile", path); err == nil {
		t.Error("it was taken for a bundle")
	}
}
