// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

const (
	azureProvider = "azure:///subscriptions/"
	// labelManagedGroup is on nodes of AKS, with the resource group of the nodes. By default it is
	// named MC_<resource group>_<cluster>_<location>.
	labelManagedGroup  = "kubernetes.azure.com/cluster"
	managedGroupPrefix = "MC_"
	// maxNodes limits the nodes that are read: the first ones may be virtual.
	maxNodes = 10
)

// withFacts adds what the nodes say about their cloud to the labels of a registration. Labels that a
// user set win. Nodes that cannot be read add nothing.
func (e *Enroller) withFacts(ctx context.Context, labels map[string]string) map[string]string {
	nodes, err := e.options.Member.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxNodes})
	if err != nil {
		log.FromContext(ctx).Info("Registering without the labels of the cloud, because the nodes cannot be read", "reason", err.Error())
		return labels
	}
	all := azureLabels(nodes.Items)
	if len(all) == 0 {
		return labels
	}
	maps.Copy(all, labels)
	return all
}

// azureLabels are the labels that Azure's fleets have, from the first node of Azure.
func azureLabels(nodes []corev1.Node) map[string]string {
	for i := range nodes {
		id, ok := strings.CutPrefix(nodes[i].Spec.ProviderID, azureProvider)
		if !ok {
			continue
		}
		parts := strings.Split(id, "/")
		if len(parts) < 3 || !strings.EqualFold(parts[1], "resourceGroups") {
			continue
		}
		location, group := nodes[i].Labels[corev1.LabelTopologyRegion], parts[2]
		if managed := nodes[i].Labels[labelManagedGroup]; managed != "" {
			group = groupOf(managed, location)
		}
		labels := map[string]string{
			registrationv1alpha1.LabelLocation: location, registrationv1alpha1.LabelResourceGroup: group, registrationv1alpha1.LabelSubscription: parts[0],
		}
		maps.DeleteFunc(labels, func(_, value string) bool { return value == "" || len(validation.IsValidLabelValue(value)) > 0 })
		return labels
	}
	return nil
}

// groupOf returns the resource group of a cluster of AKS from that of its nodes. Both the group and the
// cluster may contain the separator, and the nodes' group may have another name: then it is unknown.
func groupOf(managed, location string) string {
	prefix, suffix := len(managedGroupPrefix), "_"+location
	end := len(managed) - len(suffix)
	if location == "" || end < prefix || !strings.EqualFold(managed[:prefix], managedGroupPrefix) || !strings.EqualFold(managed[end:], suffix) {
		return ""
	}
	group, cluster, ok := strings.Cut(managed[prefix:end], "_")
	if !ok || strings.Contains(cluster, "_") {
		return ""
	}
	return group
}
