// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror serves ManagedServiceAccounts outside the members' namespaces: manifests of other
// products create them in a namespace with the name of the cluster. It runs on the hub.
//
// An administrator assigns such a namespace to a member by the label fleetgate.io/member: <name>;
// served.go decides which namespaces can be assigned. For each ManagedServiceAccount there,
// controller.go creates a mirror of the same name in the member's own namespace. The agent serves the
// mirror as any other, and the controller copies its status and Secret back. The agent therefore
// needs no right outside its member's namespace and cannot see Secrets of the other namespace.
//
// The package changes no Secrets except those that a ManagedServiceAccount owns. A name that exists
// in the member's own namespace, such as the gateway's, is refused: a user who can write to the
// assigned namespace must not get the token of another account. When the ManagedServiceAccount is
// deleted, or its namespace is no longer assigned, the mirror is deleted, with account and tokens.
package mirror
