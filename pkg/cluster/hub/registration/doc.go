// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration lets clusters register with the hub.
//
// It has three controllers on the hub:
//
//   - "clusterregistrationtoken.values" ([TokenReconciler]) turns a ClusterRegistrationToken into an
//     account that can only create and read requests in that namespace, and into a Secret with the
//     token's name. Its key "values" is a values.yaml for the agent. It deletes all of it at expiry.
//   - "clusterregistration.grant" ([GrantReconciler], controller.go) handles a ClusterRegistration in
//     three steps. validate.go checks form and authenticity of the request. claim.go finds
//     or creates the Cluster with that clientID. grant.go creates the MemberCluster, waits until
//     pkg/cluster/hub/membership has prepared it, and encrypts a token of the member's account with
//     the request's public key. keep.go deletes requests when they have served their purpose.
//   - "cluster.status" ([ClusterReconciler]) copies the state of its member to the Cluster, and
//     deletes the MemberCluster when the Cluster is deleted.
//
// # Who gets a Cluster
//
// The first key that registers with a clientID owns the Cluster: its fingerprint is recorded there.
// Another key is rejected with a condition, whether or not the first agent is connected. The exceptions
// are a request that the first key has signed, and a token for this Cluster. An administrator can
// remove the annotation. So a leaked registration token does not give access to a cluster that has
// registered.
//
// If an administrator deletes a MemberCluster, it stays deleted. The Cluster records that it had one,
// and its agent is rejected until the administrator removes that annotation or the Cluster.
//
// # Who may read what
//
// Requests are not secret: only the private key of the requesting agent decrypts their status. A
// request lives as long as its credential. Then it is deleted, so that the same key can request again.
//
// Every step is stored in an object before the next one starts, and names are functions of the request.
// So a gateway that was killed at any point continues from there.
package registration
