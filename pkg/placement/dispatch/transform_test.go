// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// rendersTo renders every chart to the same manifests.
type rendersTo struct {
	manifests []placementv1beta1.Manifest
	err       error
	renders   *int
}

func (c rendersTo) Manifests(*helmchart.Release, reconcile.Request) ([]placementv1beta1.Manifest, error) {
	*c.renders++
	return c.manifests, c.err
}

func (rendersTo) Source() source.Source { return nil }

const chartConfigMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"addons","name":"cni","annotations":{"fleetgate.io/helm-chart":"cni"}},
"binaryData":{"chart.tgz":"YQ=="},"data":{"values.yaml":"a: ${MEMBER-CLUSTER-NAME}"}}`

func chartParts(texts ...string) []snapshot.Part {
	e := &placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ConfigMapEnvelopeType, Namespace: "addons", Name: "cni"}
	return []snapshot.Part{{Manifests: manifests("{}")}, {Envelope: e, Chart: true, Manifests: manifests(texts...)}}
}

func memberNamed(name string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// renderedWorks renders a chart and returns the desired Works and the number of renderings.
func renderedWorks(t *testing.T, charts rendersTo, member string, have ...*placementv1beta1.Work) ([]desiredWork, int) {
	t.Helper()
	charts.renders = new(int)
	in := input{binding: binding(), member: memberNamed(member), works: have}
	parts, err := transform{input: in, charts: charts}.apply(chartParts(chartConfigMap))
	if err != nil {
		t.Fatal(err)
	}
	works, err := build(in, "3", parts)
	if err != nil {
		t.Fatal(err)
	}
	return works, *charts.renders
}

func TestTransform_RendersOnceWhileNothingChanges(t *testing.T) {
	charts := rendersTo{manifests: manifests(`{"kind":"ConfigMap"}`)}
	works, renders := renderedWorks(t, charts, "m")
	if diff := cmp.Diff(charts.manifests, works[1].Spec.Workload.Manifests); diff != "" || renders != 1 {
		t.Errorf("rendered %d times, manifests (-want +got):\n%s", renders, diff)
	}
	if works[0].Annotations[placementv1beta1.RenderedFromAnnotation] != "" || works[1].Annotations[placementv1beta1.RenderedFromAnnotation] == "" {
		t.Errorf("annotations: %v, %v", works[0].Annotations, works[1].Annotations)
	}
	have := works[1].Work
	again, renders := renderedWorks(t, charts, "m", have)
	if renders != 0 || !again[1].keepManifests || again[0].keepManifests || again[1].Annotations[placementv1beta1.RenderedFromAnnotation] != have.Annotations[placementv1beta1.RenderedFromAnnotation] {
		t.Errorf("rendered %d times for an up-to-date Work: %+v", renders, again)
	}
	if again, renders = renderedWorks(t, charts, "other", have); renders != 1 || again[1].keepManifests {
		t.Errorf("rendered %d times for another member", renders)
	}
	changed := have.DeepCopy()
	changed.Spec.Workload.Manifests = manifests(`{"kind":"Secret"}`)
	if again, renders = renderedWorks(t, charts, "m", changed); renders != 1 || again[1].keepManifests {
		t.Errorf("rendered %d times for an edited Work", renders)
	}
	going := have.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	if _, renders = renderedWorks(t, charts, "m", going); renders != 1 {
		t.Errorf("rendered %d times for a terminating Work", renders)
	}
}

func TestTransform_ErrorsNameTheChart(t *testing.T) {
	cases := map[string]struct {
		configMap string
		err       error
		is        error
		refused   bool
		want      string
	}{
		"invalid chart": {
			configMap: chartConfigMap, err: &helmchart.Problem{Chart: "cni 1.0.0", Where: "cni/a.yaml:3", What: "no"}, refused: true,
			want: `a chart cannot be rendered: ConfigMap "addons/cni": chart cni 1.0.0: cni/a.yaml:3: no`,
		},
		"missing chart": {
			configMap: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"addons","name":"cni","annotations":{"fleetgate.io/helm-chart":"cni"}}}`,
			refused:   true,
			want:      `a chart cannot be rendered: ConfigMap "addons/cni": key chart.tgz is missing: it holds the chart as helm package writes it; or chart and version, for one in a registry`,
		},
		"chart over the limits": {
			configMap: chartConfigMap, err: helmchart.ErrExhausted, is: helmchart.ErrExhausted, want: `rendering ConfigMap "addons/cni": the chart takes more than it may`,
		},
		"rendering in progress": {configMap: chartConfigMap, err: helmchart.ErrRendering, is: helmchart.ErrRendering, want: "the chart is being rendered"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input{binding: binding(), member: memberNamed("m")}
			_, err := transform{input: in, charts: rendersTo{err: tc.err, renders: new(int)}}.apply(chartParts(tc.configMap))
			if tc.is != nil && !errors.Is(err, tc.is) || (refusal.Of(err) != nil) != tc.refused || err.Error() != tc.want {
				t.Errorf("error = %q, refused %t, want %q", err, refusal.Of(err) != nil, tc.want)
			}
		})
	}
}

func TestTransform_DeletedChartLeavesEmptyWork(t *testing.T) {
	in := input{binding: binding(), member: memberNamed("m")}
	parts, err := transform{input: in, charts: rendersTo{renders: new(int)}}.apply(chartParts())
	if err != nil || len(parts) != 2 || len(parts[1].Manifests) > 0 {
		t.Errorf("parts = %v, error = %v", parts, err)
	}
}

// storedOverride is a client with one override snapshot.
type storedOverride struct {
	client.Client
	of *placementv1beta1.ResourceOverrideSnapshot
}

func (s storedOverride) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.of.DeepCopyInto(into.(*placementv1beta1.ResourceOverrideSnapshot))
	return nil
}

func TestTransform_ChangesChartValuesButNotTheChart(t *testing.T) {
	for path, allowed := range map[string]bool{
		"/data/values.yaml": true, "/metadata/labels": true,
		"/binaryData/chart.tgz": false, "/data/namespace": false, "/metadata/annotations/fleetgate.io~1helm-chart": false,
	} {
		value := `"eA=="`
		if path == "/metadata/labels" {
			value = `{"a":"b"}`
		}
		of := &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "o-0"}}
		of.Spec.OverrideSpec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "cni"}}
		of.Spec.OverrideSpec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			ClusterSelector: &placementv1beta1.ClusterSelector{}, JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{
				{Operator: placementv1beta1.JSONPatchAdd, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(value)}},
			},
		}}}
		b := binding()
		b.Spec.ResourceOverrideSnapshots = []placementv1beta1.NamespacedName{{Namespace: "addons", Name: "o-0"}}
		set, err := (&Reconciler{Client: storedOverride{of: of}}).overrides(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		one := transform{input: input{binding: b, member: memberNamed("m")}, overrides: set}
		err = one.override(&part{Part: chartParts(chartConfigMap)[1]})
		if allowed != (err == nil) || !allowed && refusal.ReasonOf(err) != placementv1beta1.ReasonOverriddenFailed {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The run or the binding may have been written by somebody else than the gateway.
func TestOverridden_RefusesOverrideOfAnotherPlacement(t *testing.T) {
	ofPlacement := func(ref *placementv1beta1.PlacementRef) *placementv1beta1.ResourceOverrideSnapshot {
		of := &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "o-0"}}
		of.Spec.OverrideSpec.Placement = ref
		return of
	}
	for name, tc := range map[string]struct {
		of      *placementv1beta1.PlacementRef
		refused bool
	}{
		"of every placement":                    {nil, false},
		"of this placement":                     {&placementv1beta1.PlacementRef{Name: "p"}, false},
		"of another placement":                  {&placementv1beta1.PlacementRef{Name: "q"}, true},
		"of a placement of that name in addons": {&placementv1beta1.PlacementRef{Name: "p", Scope: apiextensionsv1.NamespaceScoped}, true},
	} {
		b := binding()
		b.Spec.ResourceOverrideSnapshots = []placementv1beta1.NamespacedName{{Namespace: "addons", Name: "o-0"}}
		_, err := (&Reconciler{Client: storedOverride{of: ofPlacement(tc.of)}}).overrides(t.Context(), b)
		if (refusal.ReasonOf(err) == placementv1beta1.ReasonOverriddenFailed) != tc.refused || (err != nil) != tc.refused {
			t.Errorf("%s: %v, want a refusal: %t", name, err, tc.refused)
		}
	}
}
