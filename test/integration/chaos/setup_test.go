// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/program"
)

const (
	namespacePrefix = "chaos-"
	// setsNamespace and sidesNamespace exist on the members before fleetgate uses them.
	setsNamespace  = namespacePrefix + "sets"
	sidesNamespace = namespacePrefix + "sides"
)

var (
	shops   = []string{namespacePrefix + "a", namespacePrefix + "b", namespacePrefix + "c"}
	sides   = []string{"left", "right"}
	regions = []string{"east", "west"}
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.chaos.example.org}
spec:
  group: chaos.example.org
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// newModel prepares hub and members and returns the model of them. Nothing is placed yet.
func newModel(ctx context.Context) *model {
	GinkgoHelper()
	m := &model{regions: map[string]string{}, sources: map[object]source{}, local: map[spot]bool{}, claims: map[spot]claim{},
		slices: [2]map[string]bool{{}, {}}, causes: map[spot][]cause{}}
	for _, cluster := range running.Clusters() {
		out, err := program.Kubectl(ctx, cluster, widgets, "apply", "--filename=-")
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = program.Kubectl(ctx, cluster, "", "wait", "--for=condition=Established", "crd/widgets.chaos.example.org", "--timeout=2m")
		Expect(err).NotTo(HaveOccurred(), out)
	}
	for i, member := range running.Members {
		m.members = append(m.members, member.Name)
		m.regions[member.Name] = regions[i%len(regions)]
		m.writeRegion(ctx, member.Name)
		m.addLocal(ctx, member.Name, setsNamespace, "local")
		m.addLocal(ctx, member.Name, sidesNamespace, "local")
	}
	m.addLocal(ctx, m.members[0], shops[0], "local")
	m.addLocal(ctx, m.members[0], shops[0], "taken") // Also on the hub.
	m.addLocal(ctx, m.members[1], sidesNamespace, "settings-left")
	for i, shop := range shops {
		m.createNamespace(ctx, hub, shop)
		m.placements = append(m.placements, &placement{name: fmt.Sprintf("shop-%d", i+1), namespace: shop, picks: i == 1, n: 1, holds: map[string]bool{}})
		m.addSource(ctx, object{"ConfigMap", shop, "settings"}, source{})
	}
	m.addSource(ctx, object{"ConfigMap", shops[0], "taken"}, source{})
	m.createNamespace(ctx, hub, sidesNamespace)
	for _, side := range sides {
		m.placements = append(m.placements, &placement{name: side, namespace: sidesNamespace, side: side, picks: side == "right", n: 1, holds: map[string]bool{}})
		m.addSource(ctx, object{"ConfigMap", sidesNamespace, "settings-" + side}, source{side: side})
	}
	m.prepareSets(ctx)
	return m
}

func (m *model) prepareSets(ctx context.Context) {
	GinkgoHelper()
	m.createNamespace(ctx, hub, setsNamespace)
	all := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("everyone")}
	all.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: inAnyRegion()}
	retry(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(hub.Create(ctx, all.DeepCopy())) })
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(setsNamespace, all.Name), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: all.Name}}
	retry(ctx, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(hub.Create(ctx, binding.DeepCopy()))
	})
	for _, name := range []string{regional, sliced} {
		m.sets = append(m.sets, &replicaSet{name: name, contents: map[string]int{name + "-settings": m.next()}, holds: map[string]bool{}})
	}
	for i, member := range m.members {
		m.slices[i%2][member] = true
	}
	m.writeRegional(ctx)
	write(ctx, hub, &ocmclusterv1beta1.Placement{ObjectMeta: build.In(setsNamespace, sliced)}, func(at *ocmclusterv1beta1.Placement) {
		at.Annotations = map[string]string{ocmclusterv1beta1.DisableAnnotation: "true"}
	})
	for i := range m.slices {
		m.writeSlice(ctx, i)
	}
	m.decide()
}

// addLocal creates a ConfigMap of a member's own team.
func (m *model) addLocal(ctx context.Context, member, namespace, name string) {
	GinkgoHelper()
	m.createNamespace(ctx, members[member], namespace)
	retry(ctx, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(members[member].Create(ctx, &corev1.ConfigMap{ObjectMeta: build.In(namespace, name)}))
	})
	m.local[spot{member, object{"ConfigMap", namespace, name}}] = true
}

func (m *model) addSource(ctx context.Context, o object, s source) {
	GinkgoHelper()
	s.value = m.next()
	m.sources[o] = s
	m.writeSource(ctx, o)
}

func (*model) createNamespace(ctx context.Context, on client.Client, name string) {
	GinkgoHelper()
	retry(ctx, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(on.Create(ctx, &corev1.Namespace{ObjectMeta: build.Named(name)}))
	})
}
