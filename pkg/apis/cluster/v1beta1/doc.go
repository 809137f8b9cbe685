// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the inventory: the API group cluster.kubernetes-fleet.io.
//
// A MemberCluster is one cluster of the fleet. A user, or the registration of
// an agent, creates it on the hub; everything else that the hub knows about a
// cluster hangs off it. For each one the hub makes a namespace
// ([MemberNamespace]), an account for the member's agent ([AgentAccount]) with
// its Role and RoleBinding, and an InternalMemberCluster, through which hub
// and agent talk: the hub writes its spec (join or leave), the agent its status
// (heartbeat, capacity, conditions). The hub copies that status to the
// MemberCluster, so that people read one object only.
//
// Creating a MemberCluster is joining, deleting it is leaving: there is no
// other switch.
//
// The names of the objects that belong to a member are functions of the
// member's name, in names.go; hub and agent both use them and nobody spells
// them out.
//
// The group is served as v1beta1 (stored) and as v1, both with the schema of
// the types here. Go code speaks v1beta1 only.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.kubernetes-fleet.io
package v1beta1
