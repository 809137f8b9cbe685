// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcileutil

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsGone reports whether an API server said that the object does not exist. A 404 of a server
// that does not serve the kind, or is no API server at all, does not count: agents remove
// objects from a member when their source is gone from the hub, and only the hub itself can
// say so.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
