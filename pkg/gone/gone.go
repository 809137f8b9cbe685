// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gone is about objects that a cache has no more. Much is removed from a member when
// its object is gone from the hub, so the hub itself is asked first, and only one that says
// so is believed.
package gone

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Is tells the answer of an API server that there is no such object from the 404 of a server
// that does not serve its kind, or is no API server at all.
func Is(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
