// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// ConditionFailoverSuspended is True on a placement that stays on a member although its
	// failover settings require it to leave.
	ConditionFailoverSuspended = "FailoverSuspended"
	// ReasonMostMembersUnreachable is a reason of ConditionFailoverSuspended: so many members are
	// unreachable that the hub has probably lost its own connection.
	ReasonMostMembersUnreachable = "MostMembersUnreachable"
	// ReasonNoMemberToTakeOver is a reason of ConditionFailoverSuspended: no other member matches.
	ReasonNoMemberToTakeOver = "NoMemberToTakeOver"
)
