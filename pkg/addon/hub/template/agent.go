// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// AnyDeploymentConfig is an AddOnDeploymentConfig without a Go type, for watches.
func AnyDeploymentConfig() *unstructured.Unstructured { return objectOf(DeploymentConfigs()) }

// DeploymentConfigOf reads from a cache the AddOnDeploymentConfig of an add-on without a template; nil for
// none. It is false while the rollout has not given the cluster the current one. The references are those
// of the status with what is known of them. The error is a refusal if people have to correct something.
func DeploymentConfigOf(ctx context.Context, cache client.Reader, addOn *addonv1alpha1.ManagedClusterAddOn, of *addonv1alpha1.ClusterManagementAddOn) (*addonv1alpha1.AddOnDeploymentConfigSpec, bool, []addonv1alpha1.ConfigReference, error) {
	i := &instance{ManagedClusterAddOn: addOn, of: of, cluster: &clusterv1.ManagedCluster{}}
	references, err := configs{cache}.observed(ctx, i)
	if err != nil {
		return nil, false, addOn.Status.ConfigReferences, err
	}
	if objects.ManagedByHub(of) && !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured) && i.reference(DeploymentConfigs()) == nil {
		return nil, false, references, nil
	}
	config, current, err := configs{cache}.deploymentConfig(ctx, i)
	return config, current, references, err
}
