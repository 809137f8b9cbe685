// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

// accessProvider is the access to a member through the gateway. It passes the member to exec
// plug-ins, but no arguments: some clients concatenate the arguments of many profiles.
func accessProvider(member, hubURL string, hubCA []byte) (multiclusterv1alpha1.AccessProviderStatus, error) {
	extension, err := json.Marshal(map[string]string{"clusterName": member})
	if err != nil {
		return multiclusterv1alpha1.AccessProviderStatus{}, fmt.Errorf("encoding the access to member %q: %w", member, err)
	}
	return multiclusterv1alpha1.AccessProviderStatus{
		Name: multiclusterv1alpha1.AccessProvider,
		Cluster: clientcmdv1.Cluster{
			Server:                   proxyURL(hubURL, member),
			CertificateAuthorityData: hubCA,
			Extensions: []clientcmdv1.NamedExtension{{
				Name:      multiclusterv1alpha1.ExtensionExec,
				Extension: runtime.RawExtension{Raw: extension},
			}},
		},
	}, nil
}

func proxyURL(hubURL, member string) string {
	return strings.TrimSuffix(hubURL, "/") + "/apis/" + gatewayv1alpha1.GroupVersion.String() + "/" +
		gatewayv1alpha1.Resource + "/" + member + "/" + gatewayv1alpha1.SubresourceProxy
}

// desiredStatus updates our part of a status that others write to as well. had are the previously
// published properties.
func desiredStatus(status multiclusterv1alpha1.ClusterProfileStatus, mc *clusterv1beta1.MemberCluster, provider multiclusterv1alpha1.AccessProviderStatus, had []string, generation int64) multiclusterv1alpha1.ClusterProfileStatus {
	wanted := *status.DeepCopy()
	wanted.Version.Kubernetes = mc.Status.Properties[clusterv1beta1.PropertyKubernetesVersion].Value
	for _, condition := range []metav1.Condition{healthOf(mc), joinedOf(mc)} {
		condition.ObservedGeneration = generation
		meta.SetStatusCondition(&wanted.Conditions, condition)
	}
	wanted.Properties = desiredProperties(wanted.Properties, mc, had)
	at := slices.IndexFunc(wanted.AccessProviders, func(p multiclusterv1alpha1.AccessProviderStatus) bool { return p.Name == provider.Name })
	if at < 0 {
		wanted.AccessProviders = append(wanted.AccessProviders, provider)
	} else {
		wanted.AccessProviders[at] = provider
	}
	return wanted
}

func joinedOf(mc *clusterv1beta1.MemberCluster) metav1.Condition {
	joined := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
	if joined == nil {
		return metav1.Condition{Type: multiclusterv1alpha1.ConditionJoined, Status: metav1.ConditionUnknown,
			Reason: multiclusterv1alpha1.ReasonAgentReportedNoStatus, Message: "the member's agent has not reported yet"}
	}
	return metav1.Condition{Type: multiclusterv1alpha1.ConditionJoined, Status: joined.Status, Reason: joined.Reason, Message: joined.Message}
}

// healthOf is the condition ControlPlaneHealthy of a member.
func healthOf(mc *clusterv1beta1.MemberCluster) metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: multiclusterv1alpha1.ConditionControlPlaneHealthy, Status: status, Reason: reason, Message: message}
	}
	agent := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return condition(metav1.ConditionUnknown, multiclusterv1alpha1.ReasonAgentReportedNoStatus, "the member's agent has not reported yet")
	}
	health := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy)
	joined := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
	switch {
	case joined != nil && joined.Status == metav1.ConditionUnknown && meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionJoined):
		return condition(metav1.ConditionFalse, multiclusterv1alpha1.ReasonAgentHeartbeatLost, "the member's agent sends no heartbeat")
	case health == nil:
		return condition(metav1.ConditionUnknown, multiclusterv1alpha1.ReasonAgentReportedNoHealthInfo, "the member's agent has not reported the health of its API server")
	case health.Status != metav1.ConditionTrue:
		return condition(metav1.ConditionFalse, multiclusterv1alpha1.ReasonAPIServerUnhealthy, "the member's agent finds its API server not ready")
	case meta.IsStatusConditionFalse(agent.Conditions, clusterv1beta1.ConditionTunnelConnected):
		// Consumers reach it through the tunnel, and some stop all rollouts while a member that is
		// reported healthy does not answer.
		return condition(metav1.ConditionFalse, multiclusterv1alpha1.ReasonTunnelDown, "the member's agent has no tunnel to the hub")
	default:
		return condition(metav1.ConditionTrue, multiclusterv1alpha1.ReasonAPIServerHealthy, "the member's API server is ready")
	}
}
