// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror serves ManagedServiceAccounts outside the members' namespaces:
// manifests of other products put them into a namespace that is named like the
// cluster. It runs on the hub.
//
// An administrator gives such a namespace to a member by the label
// fleetgate.io/member: <name>; served.go says which namespaces can be given. For
// each ManagedServiceAccount there, controller.go makes a twin of the same name in
// the member's own namespace, from which the agent serves it as any other, and
// brings status and Secret back. So no agent has any right outside its member's
// namespace, and the Secrets of such namespaces stay unseen by it.
//
// It touches no Secret but that of a ManagedServiceAccount, which it owns. A name
// that the member's own namespace has already, such as the gateway's, is refused:
// who may write into the given namespace must not get the token of another's
// account. When the ManagedServiceAccount goes, or its namespace is taken back,
// the twin goes, and account and tokens with it.
package mirror
