// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

func TestOwnKinds_MatchDefinitions(t *testing.T) {
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	known, found := ownKinds(), 0
	for _, d := range definitions {
		kind := schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
		mapping, err := known.RESTMapping(kind)
		if err != nil {
			continue // It is none of them.
		}
		found++
		served := false
		for i := range d.Spec.Versions {
			served = served || d.Spec.Versions[i].Served && d.Spec.Versions[i].Name == mapping.GroupVersionKind.Version
		}
		if mapping.Resource.Resource != d.Spec.Names.Plural || (mapping.Scope.Name() == meta.RESTScopeNameRoot) != (d.Spec.Scope == apiextensionsv1.ClusterScoped) || !served {
			t.Errorf("%s is taken for %s, %s", d.Name, mapping.Resource, mapping.Scope.Name())
		}
	}
	gateway, err := known.RESTMapping(gatewayv1alpha1.GroupVersion.WithKind("ClusterGateway").GroupKind())
	if err != nil || !strings.HasPrefix(paths.Member, "/apis/"+gateway.Resource.GroupVersion().String()+"/"+gateway.Resource.Resource+"/") {
		t.Errorf("the gateway's own kind is taken for %v, and lies at %s: %v", gateway, paths.Member, err)
	}
	if found != 16 { // All but ClusterGateway and Lease, which have no definition.
		t.Errorf("of the known kinds %d are defined", found)
	}
}

func TestMapper_DiscoversOtherKinds(t *testing.T) {
	discovered := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v1"}})
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	discovered.Add(widget, meta.RESTScopeRoot)
	m := mapper{RESTMapper: discovered, own: ownKinds()}
	for _, kind := range []schema.GroupKind{widget.GroupKind(), {Group: "fleet.cattle.io", Kind: "Cluster"}} {
		if _, err := m.RESTMapping(kind); err != nil {
			t.Error(err)
		}
	}
	if _, err := m.KindFor(schema.GroupVersionResource{Resource: "clusters"}); !meta.IsNoMatchError(err) {
		t.Errorf("what people call clusters is for the hub to say, and %v", err)
	}
}
