// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

const recordKind = "AppliedManifestWork"

// records is the resource of AppliedManifestWorks, which own the objects of ManifestWorks.
func records() schema.GroupVersionResource {
	return workv1.GroupVersion.WithResource("appliedmanifestworks")
}

// dialect returns the dialect of ManifestWorks. house are reserved namespaces besides the usual
// ones.
func dialect(house ...string) engine.Dialect {
	return engine.Dialect{
		Manager:         workv1.DefaultFieldManager,
		LeaveAnnotation: placementv1beta1.LeaveToMemberAnnotation,
		Wave:            rank,
		LastWave:        lastRank,
		Recreates:       func(*unstructured.Unstructured) bool { return false },
		Reserved: func(object *unstructured.Unstructured) string {
			if why := reserved.Why(object, house...); why != "" {
				return "The object " + why
			}
			return ""
		},
		DropsNamespace: true,
		Keeps:          isAppliedWork,
		Remedies: engine.Remedies{
			Contested: "stop that client, or remove the object from the ManifestWork",
			KeptNone:  "remove it from the ManifestWork",
			FieldsNotApplied: "Correct the manifest, or the kind or webhook on the cluster, or annotate the manifest with " +
				placementv1beta1.LeaveToMemberAnnotation + "=<JSON pointer>",
			FieldsHeld: "Set updateStrategy.serverSideApply.force to take these fields, or remove them from the manifest",
			Immutable:  "Delete the object on the cluster to have it made again, or choose updateStrategy CreateOnly",
		},
	}
}

// isAppliedWork reports whether an owner is an AppliedWork. As in OCM, other owners do not keep an
// object when its last ManifestWork is deleted.
func isAppliedWork(owner metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == placementv1beta1.GroupName && owner.Kind == "AppliedWork"
}

// ownerOf returns the owner reference of all objects of a ManifestWork.
func ownerOf(record *workv1.AppliedManifestWork) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: workv1.GroupVersion.String(), Kind: recordKind, Name: record.Name, UID: record.UID}
}

// lastRank is the rank of all unlisted resources.
const lastRank = 7

// rank orders resources for writing by their dependencies. The order is that of OCM, except that
// manifests of one rank are written in parallel.
func rank(resource schema.GroupResource) int {
	for rank, resources := range ranks() {
		for _, r := range resources {
			if r == resource {
				return rank
			}
		}
	}
	return lastRank
}

func ranks() [lastRank][]schema.GroupResource {
	in := func(group string, resources ...string) []schema.GroupResource {
		all := make([]schema.GroupResource, 0, len(resources))
		for _, resource := range resources {
			all = append(all, schema.GroupResource{Group: group, Resource: resource})
		}
		return all
	}
	join := func(parts ...[]schema.GroupResource) []schema.GroupResource {
		var all []schema.GroupResource
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	return [lastRank][]schema.GroupResource{
		join(in("", "namespaces", "persistentvolumes"), in("scheduling.k8s.io", "priorityclasses"),
			in("apiextensions.k8s.io", "customresourcedefinitions"), in("storage.k8s.io", "storageclasses"), in("policy", "podsecuritypolicies")),
		in("rbac.authorization.k8s.io", "roles", "clusterroles", "rolebindings", "clusterrolebindings"),
		join(in("networking.k8s.io", "networkpolicies"), in("", "resourcequotas", "limitranges", "serviceaccounts"), in("policy", "poddisruptionbudgets")),
		in("", "secrets", "configmaps", "persistentvolumeclaims"),
		in("", "services"),
		join(in("", "pods", "replicationcontrollers"), in("apps", "daemonsets", "replicasets", "deployments", "statefulsets"),
			in("batch", "jobs", "cronjobs"), in("autoscaling", "horizontalpodautoscalers")),
		join(in("apiregistration.k8s.io", "apiservices"), in("admissionregistration.k8s.io", "validatingwebhookconfigurations",
			"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings")),
	}
}
