// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const recordKind = "AppliedManifestWork"

// records is the resource of AppliedManifestWorks, which own the objects of ManifestWorks.
func records() schema.GroupVersionResource {
	return workv1.GroupVersion.WithResource("appliedmanifestworks")
}

// dialect returns the dialect of ManifestWorks. As in OCM, owners of other kinds do not keep an
// object when its last ManifestWork is deleted, except AppliedWorks.
func dialect() engine.Dialect {
	return engine.Dialect{
		Manager:         workv1.DefaultFieldManager,
		LeaveAnnotation: placementv1beta1.LeaveToMemberAnnotation,
		Waves:           waves(),
		DropsNamespace:  true,
		KeptBy:          []schema.GroupKind{{Group: placementv1beta1.GroupName, Kind: "AppliedWork"}},
		Remedies: engine.Remedies{
			Contested: "stop that client, or remove the object from the ManifestWork",
			KeptNone:  "remove it from the ManifestWork",
			FieldsNotApplied: "Correct the manifest, or the kind or webhook on the cluster, or annotate the manifest with " +
				placementv1beta1.LeaveToMemberAnnotation + "=<JSON pointer>",
			FieldConflict: "Set updateStrategy.serverSideApply.force to take these fields, or remove them from the manifest",
			DuplicateKeys: "Keep one of them in the manifest, or choose updateStrategy Update",
			Immutable:     "Delete the object on the cluster to have it made again, or choose updateStrategy CreateOnly",
		},
	}
}

// ownerOf returns the owner reference of all objects of a ManifestWork.
func ownerOf(record *workv1.AppliedManifestWork) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: workv1.GroupVersion.String(), Kind: recordKind, Name: record.Name, UID: record.UID}
}

// waves are in the order of dependencies, which is that of OCM, except that manifests of one wave are
// written in parallel.
func waves() manifest.Waves {
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
	return manifest.Waves{
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
