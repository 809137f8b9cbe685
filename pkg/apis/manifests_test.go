// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	ocmclusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	ocmclusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(
		admissionv1alpha1.AddToScheme(scheme),
		azurefleetv1alpha1.AddToScheme(scheme),
		authenticationv1beta1.AddToScheme(scheme),
		clusterv1beta1.AddToScheme(scheme),
		gatewayv1alpha1.AddToScheme(scheme),
		multiclusterv1alpha1.AddToScheme(scheme),
		registrationv1alpha1.AddToScheme(scheme),
		tunnelv1alpha1.AddToScheme(scheme),
		viewv1alpha1.AddToScheme(scheme),
		ocmclusterv1.AddToScheme(scheme),
		ocmclusterv1alpha1.AddToScheme(scheme),
		ocmclusterv1beta1.AddToScheme(scheme),
		ocmclusterv1beta2.AddToScheme(scheme),
		workv1.AddToScheme(scheme),
		workv1alpha1.AddToScheme(scheme),
	); err != nil {
		t.Fatalf("Adding the groups to one scheme: %v", err)
	}
	return scheme
}

// A manifest that users have must mean the same to our types: each fixture is
// read strictly, so that no field of it is unknown, and must come out as it
// went in.
func TestManifestsSurviveOurTypes(t *testing.T) {
	scheme := newScheme(t)
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("No fixtures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) { survives(t, scheme, path) })
	}
}

// survives fails if our types do not know a field of the object in a file, or lose one.
func survives(t *testing.T, scheme *runtime.Scheme, path string) {
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := values(t, in)
	object, err := scheme.New(schema.FromAPIVersionAndKind(before["apiVersion"].(string), before["kind"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(in, object); err != nil {
		t.Fatalf("Reading the fixture: %v", err)
	}
	out, err := yaml.Marshal(object.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, values(t, out)); diff != "" {
		t.Errorf("The object changed on its way (-in +out):\n%s", diff)
	}
}

// What a version stored on hubs and members, by its gateway and agents, is read by those of
// today: no field of it is unknown to our types, and it is written back as it was. (A duration is
// in Go's own form there: another text of a user for as long a time is written back in that.) A
// release adds what it stores.
func TestWhatVersionsOfBeforeHaveStoredIsReadAsItIs(t *testing.T) {
	scheme := newScheme(t)
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/stored/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("No stored objects: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(path, "testdata/stored/"), func(t *testing.T) { survives(t, scheme, path) })
	}
}

// storedByOthers are the kinds of which gateway and agents write nothing: hubs that Azure manages
// have their own, and claims about a cluster are made on it by whoever knows.
var storedByOthers = map[schema.GroupKind]bool{
	{Group: "fleet.azure.com", Kind: "MemberCluster"}:                   true,
	{Group: "fleet.azure.com", Kind: "InternalMemberCluster"}:           true,
	{Group: "cluster.open-cluster-management.io", Kind: "ClusterClaim"}: true,
}

func TestOfEveryKindThatIsStoredItIsKnownHowItWas(t *testing.T) {
	paths, err := filepath.Glob("testdata/stored/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[schema.GroupKind]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var of metav1.TypeMeta
		if err := yaml.Unmarshal(text, &of); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		known[of.GroupVersionKind().GroupKind()] = true
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if kind := (schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}); !known[kind] && !storedByOthers[kind] {
			t.Errorf("of %s it is not known: put one as a hub or member has it below testdata/stored/<version>", kind)
		}
	}
}

func TestEveryKindHasAFixture(t *testing.T) {
	for gvk := range newScheme(t).AllKnownTypes() {
		if !strings.Contains(gvk.Group, ".") || gvk.Version == runtime.APIVersionInternal ||
			strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		if _, err := os.Stat(filepath.Join("testdata", gvk.Kind+".yaml")); err != nil {
			t.Errorf("%s has no fixture: %v", gvk, err)
		}
	}
}

func values(t *testing.T, in []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal(in, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
