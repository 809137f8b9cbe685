// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

// Account is the ServiceAccount of Argo CD on the hub, and the name of its ClusterRole and
// ClusterRoleBinding.
const Account = "fleetgate-argocd"

// Labels and keys by which Argo CD recognizes a cluster.
const (
	labelSecretType   = "argocd.argoproj.io/secret-type"
	secretTypeCluster = "cluster"
	argoDomain        = "argocd.argoproj.io"
	ownDomain         = "fleetgate.io"

	keyName   = "name"
	keyServer = "server"
	keyConfig = "config"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	manager        = "fleetgate"
)

// SecretName is the name of a member's Secret in Argo CD's namespace.
func SecretName(member string) string { return "fleetgate-" + member }

// ServerURL returns the URL of a member for Argo CD.
func ServerURL(hub, member string) string {
	return fmt.Sprintf("%s/apis/%s/%s/%s/%s", strings.TrimSuffix(hub, "/"), gatewayv1alpha1.GroupVersion,
		gatewayv1alpha1.Resource, member, gatewayv1alpha1.SubresourceProxy)
}

// clusterConfig is the required part of Argo CD's cluster configuration.
type clusterConfig struct {
	BearerToken     string          `json:"bearerToken"`
	TLSClientConfig tlsClientConfig `json:"tlsClientConfig"`
}

type tlsClientConfig struct {
	Insecure bool   `json:"insecure"`
	CAData   []byte `json:"caData,omitempty"`
}

// desiredSecret returns the Secret of a member with a token. The hub owns all of it: labels that
// the member lost are removed.
func (r *Reconciler) desiredSecret(member *clusterv1beta1.MemberCluster, token string) (*corev1.Secret, error) {
	config, err := json.Marshal(clusterConfig{BearerToken: token, TLSClientConfig: tlsClientConfig{CAData: r.HubCA}})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of a cluster: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: SecretName(member.Name), Labels: labelsOf(member)},
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			keyName:   []byte(member.Name),
			keyServer: []byte(ServerURL(r.HubURL, member.Name)),
			keyConfig: config,
		},
	}, nil
}

// labelsOf copies the member's labels, except those that configure Argo CD or the hub.
func labelsOf(member *clusterv1beta1.MemberCluster) map[string]string {
	labels := map[string]string{}
	for key, value := range member.Labels {
		if domain, _, _ := strings.Cut(key, "/"); domain != argoDomain && domain != ownDomain {
			labels[key] = value
		}
	}
	labels[labelSecretType] = secretTypeCluster
	labels[labelManagedBy] = manager
	labels[clusterv1beta1.LabelMember] = member.Name
	return labels
}

// desiredRules allow the gateways of the named members. Without names there must be no rule,
// because a rule without names allows all members.
func desiredRules(members []string) []rbacv1.PolicyRule {
	if len(members) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{gatewayv1alpha1.GroupName},
		Resources:     []string{gatewayv1alpha1.Resource + "/" + gatewayv1alpha1.SubresourceProxy},
		Verbs:         []string{"create", "delete", "deletecollection", "get", "patch", "update"},
		ResourceNames: members,
	}}
}
