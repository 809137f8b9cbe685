// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

const (
	// LabelAutoImport on a Cluster of Cluster API or on its namespace with the value "true" imports
	// the cluster as a member. The Cluster's value overrides its namespace's. Users write it.
	LabelAutoImport = "fleetgate.io/auto-import"
	// AnnotationOrigin is on a Cluster of fleet.cattle.io. Its value is the name of the Cluster
	// of Cluster API in the same namespace from which it was created. The hub writes it.
	AnnotationOrigin = "fleetgate.io/cluster-api-cluster"
	// AnnotationOriginUID is on a Cluster of fleet.cattle.io. Its value is the UID of the
	// Cluster of Cluster API: another one with its name is another cluster. The hub writes it.
	AnnotationOriginUID = "fleetgate.io/cluster-api-uid"
	// AnnotationLabels is on a Cluster of fleet.cattle.io. Its value is the keys of the labels
	// that it has from Cluster API, separated by commas. The hub writes it.
	AnnotationLabels = "fleetgate.io/cluster-api-labels"
)

// Names of Cluster API's contract.
const (
	group = "cluster.x-k8s.io"
	// providerSuffix ends the groups of all kinds that a Cluster may refer to.
	providerSuffix = "." + group
	definitionName = "clusters." + group

	labelClusterName    = "cluster.x-k8s.io/cluster-name"
	annotationPaused    = "cluster.x-k8s.io/paused"
	annotationManagedBy = "cluster.x-k8s.io/managed-by"
	secretType          = "cluster.x-k8s.io/secret"
	secretSuffix        = "-kubeconfig"
)

const hashLength = 12

// secretName is the Secret with the kubeconfig of a cluster's administrator.
func secretName(cluster string) string { return cluster + secretSuffix }

// fleetName is the name of the Cluster for one of Cluster API: the same, or a hash of it if that is
// no valid name of a member.
func fleetName(cluster string) string {
	if len(cluster) <= clusterv1beta1.MaxMemberNameLength && len(validation.IsDNS1123Label(cluster)) == 0 {
		return cluster
	}
	return "cluster-api-" + hash.Of(cluster)[:hashLength]
}
