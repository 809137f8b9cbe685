// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render makes the ManifestWorks of an add-on from its AddOnTemplate, for one cluster. It is
// pure: everything that it reads is in Inputs, and whatever is wrong with them is a refusal for people.
//
// Variables replace {{NAME}} inside of texts only, so a value never changes the structure of a manifest.
// One without a value is replaced by nothing, as in Open Cluster Management. Deployments and DaemonSets
// then get variables, credentials, nodes, images, proxy and resources (workload.go). They are changed
// as JSON, so that fields which this program does not know stay.
//
// The result is bounded while it is made: a template of a kilobyte with long values could otherwise
// become a gigabyte.
package render
