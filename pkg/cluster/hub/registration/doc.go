// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration lets clusters register themselves with the hub.
//
// It runs on the hub as three controllers:
//
//   - "clusterregistrationtoken.values" ([TokenReconciler]) turns a
//     ClusterRegistrationToken into an account that may create and read requests in
//     that namespace and nothing else, and into the Secret of the token's name whose
//     key "values" is a values.yaml for the agent. It deletes all of it at expiry.
//   - "clusterregistration.grant" ([GrantReconciler]) answers a ClusterRegistration.
//     It finds the Cluster with that clientID or makes one, makes the MemberCluster,
//     waits until pkg/cluster/hub/membership has prepared it, and seals a token of the
//     member's account to the request's public key.
//   - "cluster.status" ([ClusterReconciler]) shows on the Cluster what is known of
//     its member, and takes the MemberCluster away when the Cluster is deleted.
//
// # Who gets a Cluster
//
// The first key that asks for a clientID has it: its fingerprint is recorded on the
// Cluster. Another key is refused with a condition, whether or not the first agent
// is connected, unless the first key has signed its request, or its token is for
// this Cluster; an administrator who knows better removes the annotation. So a
// leaked registration token does not give away a cluster that has registered.
//
// A MemberCluster that an administrator deletes stays deleted: the Cluster remembers
// that it had one, and its agent is refused until the administrator removes that
// annotation or the Cluster.
//
// # Who may read what
//
// Requests are not secret: what is in their status opens only with the private key
// of the agent that made them. A request lives as long as the credential in it; then
// it is deleted, so that the same key can ask again.
//
// Every step is written down in an object before the next one begins, and names are
// functions of what was asked, so a gateway that is killed anywhere goes on where it
// was.
package registration
