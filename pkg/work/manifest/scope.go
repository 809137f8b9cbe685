// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// WrittenNamespace is the namespace in which an agent writes an object whose manifest names this
// one: none for a cluster-scoped kind, whatever the manifest says. The author check on the hub asks
// for the same namespace, so both read it from here.
func WrittenNamespace(namespace string, namespaced bool) string {
	if !namespaced {
		return ""
	}
	return namespace
}
