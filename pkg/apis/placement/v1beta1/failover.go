// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// ConditionFailoverSuspended is True on a placement that should leave a member by its terms
	// of failover, and stays.
	ConditionFailoverSuspended = "FailoverSuspended"
	// ReasonMostMembersUnreachable is of ConditionFailoverSuspended: it is rather the hub that
	// lost its connection.
	ReasonMostMembersUnreachable = "MostMembersUnreachable"
	// ReasonNoMemberToTakeOver is of ConditionFailoverSuspended: no other member fits.
	ReasonNoMemberToTakeOver = "NoMemberToTakeOver"
)
