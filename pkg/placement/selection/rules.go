// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// rule describes what stays on the hub of objects of some kinds.
type rule struct {
	// kinds are the kinds of the rule; none means all.
	kinds []schema.GroupKind
	// field is the name of the rule's fields in docs/reference/placed-resources.md.
	field string
	cut   func(object map[string]any, by writers)
}

func kinds(group string, names ...string) []schema.GroupKind {
	all := make([]schema.GroupKind, 0, len(names))
	for _, name := range names {
		all = append(all, schema.GroupKind{Group: group, Kind: name})
	}
	return all
}

// boundByController is on a claim whose volume the binder chose, and on a volume whose claim it chose.
const boundByController = "pv.kubernetes.io/bound-by-controller"

// rules are applied in this order: rules that read annotations come before the one that removes them.
var rules = []rule{
	{nil, "status", remove([]string{"status"})},
	{nil, "metadata of the server", remove(
		[]string{"metadata", "resourceVersion"}, []string{"metadata", "uid"}, []string{"metadata", "generation"},
		[]string{"metadata", "creationTimestamp"}, []string{"metadata", "selfLink"}, []string{"metadata", "managedFields"},
		[]string{"metadata", "ownerReferences"}, []string{"metadata", "deletionTimestamp"}, []string{"metadata", "deletionGracePeriodSeconds"})},
	{nil, "finalizers", cutFinalizers},
	{nil, "spec.replicas", cutReplicas},
	{kinds("", "Service"), "spec.clusterIP", cutClusterIP},
	{kinds("", "Service"), "spec.ports[].nodePort", cutNodePorts},
	{kinds("", "Service"), "spec.ipFamilies", removeAllocated("ipFamilies", "ipFamilyPolicy")},
	{kinds("", "Service"), "spec.loadBalancerClass", removeAllocated("loadBalancerClass")},
	{kinds("", "Service"), "spec.loadBalancerIP", removeAllocated("loadBalancerIP")},
	{kinds("networking.k8s.io", "Ingress"), "spec.ingressClassName", removeAllocated("ingressClassName")},
	{kinds("batch", "Job"), "spec.selector", cutJob},
	{kinds("", "PersistentVolume"), "spec.claimRef", cutClaimRef},
	{kinds("", "PersistentVolumeClaim"), "spec.volumeName", cutVolumeName},
	{kinds("", "PersistentVolumeClaim"), "spec.storageClassName", removeAllocated("storageClassName")},
	{kinds("snapshot.storage.k8s.io", "VolumeSnapshot"), "spec.volumeSnapshotClassName", removeAllocated("volumeSnapshotClassName")},
	{kinds("rbac.authorization.k8s.io", "ClusterRole"), "rules", cutAggregatedRules},
	{kinds("", "ServiceAccount"), "secrets", cutTokenReferences},
	{kinds("", "ServiceAccount"), "imagePullSecrets", cutPullSecrets},
	{slices.Concat(kinds("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
		kinds("apiregistration.k8s.io", "APIService"), kinds("apiextensions.k8s.io", "CustomResourceDefinition")), "caBundle", cutAuthorities},
	{kinds("route.openshift.io", "Route"), "spec.host", cutGeneratedHost},
	{kinds("argoproj.io", "Application"), "operation", remove([]string{"operation"})},
	{nil, "annotations of controllers", removeKeys("annotations", controllerAnnotations...)},
	{nil, "marks of owners", removeKeys("annotations", ownerAnnotations...)},
	{nil, "marks of owners", removeKeys("labels", ownerLabels...)},
	{nil, placementv1beta1.PlaceAnnotation, removeKeys("annotations", placementv1beta1.PlaceAnnotation, placementv1beta1.PlaceFinalizersAnnotation)},
}

// controllerAnnotations are bookkeeping of clients and controllers of one cluster. Most are also removed
// because only controllers own them; these are removed if managed fields do not show that. Webhooks of Knative
// set the creator, and let nobody change it.
var controllerAnnotations = []string{
	corev1.LastAppliedConfigAnnotation,
	"deployment.kubernetes.io/revision",
	"deprecated.daemonset.template.generation",
	"pv.kubernetes.io/bind-completed", boundByController, "pv.kubernetes.io/migrated-to",
	"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
	"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-resizer",
	"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
	"endpoints.kubernetes.io/last-change-trigger-time", "endpoints.kubernetes.io/over-capacity",
	"openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.supplemental-groups", "openshift.io/sa.scc.mcs",
	"service.beta.openshift.io/serving-cert-signed-by", "service.alpha.openshift.io/serving-cert-signed-by",
	"metallb.io/ip-allocated-from-pool", "metallb.universe.tf/ip-allocated-from-pool", "cloud.google.com/neg-status",
	"field.cattle.io/publicEndpoints", "policies.kyverno.io/last-applied-patches",
	"argocd.argoproj.io/refresh", "kopf.zalando.org/",
	"crossplane.io/external-create-pending", "crossplane.io/external-create-succeeded", "crossplane.io/external-create-failed",
	"serving.knative.dev/creator", "serving.knative.dev/lastModifier",
	"eventing.knative.dev/creator", "eventing.knative.dev/lastModifier",
	"kapp.k14s.io/original", "kapp.k14s.io/original-diff-md5",
}

// ownerAnnotations and ownerLabels are marks with which a tool finds its own objects and deletes
// unknown ones. The same tool on a member must not treat placed objects as its own.
var (
	ownerAnnotations = []string{
		"meta.helm.sh/release-name", "meta.helm.sh/release-namespace",
		"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/installation-id",
		"objectset.rio.cattle.io/", "lifecycle.cattle.io/", "cattle.io/status", "field.cattle.io/projectId",
		"kapp.k14s.io/identity", "config.k8s.io/owning-inventory", "configsync.gke.io/",
	}
	ownerLabels = []string{"argocd.argoproj.io/instance", "objectset.rio.cattle.io/hash", "field.cattle.io/projectId",
		"kapp.k14s.io/app", "kapp.k14s.io/association", "olm.operatorgroup.uid/", "applyset.kubernetes.io/part-of",
		"generate.kyverno.io/"}
)
