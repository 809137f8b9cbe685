// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
)

// Names that clusteradm and klusterlets use.
const (
	// Namespace has the account whose tokens clusters use to join.
	Namespace = "open-cluster-management"
	// HubNamespace is the namespace of Open Cluster Management's own controllers.
	HubNamespace = "open-cluster-management-hub"
	// BootstrapAccount is the account, BootstrapRole its permissions.
	BootstrapAccount = "agent-registration-bootstrap"
	BootstrapRole    = "open-cluster-management:bootstrap"
	// BootstrapGroup is the group of bootstrap tokens for clusters.
	BootstrapGroup = "system:bootstrappers:managedcluster"
	// addOnAccount is the account to which add-ons bind their roles.
	addOnAccount = "addon-manager-controller-sa"
	// clusterInfo tells joining clusters the hub's address.
	clusterInfo = "cluster-info"
)

// EnsureBootstrap creates the objects that klusterlets need to join, if they are missing: an
// account whose tokens may only request a cluster and a certificate. Existing objects are not
// changed, because they belong to an administrator or another product. URL and CA are the hub's.
func EnsureBootstrap(ctx context.Context, hub client.Client, url string, ca []byte) error {
	objects := bootstrapObjects(url, ca)
	for _, role := range managedcluster.Roles() {
		objects = append(objects, role)
	}
	for _, object := range objects {
		if err := hub.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s, with which clusters join: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

func bootstrapObjects(url string, ca []byte) []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: BootstrapAccount},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: BootstrapGroup},
	}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: BootstrapRole}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: named(Namespace)},
		&corev1.Namespace{ObjectMeta: named(HubNamespace)},
		&corev1.ServiceAccount{ObjectMeta: in(Namespace, BootstrapAccount)},
		&corev1.ServiceAccount{ObjectMeta: in(HubNamespace, addOnAccount)},
		&rbacv1.ClusterRole{ObjectMeta: named(BootstrapRole), Rules: bootstrapRules()},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named(BootstrapRole), RoleRef: role("ClusterRole"), Subjects: subjects},
		&rbacv1.Role{ObjectMeta: in(metav1.NamespacePublic, BootstrapRole), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfo, "kube-root-ca.crt"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: in(metav1.NamespacePublic, BootstrapRole), RoleRef: role("Role"), Subjects: subjects},
		&corev1.ConfigMap{ObjectMeta: in(metav1.NamespacePublic, clusterInfo), Data: map[string]string{"kubeconfig": kubeconfigWithoutUser(url, ca)}},
	}
}

// bootstrapRules are the permissions before a cluster exists. They include joining the default set,
// because a new cluster is put into it on behalf of the requester.
func bootstrapRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "create", "list", "watch"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"}, Verbs: []string{"create"}},
	}
}

func kubeconfigWithoutUser(url string, ca []byte) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %q\n    certificate-authority-data: %s\n",
		url, base64.StdEncoding.EncodeToString(ca))
}
