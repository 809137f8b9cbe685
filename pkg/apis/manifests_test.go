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
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
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
		addonv1alpha1.AddToScheme(scheme),
	); err != nil {
		t.Fatalf("Adding the groups to one scheme: %v", err)
	}
	return scheme
}

// Users' manifests must have the same meaning with fleetgate's types: each fixture is decoded
// strictly, so that no field is unknown, and must not change in a round trip.
func TestTypes_KeepManifestsUnchanged(t *testing.T) {
	scheme := newScheme(t)
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("Finding fixtures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) { survives(t, scheme, path) })
	}
}

// survives fails if the types do not know a field of the object in a file, or lose one.
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
		t.Errorf("The object changed in the round trip (-in +out):\n%s", diff)
	}
}

// Objects that previous versions of gateway and agents stored on hubs and members must be read by
// this version: no field is unknown, and the objects are written back unchanged. (Durations are in
// Go's canonical form there: any other form of the same duration is rewritten.) A release adds the
// objects that it stores.
func TestTypes_KeepStoredObjectsUnchanged(t *testing.T) {
	scheme := newScheme(t)
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/stored/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("Finding stored objects: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(path, "testdata/stored/"), func(t *testing.T) { survives(t, scheme, path) })
	}
}

// storedByOthers are kinds that gateway and agents do not write: hubs that Azure manages have their
// own objects, and users create claims on a cluster, and configurations and templates of add-ons.
var storedByOthers = map[schema.GroupKind]bool{
	{Group: "fleet.azure.com", Kind: "MemberCluster"}:                   true,
	{Group: "fleet.azure.com", Kind: "InternalMemberCluster"}:           true,
	{Group: "cluster.open-cluster-management.io", Kind: "ClusterClaim"}: true,
	{Group: addonv1alpha1.GroupName, Kind: "AddOnDeploymentConfig"}:     true,
	{Group: addonv1alpha1.GroupName, Kind: "AddOnTemplate"}:             true,
}

func TestStoredKinds_HaveAFixture(t *testing.T) {
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
			t.Errorf("%s has no stored object: add one, as a hub or member stores it, to testdata/stored/<version>", kind)
		}
	}
}

func TestKinds_HaveAFixture(t *testing.T) {
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
