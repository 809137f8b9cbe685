// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Names of the add-ons, as other products know them.
const (
	managedServiceAccount = "managed-serviceaccount"
	clusterProxy          = "cluster-proxy"
	clusterGateway        = "cluster-gateway"
)

func names() []string { return []string{managedServiceAccount, clusterProxy, clusterGateway} }

// facts are what the hub knows about a member.
type facts struct {
	cluster *clusterv1.ManagedCluster
	member  *clusterv1beta1.MemberCluster
	// account is the gateway's, or nil.
	account *authenticationv1beta1.ManagedServiceAccount
}

// availability is condition Available of an add-on. Without a heartbeat of the cluster nobody knows.
func (f facts) availability(name string) metav1.Condition {
	of := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ConditionAvailable)
	if of == nil || of.Status != metav1.ConditionTrue {
		unknown := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonFeatureUnavailable}
		if of != nil {
			unknown.Reason, unknown.Message = of.Reason, of.Message
		}
		return unknown
	}
	missing := ""
	switch tokens, tunnel := f.hasToken(), meta.IsStatusConditionTrue(f.member.Status.Conditions, clusterv1beta1.ConditionTunnelConnected); {
	case name != clusterProxy && !tokens:
		missing = "The agent has not reported the token of the gateway's account"
	case name != managedServiceAccount && !tunnel:
		missing = "The agent has no tunnel to a gateway"
	}
	if missing != "" {
		return metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonFeatureUnavailable, Message: missing}
	}
	return metav1.Condition{
		Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonFeatureAvailable, Message: name + " add-on is available.",
	}
}

func (f facts) hasToken() bool {
	return f.account != nil && meta.IsStatusConditionTrue(f.account.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
}

// desiredStatus writes what the hub knows about an add-on. Customized keeps agents of other products
// from looking for a Lease.
func (f facts) desiredStatus(status *addonv1alpha1.ManagedClusterAddOnStatus, name string) {
	status.HealthCheck.Mode = addonv1alpha1.HealthCheckCustomized
	if name == managedServiceAccount {
		// Managers of rights look up here where the accounts are.
		status.Namespace = authenticationv1beta1.AccountNamespace
		if f.cluster.Annotations[addonv1alpha1.AgentMemberAnnotation] != "" {
			status.Namespace = addonv1alpha1.FleetgateAgentAccounts
		}
	}
	meta.SetStatusCondition(&status.Conditions, f.availability(name))
}
