// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

// seeds are enough data for filled objects, so that plain tests check the round trips too.
func seeds(f *testing.F) {
	f.Add([]byte{})
	for seed := range byte(50) {
		data := make([]byte, 4096)
		state := uint32(seed) + 1
		for i := range data {
			state = state*1664525 + 1013904223
			data[i] = byte(state >> 24)
		}
		f.Add(data)
	}
}

func filler(data []byte) *randfill.Filler {
	return randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).Funcs(
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.NewTime(time.Unix(1, 0).UTC()) },
		func(s *clusterv1alpha1.RolloutStrategy, _ randfill.Continue) { s.Type = "All" },
		func(r *addonv1alpha1.ConfigReferent, c randfill.Continue) {
			r.Namespace, r.Name = c.String(8), "n"+c.String(8)
		},
		func(r *addonv1alpha1.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(r)
			if c.Bool() {
				r.SignerName = certificatesv1.KubeAPIServerClientSignerName
			}
		},
	)
}

// metadata has names, and annotations and labels that the conversion does not know.
func metadata(filler *randfill.Filler) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: "name", UID: "uid", Generation: 3}
	filler.Fill(&m.Annotations)
	filler.Fill(&m.Labels)
	return m
}

// FuzzStoredObjects: an object that a client reads in v1beta1 and writes as it is stays as it was.
func FuzzStoredObjects(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		filler := filler(data)
		managed := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metadata(filler)}
		filler.Fill(&managed.Spec)
		filler.Fill(&managed.Status)
		managed.Spec.InstallNamespace = "agents"
		managed.TypeMeta = metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"}
		switch managed.Status.KubeClientDriver {
		case "", addonv1alpha1.DriverToken:
		default:
			managed.Status.KubeClientDriver = addonv1alpha1.DriverCSR
		}
		staysInStored(t, managed, &addonv1beta1.ManagedClusterAddOn{}, &addonv1alpha1.ManagedClusterAddOn{})

		management := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metadata(filler)}
		filler.Fill(&management.Spec)
		filler.Fill(&management.Status)
		management.TypeMeta = metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn"}
		staysInStored(t, management, &addonv1beta1.ClusterManagementAddOn{}, &addonv1alpha1.ClusterManagementAddOn{})
	})
}

func staysInStored(t *testing.T, stored, beta, back any) {
	t.Helper()
	object := content(t, stored)
	if err := Convert(object, addonv1beta1.GroupVersion.String()); err != nil {
		t.Fatalf("a stored object cannot be read: %v", err)
	}
	decode(t, object, beta)
	object = content(t, beta)
	if err := Convert(object, addonv1alpha1.GroupVersion.String()); err != nil {
		t.Fatalf("an object that was read cannot be written: %v", err)
	}
	decode(t, object, back)
	if !equality.Semantic.DeepEqual(stored, back) {
		t.Errorf("the object changed (-stored +back):\n%s", cmp.Diff(stored, back))
	}
}

// FuzzWrittenObjects: an object that a client writes in v1beta1 is read as it was written.
func FuzzWrittenObjects(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		filler := filler(data).Funcs(fillRegistration, func(r *addonv1beta1.ConfigReference, c randfill.Continue) {
			c.FillNoCustom(r)
			r.DesiredConfig = &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "desired", Namespace: c.String(4)}}
		})
		managed := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metadata(filler)}
		filler.Fill(&managed.Spec)
		filler.Fill(&managed.Status)
		managed.TypeMeta = metav1.TypeMeta{APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn"}
		if len(managed.Labels) > 0 {
			metav1.SetMetaDataAnnotation(&managed.ObjectMeta, addonv1beta1.InstallNamespaceAnnotation, "agents")
		}
		staysInBeta(t, managed, &addonv1alpha1.ManagedClusterAddOn{}, &addonv1beta1.ManagedClusterAddOn{})

		management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metadata(filler)}
		filler.Fill(&management.Spec)
		filler.Fill(&management.Status)
		management.TypeMeta = metav1.TypeMeta{APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ClusterManagementAddOn"}
		staysInBeta(t, management, &addonv1alpha1.ClusterManagementAddOn{}, &addonv1beta1.ClusterManagementAddOn{})
	})
}

// fillRegistration makes a consistent registration. All of an add-on have the same driver.
func fillRegistration(r *addonv1beta1.RegistrationConfig, c randfill.Continue) {
	*r = addonv1beta1.RegistrationConfig{}
	if c.Bool() {
		r.Type, r.KubeClient = addonv1beta1.KubeClient, &addonv1beta1.KubeClientConfig{Driver: addonv1alpha1.DriverCSR}
		c.Fill(&r.KubeClient.Subject)
		return
	}
	r.Type, r.CustomSigner = addonv1beta1.CustomSigner, &addonv1beta1.CustomSignerConfig{SignerName: "s" + c.String(8)}
	c.Fill(&r.CustomSigner.Subject)
}

func staysInBeta(t *testing.T, written, stored, back any) {
	t.Helper()
	object := content(t, written)
	if err := Convert(object, addonv1alpha1.GroupVersion.String()); err != nil {
		t.Fatalf("the object cannot be written: %v", err)
	}
	decode(t, object, stored)
	object = content(t, stored)
	if err := Convert(object, addonv1beta1.GroupVersion.String()); err != nil {
		t.Fatalf("a stored object cannot be read: %v", err)
	}
	decode(t, object, back)
	if !equality.Semantic.DeepEqual(written, back) {
		t.Errorf("the object changed (-written +back):\n%s", cmp.Diff(written, back))
	}
}

// FuzzHostileObjects: whatever is stored can be read, since an unreadable object would hide all others
// of its kind; and nothing that a client writes stops a replica.
func FuzzHostileObjects(f *testing.F) {
	f.Add([]byte(`{"kind":"ManagedClusterAddOn","spec":null,"status":{"registrations":[null,1,{"signerName":{}},{"signerName":"kubernetes.io/kube-apiserver-client","subject":[]}]}}`))
	f.Add([]byte(`{"kind":"ManagedClusterAddOn","metadata":{"annotations":{"fleetgate.io/v1alpha1-fields":"{\"organizationUnits\":{\"-1\":[\"a\"]}}"}},"status":{"registrations":[{"type":"kubeClient"}],"configReferences":[{}]}}`))
	f.Add([]byte(`{"kind":"ClusterManagementAddOn","metadata":[],"spec":{"supportedConfigs":[{"defaultConfig":1},{"defaultConfig":{}}],"defaultConfigs":{},"addOnConfiguration":{"lastObservedGeneration":1.5}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, from := range []string{addonv1alpha1.GroupVersion.String(), addonv1beta1.GroupVersion.String()} {
			var object map[string]any
			if utiljson.Unmarshal(raw, &object) != nil || object == nil {
				return
			}
			if kind := text(object, "kind"); kind != "ManagedClusterAddOn" && kind != "ClusterManagementAddOn" {
				return
			}
			object["apiVersion"] = from
			if err := Convert(object, addonv1alpha1.GroupVersion.String()); err != nil {
				continue // It is refused when it is written.
			}
			if err := Convert(object, addonv1beta1.GroupVersion.String()); err != nil {
				t.Fatalf("a stored object cannot be read: %v", err)
			}
			if size(child(child(object, "metadata"), "annotations")) > 1<<18 && size(child(child(object, "metadata"), "annotations")) > len(raw) {
				t.Error("the annotations exceed the limit of API servers")
			}
		}
	})
}

func content(t *testing.T, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// decode fails for a field that the version does not have.
func decode(t *testing.T, object map[string]any, into any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}
