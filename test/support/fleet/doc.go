// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet runs a whole fleet on one machine: a hub with a gateway, and
// members with agents, all of them processes of their own around the control
// planes of package env. `make up` and the end-to-end tests are made of it.
//
// What users do, it does as a user does: with kubectl, as the ordinary user
// admin of the group fleetgate:admins. Only what an installation gives, the
// gateway's rights and the first binding of that group, is written with the
// break-glass credential.
package fleet
