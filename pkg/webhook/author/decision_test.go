// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

func everythingIn(namespace string, verbs ...string) grant {
	return grant{namespace: namespace, verbs: verbs, groups: []string{anything}, resources: []string{anything}}
}

func namespaceNamed(name string) placementv1beta1.ResourceSelectorTerm {
	return placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name}
}

// However much is selected.
func TestPlacement_AdministratorCostsFewReviews(t *testing.T) {
	terms := []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a"), namespaceNamed("b"), {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}}
	asked := make(chan struct{}, 100)
	checker := NewChecker(authenticationv1.UserInfo{Username: "admin"}, hub{rbac: rbac{everythingIn("", anything)}, asked: asked})
	bound, refusals, err := world{}.hub().Placement(context.Background(), checker, "", selectingBy(terms))
	if err != nil || len(refusals) > 0 {
		t.Fatalf("refused: %v, %v", refusals, err)
	}
	if diff := cmp.Diff(`{"author":"admin","may":{"":["*"]}}`, bound.String()); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if len(asked) > 2 {
		t.Errorf("took %d reviews", len(asked))
	}
}

func TestPlacement_AllowsOnlyReadableObjects(t *testing.T) {
	tests := map[string]struct {
		rights    rbac
		namespace string
		terms     []placementv1beta1.ResourceSelectorTerm
		bound     string
		refused   []string
	}{
		"a kind that the hub does not serve is not everything": {
			rights: rbac{everythingIn("", anything)}, terms: []placementv1beta1.ResourceSelectorTerm{{Group: "gone.example.org", Version: "v1", Kind: "Gone"}},
			bound: `null`,
		},
		"a name in RBAC is one object": {
			rights: rbac{{verbs: []string{"get"}, groups: []string{""}, resources: []string{"secrets"}, names: []string{"x"}}}, namespace: "a",
			terms:   []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Secret", Name: "x"}, {Version: "v1", Kind: "Secret", Name: "y"}},
			bound:   `{"a":["secrets/x"]}`,
			refused: []string{`spec.resourceSelectors[1]: user "alice" cannot get or place secrets "y" in namespace "a"`},
		},
		"single resources of a namespace": {
			rights: rbac{{verbs: []string{"list", "get"}, groups: []string{""}, resources: []string{"secrets", "namespaces"}}},
			terms: []placementv1beta1.ResourceSelectorTerm{
				{Version: "v1", Kind: "Namespace", Name: "a", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors},
				{Version: "v1", Kind: "Secret"}, {Group: "apps", Version: "v1", Kind: "Deployment", Name: "x"},
			},
			bound:   `{"":["namespaces/a"],"a":["secrets"]}`,
			refused: []string{`spec.resourceSelectors[2]: user "alice" cannot get or place deployments.apps "x" in namespace "a"`},
		},
		"a placement of a namespace does not reach into another": {
			rights: rbac{everythingIn("a", anything)}, namespace: "a",
			terms: []placementv1beta1.ResourceSelectorTerm{
				{Version: "v1", Kind: "Namespace", Name: "b", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors}, {Version: "v1", Kind: "Secret", Name: "x"},
			},
			bound: `{"a":["*"]}`,
		},
		"to get everything by its name is not to list it": {
			rights: rbac{everythingIn("a", "get")}, namespace: "a",
			terms:   []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Secret", Name: "x"}, {Version: "v1", Kind: "ConfigMap"}},
			bound:   `{"a":["secrets/x"]}`,
			refused: []string{`spec.resourceSelectors[1]: user "alice" cannot list or place configmaps in namespace "a"`},
		},
		"placing everything is enough for any selector": {
			rights: rbac{everythingIn("a", "place"), {verbs: []string{"place"}, groups: []string{""}, resources: []string{"namespaces"}}},
			terms:  []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")},
			bound:  `{"":["namespaces/a"],"a":["*"]}`,
		},
		"what a namespace holds is named": {
			rights: rbac{{verbs: []string{"get"}, groups: []string{""}, resources: []string{"namespaces", "configmaps"}}},
			terms:  []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")},
			bound:  `{"":["namespaces/a"],"a":["configmaps"]}`,
			refused: []string{
				`spec.resourceSelectors[0]: user "alice" cannot get or place secrets, widgets.example.org in namespace "a", which it holds`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world{{kinds[4], "a", "x"}: true, {kinds[8], "a", "x"}: true, {kinds[5], "b", "x"}: true}
			bound, refusals, err := w.hub().Placement(context.Background(), checkerOf(tt.rights), tt.namespace, selectingBy(tt.terms))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fmt.Sprintf(`{"author":"alice","may":%s}`, tt.bound), bound.String()); diff != "" {
				t.Errorf("bound (-want +got):\n%s", diff)
			}
			var got []string
			for _, refusal := range refusals {
				text, _, _ := strings.Cut(refusal.Detail, " on the hub")
				got = append(got, refusal.Field+": "+text)
			}
			if diff := cmp.Diff(tt.refused, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// Permission to read an object is enough to place it, but not to let a member's status overwrite
// the hub's.
func TestPlacement_StatusMirrorRequiresPermissionToWriteStatus(t *testing.T) {
	reads := grant{verbs: []string{"get", "list"}, groups: []string{anything}, resources: []string{anything}}
	writes := func(namespace string, resources ...string) grant {
		return grant{namespace: namespace, verbs: []string{"update"}, groups: []string{anything}, resources: resources}
	}
	deployment := []placementv1beta1.ResourceSelectorTerm{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "x"}}
	mirror := placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToOriginalResource}
	toWork := placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToWork}
	tests := map[string]struct {
		rights    rbac
		namespace string
		terms     []placementv1beta1.ResourceSelectorTerm
		back      *placementv1beta1.ReportBackStrategy
		want      []string
	}{
		"who only reads": {rbac{reads}, "a", deployment, &mirror, []string{`update deployments.apps/status "x" in namespace "a"`}},
		"who writes the object, and not its status": {rbac{reads, writes("a", "deployments")}, "a", deployment, &mirror,
			[]string{`update deployments.apps/status "x" in namespace "a"`}},
		"who writes statuses elsewhere": {rbac{reads, writes("b", "deployments/status")}, "a", deployment, &mirror,
			[]string{`update deployments.apps/status "x" in namespace "a"`}},
		"who writes the status":                          {rbac{reads, writes("a", "deployments/status")}, "a", deployment, &mirror, nil},
		"who has them reported in Works":                 {rbac{reads}, "a", deployment, &toWork, nil},
		"who has none reported":                          {rbac{reads}, "a", deployment, &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackDisabled}, nil},
		"who leaves it open":                             {rbac{reads}, "a", deployment, nil, nil},
		"who may do everything":                          {rbac{everythingIn("", anything)}, "", []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")}, &mirror, nil},
		"who writes the statuses of all in a namespace":  {rbac{reads, writes("", "namespaces/status"), writes("a", anything)}, "", []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")}, &mirror, nil},
		"who only reads a namespace and all that it has": {rbac{reads}, "", []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")}, &mirror, []string{`update everything (*)/status in namespace "a"`, `update namespaces/status "a"`}},
		"who only reads namespaces that labels choose": {rbac{reads, writes("a", anything)}, "", []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace"}}, &mirror,
			[]string{`update everything (*)/status in all namespaces`, `update namespaces/status`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := selectingBy(tt.terms)
			spec.Strategy.ReportBackStrategy = tt.back
			_, refusals, err := world{}.hub().Placement(context.Background(), checkerOf(tt.rights), tt.namespace, spec)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, refusal := range refusals {
				text, _, _ := strings.Cut(refusal.Detail, " on the hub")
				got = append(got, strings.TrimPrefix(text, `user "alice" cannot `))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// No user can make the gateway create unlimited reviews.
func TestAsker_LimitsReviews(t *testing.T) {
	questions := make([]Question, maxReviews+1)
	for i := range questions {
		questions[i] = needs(field.NewPath("data"), Access{Verb: "create", Resource: "configmaps", Name: fmt.Sprint(i)})
	}
	if _, err := checkerOf(nil).May(context.Background(), questions...); err == nil || !strings.Contains(err.Error(), "write several smaller objects") {
		t.Errorf("got %v, want a refusal that says what to do", err)
	}
	asked := make(chan struct{}, 10)
	checker := NewChecker(authenticationv1.UserInfo{}, hub{asked: asked})
	for range 3 {
		if _, err := checker.May(context.Background(), questions[0], questions[0], questions[1]); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("took %d reviews for two questions", len(asked))
	}
}

// It must never count as allowed.
func TestPlacement_FailedReviewIsAnError(t *testing.T) {
	broken := errors.New("no answer")
	unknown := Hub{Resources: func(schema.GroupVersionKind) (Resource, bool, error) { return Resource{}, false, broken }, Contents: world{}}
	if _, _, err := unknown.Placement(context.Background(), checkerOf(rbac{everythingIn("", anything)}), "", selectingBy([]placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")})); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the lookup", err)
	}
	if selection.ParseBound("no JSON").Covers(schema.GroupResource{Resource: "secrets"}, "a", "x") {
		t.Error("an answer that cannot be read covers something")
	}
}

// Also while an object is no chart yet.
func TestOverride_ChangingChartValuesRequiresPermissionToRender(t *testing.T) {
	configMap := placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "x"}
	secret := placementv1beta1.ResourceSelector{Version: "v1", Kind: "Secret", Name: "x"}
	deployment := placementv1beta1.ResourceSelector{Group: "apps", Version: "v1", Kind: "Deployment", Name: "x"}
	const renderConfigMap, renderSecret = `render configmaps "x" in namespace "a"`, `render secrets "x" in namespace "a"`
	tests := map[string]struct {
		selector placementv1beta1.ResourceSelector
		paths    []string
		want     []string
	}{
		"the values":                     {configMap, []string{"/data/values.yaml"}, []string{renderConfigMap}},
		"those of a Secret":              {secret, []string{"/data/values.yaml"}, []string{renderSecret}},
		"all keys":                       {configMap, []string{"/data"}, []string{renderConfigMap}},
		"the values among binary keys":   {configMap, []string{"/binaryData/values.yaml"}, []string{renderConfigMap}},
		"all binary keys":                {configMap, []string{"/binaryData"}, []string{renderConfigMap}},
		"the values, and something else": {secret, []string{"/metadata/labels/a", "/data/values.yaml"}, []string{renderSecret}},
		"another key":                    {configMap, []string{"/data/a", "/data/values.yml", "/metadata/annotations/values.yaml"}, nil},
		"what describes no chart":        {deployment, []string{"/data/values.yaml", "/data"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rule := placementv1beta1.OverrideRule{}
			for _, path := range tt.paths {
				rule.JSONPatchOverrides = append(rule.JSONPatchOverrides, placementv1beta1.JSONPatchOverride{Operator: placementv1beta1.JSONPatchAdd, Path: path})
			}
			policy := &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{OverrideType: placementv1beta1.DeleteOverrideType}, rule}}
			questions, err := OfOverride("a", &placementv1beta1.ResourceOverrideSpec{Policy: policy, ResourceSelectors: []placementv1beta1.ResourceSelector{tt.selector}}, world{}.Resources)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, question := range questions[1:] {
				got = append(got, question.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("beside update (-want +got):\n%s", diff)
			}
		})
	}
	spec := &placementv1beta1.ClusterResourceOverrideSpec{
		ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{namespaceNamed("a")},
		Policy: &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{Operator: placementv1beta1.JSONPatchRemove, Path: "/data/values.yaml"}},
		}}},
	}
	questions, err := OfClusterOverride(spec, world{}.Resources)
	if err != nil {
		t.Fatal(err)
	}
	last := []string{questions[len(questions)-2].String(), questions[len(questions)-1].String()}
	if diff := cmp.Diff([]string{`render configmaps in namespace "a"`, `render secrets in namespace "a"`}, last); diff != "" {
		t.Errorf("for all of a namespace (-want +got):\n%s", diff)
	}
}
