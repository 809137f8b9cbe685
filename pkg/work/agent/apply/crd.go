// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
)

// EnsureCRD installs the CustomResourceDefinitions of this package on the member; see
// [definitions.Ensure].
func EnsureCRD(ctx context.Context, member client.Client) error {
	return definitions.Ensure(ctx, member, placementv1beta1.GroupName)
}
