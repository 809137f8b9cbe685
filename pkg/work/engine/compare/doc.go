// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compare finds the fields in which an object on a member differs from the object on the
// hub. It has no side effects.
//
// It compares what users write. It ignores the status, metadata that an API server maintains,
// finalizers, and labels and annotations of Kubernetes and of fleetgate. A path is a JSON pointer
// and a value is plain text. The report is bounded and never contains data of a Secret.
package compare
