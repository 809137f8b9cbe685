// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compare finds the fields in which an object on a member differs from
// what the hub wants. It is pure.
//
// It looks at what people write: not at the status, nor at what an API server
// keeps in the metadata, nor at finalizers, nor at labels and annotations of Kubernetes and of the
// fleet itself. A path is a JSON pointer, a value its plain text. What is reported
// is bounded, and never repeats the data of a Secret.
package compare
