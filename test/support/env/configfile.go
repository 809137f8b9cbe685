// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"path/filepath"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
)

// ConfigFlag writes the configuration file of a gateway or an agent into a folder, and returns the
// flag that names it. Each kind has one file there.
func ConfigFlag(dir, kind, fields string) (string, error) {
	path := filepath.Join(dir, kind+".yaml")
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\n%s\n", configv1alpha1.GroupVersion, kind, fields)
	return "--config=" + path, os.WriteFile(path, []byte(text), 0o600)
}
