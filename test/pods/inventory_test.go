// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"fleetgate.io/fleetgate/test/support/env"
)

// inventory is every object of a cluster, as "resource namespace/name".
type inventory sets.Set[string]

// passing are resources whose objects come and go by themselves.
var passing = sets.New("events", "events.events.k8s.io", "leases.coordination.k8s.io")

// naming are those whose line has one of the texts.
func (i inventory) naming(texts ...string) []string {
	var found []string
	for name := range i {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(name, text) }) {
			found = append(found, name)
		}
	}
	return found
}

// since are those that were not there before.
func (i inventory) since(before inventory) inventory {
	return inventory(sets.Set[string](i).Difference(sets.Set[string](before)))
}

// take lists all that a cluster has.
func take(ctx context.Context, cluster *env.Cluster) inventory {
	GinkgoHelper()
	all := inventory{}
	discoverer, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	client, err := metadata.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	lists, err := discoverer.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			of := version.WithResource(resource.Name)
			if passing.Has(of.GroupResource().String()) {
				continue
			}
			found, err := client.Resource(of).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred(), of.String())
			for _, object := range found.Items {
				// The API server's own, of each CustomResourceDefinition.
				if _, automatic := object.Labels["kube-aggregator.kubernetes.io/automanaged"]; automatic {
					continue
				}
				all[fmt.Sprintf("%s %s/%s", of.GroupResource(), object.Namespace, object.Name)] = sets.Empty{}
			}
		}
	}
	return all
}

// expectLeft waits until a cluster has what it had before and the given objects, and
// nothing else.
func expectLeft(ctx context.Context, cluster *env.Cluster, before inventory, objects ...string) {
	GinkgoHelper()
	Eventually(func() []string {
		return slices.Sorted(maps.Keys(take(ctx, cluster).since(before)))
	}).Should(ConsistOf(objects))
}

// namespaceItself is what Kubernetes puts into every namespace, and the namespace.
func namespaceItself(name string) []string {
	return []string{"namespaces /" + name, "configmaps " + name + "/kube-root-ca.crt", "serviceaccounts " + name + "/default"}
}
