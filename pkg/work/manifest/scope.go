// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// WrittenNamespace returns the namespace in which an agent writes an object: none for a
// cluster-scoped kind, whatever the manifest says. The agent and the author check on the hub must
// agree on it.
func WrittenNamespace(namespace string, namespaced bool) string {
	if !namespaced {
		return ""
	}
	return namespace
}
