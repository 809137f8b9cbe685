// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API group cluster.kubernetes-fleet.io: the inventory of the fleet.
//
// A MemberCluster is one cluster of the fleet. A user, or the registration of an agent, creates it
// on the hub. For each one the hub creates a namespace ([MemberNamespace]), an account for the
// member's agent ([AgentAccount]) with its Role and RoleBinding, and an InternalMemberCluster. The
// hub writes the spec of the InternalMemberCluster (join or leave). The agent writes its status
// (heartbeat, capacity, conditions). The hub copies that status to the MemberCluster, so that users
// read only one object.
//
// Creating a MemberCluster joins the cluster, and deleting it makes the cluster leave. There is no
// other switch.
//
// The names of a member's objects are functions of the member's name, in names.go. Hub and agent
// both use these functions.
//
// The group is served as v1beta1 (stored) and as v1, both with the schema of the types here. Go
// code uses v1beta1 only.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.kubernetes-fleet.io
package v1beta1
