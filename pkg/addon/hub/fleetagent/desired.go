// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// workName is the name of the ManifestWork, as managers of add-ons name theirs.
	workName = "addon-" + addonv1alpha1.FleetgateAgent + "-deploy-0"
	// impersonationPrefix begins the names of the role and binding that the agent itself updates.
	impersonationPrefix = "fleetgate-impersonate"
)

// refuse says why a cluster gets no agent, or nil. The Cluster of its name is nil if there is none.
func refuse(enabled bool, cluster *clusterv1.ManagedCluster, fleet *registrationv1alpha1.Cluster) *refusal.Refusal {
	switch {
	case !enabled:
		return refusal.New(addonv1alpha1.ReasonAgentNotEnabled, "The hub has no ClusterManagementAddOn %q; create it to enable the add-on", addonv1alpha1.FleetgateAgent)
	case cluster.UID == "" || !cluster.Spec.HubAcceptsClient || !objects.IsAccepted(cluster):
		return refusal.New(addonv1alpha1.ReasonClusterNotAccepted, "The hub has not accepted a ManagedCluster of this name; accept it with clusteradm accept --clusters <name>")
	case len(cluster.Name) > clusterv1beta1.MaxMemberNameLength || len(validation.IsDNS1123Label(cluster.Name)) > 0:
		return refusal.New(addonv1alpha1.ReasonNameNotAllowed, "No member can have the name %q; let the cluster join with a DNS label of at most %d characters", cluster.Name, clusterv1beta1.MaxMemberNameLength)
	case fleet != nil && !isFor(fleet, cluster):
		return refusal.New(addonv1alpha1.ReasonMemberExists, "Cluster %q in namespace %q was not created for this ManagedCluster; delete one of them", fleet.Name, fleet.Namespace)
	case fleet != nil && fleet.DeletionTimestamp != nil:
		return refusal.New(addonv1alpha1.ReasonMemberExists, "Cluster %q in namespace %q is being deleted; it is created again afterwards", fleet.Name, fleet.Namespace)
	}
	return nil
}

func memberExists(name string) *refusal.Refusal {
	return refusal.New(addonv1alpha1.ReasonMemberExists, "MemberCluster %q was not created for this ManagedCluster; delete it, or let one of the clusters join with another name", name)
}

// unsupported refuses what an AddOnDeploymentConfig sets and the agent does not take from there, or nil.
// The image is the gateway's: a user who may change the configuration could otherwise run any program on
// the cluster.
func unsupported(config *addonv1alpha1.AddOnDeploymentConfigSpec) *refusal.Refusal {
	if config == nil {
		return nil
	}
	field := ""
	switch {
	case len(config.CustomizedVariables) > 0:
		field = "customizedVariables"
	case len(config.Registries) > 0:
		field = "registries"
	case len(config.ProxyConfig.CABundle) > 0:
		field = "proxyConfig.caBundle"
	case len(config.ResourceRequirements) > 0:
		field = "resourceRequirements"
	default:
		return nil
	}
	return refusal.New(addonv1alpha1.ReasonConfigurationUnsupported, "The AddOnDeploymentConfig has %s, which %s does not support; configure one that has only proxyConfig.httpsProxy, proxyConfig.noProxy and nodePlacement", field, addonv1alpha1.FleetgateAgent)
}

// setHashes records which configurations a ManifestWork was made from.
func setHashes(work *workv1.ManifestWork, hashes map[string]string) error {
	if len(hashes) == 0 {
		delete(work.Annotations, workv1.ConfigSpecHashAnnotation)
		return nil
	}
	return objects.SetHashes(work, hashes)
}

// isFor reports whether the add-on created a Cluster for this very ManagedCluster.
func isFor(fleet *registrationv1alpha1.Cluster, cluster *clusterv1.ManagedCluster) bool {
	return fleet.Annotations[addonv1alpha1.ManagedClusterAnnotation] == string(cluster.UID)
}

// desiredWork is the ManifestWork with these manifests.
func desiredWork(key client.ObjectKey, manifests []*unstructured.Unstructured, version string) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{addonv1alpha1.AddOnNameLabel: addonv1alpha1.FleetgateAgent},
	}}
	for _, manifest := range manifests {
		raw, err := manifest.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding the manifests of the agent: %w", err)
		}
		one := workv1.Manifest{}
		one.Raw = raw
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, one)
		if resource := createdOnly(manifest); resource != "" {
			work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, workv1.ManifestConfigOption{
				ResourceIdentifier: workv1.ResourceIdentifier{Group: rbacv1.GroupName, Resource: resource, Name: manifest.GetName()},
				UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyCreateOnly},
			})
		}
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, addonv1alpha1.AgentVersionAnnotation, version+"/"+contentOf(work))
	return work, nil
}

// createdOnly is the resource of a role, or binding, that the agent updates: the klusterlet would
// revert that. It is empty for other objects.
func createdOnly(manifest *unstructured.Unstructured) string {
	if !strings.HasPrefix(manifest.GetName(), impersonationPrefix) {
		return ""
	}
	switch manifest.GetKind() {
	case "ClusterRole":
		return "clusterroles"
	case "ClusterRoleBinding":
		return "clusterrolebindings"
	}
	return ""
}

// knownVersion is the version that a ManifestWork was rendered from, or empty if its manifests or
// labels were changed since.
func knownVersion(work *workv1.ManifestWork) string {
	version, content, _ := strings.Cut(work.Annotations[addonv1alpha1.AgentVersionAnnotation], "/")
	if content != contentOf(work) || work.Labels[addonv1alpha1.AddOnNameLabel] != addonv1alpha1.FleetgateAgent || work.Spec.Executor != nil || work.DeletionTimestamp != nil {
		return ""
	}
	return version
}

// contentOf is a hash of the manifests, whatever the order of their fields, and of the strategies.
func contentOf(work *workv1.ManifestWork) string {
	var content []any
	for _, manifest := range work.Spec.Workload.Manifests {
		var one map[string]any
		if err := untrusted.UnmarshalJSON(manifest.Raw, untrusted.Object, &one); err != nil {
			return ""
		}
		content = append(content, one)
	}
	for _, config := range work.Spec.ManifestConfigs {
		content = append(content, config.ResourceIdentifier, config.UpdateStrategy)
	}
	text, err := hash.JSON(content)
	if err != nil {
		return ""
	}
	return text
}
