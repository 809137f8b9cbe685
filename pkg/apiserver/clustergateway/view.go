// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

// view computes a ClusterGateway from its MemberCluster and from the Secret with the gateway's
// credential for it. It does not depend on open tunnels, so that all replicas report the same to
// watches. Reads and the subresource health add that.
func view(s state) *gatewayv1alpha1.ClusterGateway {
	member, hasCredential := s.member, s.credential.present
	gateway := &gatewayv1alpha1.ClusterGateway{
		ObjectMeta: metav1.ObjectMeta{
			Name:              member.Name,
			UID:               member.UID,
			ResourceVersion:   strconv.FormatUint(s.version(), 10),
			CreationTimestamp: member.CreationTimestamp,
			Labels:            maps.Clone(member.Labels),
		},
		Spec: gatewayv1alpha1.ClusterGatewaySpec{Access: gatewayv1alpha1.ClusterAccess{
			Endpoint: &gatewayv1alpha1.ClusterEndpoint{Type: gatewayv1alpha1.EndpointClusterProxy},
		}},
	}
	if hasCredential {
		gateway.Spec.Access.Credential = &gatewayv1alpha1.ClusterAccessCredential{
			Type: gatewayv1alpha1.CredentialServiceAccountToken,
		}
	}
	gateway.Status = statusOf(member, hasCredential)
	return gateway
}

func statusOf(member *clusterv1beta1.MemberCluster, hasCredential bool) gatewayv1alpha1.ClusterGatewayStatus {
	agent := member.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	switch {
	case !member.IsJoined():
		return gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}
	case !hasCredential:
		return gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNoCredential}
	case agent == nil || !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionHealthy):
		return gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonUnhealthy}
	}
	return gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}
}
