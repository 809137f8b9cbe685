// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// groupOf is the group of all agents of an add-on of a cluster.
func groupOf(cluster, addOn string) string {
	return clusterv1.UserPrefix + "cluster:" + cluster + ":addon:" + addOn
}

// signersOfKubernetes is the domain of signers whose certificates the hub's API server and kubelets trust.
const signersOfKubernetes = "kubernetes.io/"

// refuseSigners refuses a template that chooses the subject of a certificate for the hub itself: its author
// could be any user there.
func refuseSigners(template *addonv1alpha1.AddOnTemplate) error {
	for _, wanted := range template.Spec.Registration {
		if signer := wanted.CustomSigner; signer != nil && strings.HasPrefix(signer.SignerName, signersOfKubernetes) {
			return refusal.New(addonv1alpha1.ReasonSetPermissionFailed, "AddOnTemplate %q has %s as signer of its own: use type %s for credentials of the hub",
				template.Name, signer.SignerName, addonv1alpha1.RegistrationKubeClient)
		}
	}
	return nil
}

// registrationsOf are the identities that a template asks for, for one cluster.
func registrationsOf(template *addonv1alpha1.AddOnTemplate, cluster, addOn string) []addonv1alpha1.RegistrationConfig {
	group := groupOf(cluster, addOn)
	agent := addonv1alpha1.Subject{User: group + ":agent:" + addOn + "-agent", Groups: []string{group, clusterv1.UserPrefix + "addon:" + addOn}}
	var all []addonv1alpha1.RegistrationConfig
	for _, wanted := range template.Spec.Registration {
		registration := addonv1alpha1.RegistrationConfig{Subject: agent}
		switch {
		case wanted.Type == addonv1alpha1.RegistrationKubeClient:
			registration.SignerName = certificatesv1.KubeAPIServerClientSignerName
		case wanted.CustomSigner == nil || strings.HasPrefix(wanted.CustomSigner.SignerName, signersOfKubernetes):
			continue
		default:
			registration.SignerName = wanted.CustomSigner.SignerName
			if wanted.CustomSigner.Subject != nil {
				registration.Subject = *wanted.CustomSigner.Subject
			}
		}
		if !slices.ContainsFunc(all, func(has addonv1alpha1.RegistrationConfig) bool { return has.SignerName == registration.SignerName }) {
			all = append(all, registration)
		}
	}
	return all
}

// reportedRegistrations are those for the status of an add-on of a cluster. With tokens, the agent of the
// cluster also writes as whom the add-on's agent authenticates, and a klusterlet waits until that stays.
func reportedRegistrations(template *addonv1alpha1.AddOnTemplate, addOn *addonv1alpha1.ManagedClusterAddOn) []addonv1alpha1.RegistrationConfig {
	all := registrationsOf(template, addOn.Namespace, addOn.Name)
	for i := range all {
		if all[i].SignerName == certificatesv1.KubeAPIServerClientSignerName && addOn.Status.KubeClientDriver == addonv1alpha1.DriverToken {
			all[i].Subject = addonv1alpha1.TokenSubject(addOn.Namespace, addOn.Name)
		}
	}
	return all
}

// bindingsOf are the RoleBindings for the agent of an add-on of a cluster. A certificate also has a
// group of the agents of all clusters, which gets no rights.
func bindingsOf(template *addonv1alpha1.AddOnTemplate, addOn *addonv1alpha1.ManagedClusterAddOn) []*rbacv1.RoleBinding {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groupOf(addOn.Namespace, addOn.Name)}
	if addOn.Status.KubeClientDriver == addonv1alpha1.DriverToken {
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: addOn.Namespace, Name: addOn.Name + addonv1alpha1.TokenAccountSuffix}
	}
	var all []*rbacv1.RoleBinding
	add := func(namespace, suffix string, role rbacv1.RoleRef, owners ...metav1.OwnerReference) {
		name := "open-cluster-management:" + addOn.Name + ":" + strings.ToLower(role.Kind) + ":agent" + suffix
		for _, has := range all {
			if has.Namespace == namespace && has.RoleRef == role {
				return
			}
			if has.Namespace == namespace && has.Name == name {
				name += ":" + role.Name
			}
		}
		all = append(all, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners, Labels: map[string]string{
				addonv1alpha1.AddOnNameLabel: addOn.Name, addonv1alpha1.AddOnNamespaceLabel: addOn.Namespace, addonv1alpha1.TemplateLabel: "",
			}},
			RoleRef: role, Subjects: []rbacv1.Subject{subject},
		})
	}
	owner := ownerOf(addOn)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil // For these, the account would need a right to the add-on.
	for _, registration := range template.Spec.Registration {
		if registration.Type != addonv1alpha1.RegistrationKubeClient || registration.KubeClient == nil {
			continue
		}
		for _, permission := range registration.KubeClient.HubPermissions {
			switch {
			case permission.Type == addonv1alpha1.PermissionCurrentCluster && permission.CurrentCluster != nil:
				add(addOn.Namespace, "", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: permission.CurrentCluster.ClusterRoleName}, owner)
			case permission.Type == addonv1alpha1.PermissionSingleNamespace && permission.SingleNamespace != nil:
				role := permission.SingleNamespace.RoleRef
				add(permission.SingleNamespace.Namespace, ":"+addOn.Namespace, rbacv1.RoleRef{APIGroup: role.APIGroup, Kind: role.Kind, Name: role.Name})
			}
		}
	}
	return all
}

// ownerOf is the reference of what is deleted with the add-on.
func ownerOf(addOn *addonv1alpha1.ManagedClusterAddOn) metav1.OwnerReference {
	return *metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
}
