// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// APIServers answers where Konnectivity's own agents find their members' API servers.
type APIServers struct {
	// Reader reads MemberClusters; a cache is meant.
	Reader client.Reader
}

// Of returns what an administrator wrote on the MemberCluster, unchecked, or empty: it is
// where it is for all, or there is no such member.
func (a *APIServers) Of(ctx context.Context, member string) (string, error) {
	var found clusterv1beta1.MemberCluster // only looked at, so not copied
	if err := a.Reader.Get(ctx, client.ObjectKey{Name: member}, &found, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return found.Annotations[clusterv1beta1.AnnotationAPIServer], nil
}
