// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package statusback

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// oneDeployment is a hub with a single Deployment.
type oneDeployment struct {
	client.Client
	written []string
}

func (*oneDeployment) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return mapper
}

func (*oneDeployment) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	deployment := unstructured.Unstructured{Object: map[string]any{}}
	deployment.SetNamespace("shop")
	deployment.SetName("web")
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{deployment}
	return nil
}

func (h *oneDeployment) Status() client.SubResourceWriter { return statuses{hub: h} }

type statuses struct {
	client.SubResourceWriter
	hub *oneDeployment
}

func (s statuses) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	s.hub.written = append(s.hub.written, object.GetName())
	return nil
}

// Somebody else may have changed the selectors while the member still has what they selected before.
func TestWrite_SkipsResourceThatSelectorsNoLongerTake(t *testing.T) {
	report := Report{
		Resource: placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Status:   map[string]any{"replicas": 2},
	}
	for selected, want := range map[string]int{"web": 1, "another": 0} {
		placement := &placementv1beta1.ResourcePlacement{}
		placement.Namespace = "shop"
		placement.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Group: "apps", Version: "v1", Kind: "Deployment", Name: selected}}
		hub := &oneDeployment{}
		if err := (&Reconciler{Live: hub}).write(t.Context(), placement, report); err != nil || len(hub.written) != want {
			t.Errorf("selectors name %q: wrote %v, %v, want %d", selected, hub.written, err, want)
		}
	}
}
