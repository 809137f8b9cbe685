// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// mapper knows the paths of a fleet's own kinds, and discovers only others. Discovery takes about a
// hundred requests for the first command, and reads as many cached files for each further one.
// Short names and resource arguments are always resolved by the hub.
type mapper struct {
	meta.RESTMapper
	own meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if found, err := m.own.RESTMapping(kind, versions...); err == nil {
		return found, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// ownKinds are those that commands and console pages read.
func ownKinds() meta.RESTMapper {
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		clusterv1beta1.GroupVersion, placementv1beta1.GroupVersion, registrationv1alpha1.GroupVersion, gatewayv1alpha1.GroupVersion, coordinationv1.SchemeGroupVersion,
	})
	for _, of := range []struct {
		version schema.GroupVersion
		scope   meta.RESTScope
		kinds   []string
	}{
		{clusterv1beta1.GroupVersion, meta.RESTScopeRoot, []string{"MemberCluster"}},
		{placementv1beta1.GroupVersion, meta.RESTScopeRoot, []string{
			"ClusterResourcePlacement", "ClusterResourceBinding", "ClusterResourceSnapshot", "ClusterResourcePlacementEviction", "ClusterStagedUpdateRun", "ClusterApprovalRequest",
		}},
		{placementv1beta1.GroupVersion, meta.RESTScopeNamespace, []string{
			"ResourcePlacement", "ResourceBinding", "ResourceSnapshot", "StagedUpdateRun", "ApprovalRequest", "Work",
		}},
		{registrationv1alpha1.GroupVersion, meta.RESTScopeNamespace, []string{"Cluster", "ClusterRegistration", "ClusterRegistrationToken"}},
		{coordinationv1.SchemeGroupVersion, meta.RESTScopeNamespace, []string{"Lease"}},
	} {
		for _, kind := range of.kinds {
			kinds.Add(of.version.WithKind(kind), of.scope)
		}
	}
	// The default rules would give this kind another plural.
	kinds.AddSpecific(gatewayv1alpha1.GroupVersion.WithKind("ClusterGateway"), gatewayv1alpha1.GroupVersion.WithResource("clustergateways"),
		gatewayv1alpha1.GroupVersion.WithResource("clustergateway"), meta.RESTScopeRoot)
	return kinds
}
