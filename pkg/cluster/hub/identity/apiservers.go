// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// APIServers returns the addresses at which Konnectivity's own agents find their members' API servers.
type APIServers struct {
	// Reader reads MemberClusters, usually from a cache.
	Reader client.Reader
}

// Of returns the address that an administrator wrote on the MemberCluster, unchecked. It is empty if
// the default applies, or the member does not exist.
func (a *APIServers) Of(ctx context.Context, member string) (string, error) {
	var found clusterv1beta1.MemberCluster // Read-only, so not copied.
	if err := a.Reader.Get(ctx, client.ObjectKey{Name: member}, &found, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return found.Annotations[clusterv1beta1.AnnotationAPIServer], nil
}
