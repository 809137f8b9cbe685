// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kinds returns an empty object of every kind of the package.
func kinds(t *testing.T) map[string]runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	all := map[string]runtime.Object{}
	for kind, typ := range scheme.KnownTypes(GroupVersion) {
		if typ.PkgPath() != reflect.TypeFor[Work]().PkgPath() {
			continue // Kubernetes' own, such as ListOptions
		}
		object, err := scheme.New(GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(GroupVersion.WithKind(kind))
		all[kind] = object
	}
	return all
}

func TestJSON_KeepsEveryField(t *testing.T) {
	for kind, object := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			fillAll(object)

			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			decoded := reflect.New(reflect.TypeOf(object).Elem()).Interface()
			if err := json.Unmarshal(encoded, decoded); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object, decoded); diff != "" {
				t.Errorf("JSON lost something (-before +after):\n%s", diff)
			}
		})
	}
}

func TestUnstructured_KeepsEveryField(t *testing.T) {
	for kind, object := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			fillAll(object)

			unstructured, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			decoded := reflect.New(reflect.TypeOf(object).Elem()).Interface()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(unstructured, decoded); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object, decoded); diff != "" {
				t.Errorf("The conversion lost something (-before +after):\n%s", diff)
			}
		})
	}
}

func TestDeepCopy_SharesNoMemory(t *testing.T) {
	for kind, object := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			fillAll(object)
			before, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}

			fillWith(reflect.ValueOf(object.DeepCopyObject()).Elem(), &filler{n: 1000})

			after, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("A change of the copy changed the original (-before +after):\n%s", diff)
			}
		})
	}
}

func TestJSON_OmitsEmptyStatusAndStrategy(t *testing.T) {
	for kind, object := range kinds(t) {
		if strings.HasSuffix(kind, "List") {
			continue
		}
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		if _, ok := fields["status"]; ok {
			t.Errorf("An empty %s writes a status: %s", kind, encoded)
		}
		if spec, ok := fields["spec"].(map[string]any); ok && spec["strategy"] != nil {
			t.Errorf("An empty %s writes a strategy: %s", kind, encoded)
		}
	}
}

func TestStrictDecoder_RejectsUnknownFields(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	const work = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"Work","spec":{"workload":{"manifest":[]}}}`
	if _, _, err := decoder.Decode([]byte(work), nil, nil); !runtime.IsStrictDecodingError(err) {
		t.Errorf("got %v, want a strict decoding error for the misspelled field", err)
	}
}

// fillAll sets every field of an object but its TypeMeta.
func fillAll(object runtime.Object) { fillWith(reflect.ValueOf(object).Elem(), &filler{}) }

// filler generates distinct values.
type filler struct{ n int }

func (f *filler) next() int {
	f.n++
	return f.n
}

// fillWith sets a value and everything below it: one entry per map, two per slice.
func fillWith(v reflect.Value, f *filler) {
	if fillKnown(v, f) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.next()))
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fillWith(v.Elem(), f)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fillWith(v.Index(i), f)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		value := reflect.New(v.Type().Elem()).Elem()
		fillWith(value, f)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("key-%d", f.next())).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			fillWith(v.Field(i), f)
		}
	default:
		if v.Kind() != reflect.Uint8 {
			panic(fmt.Sprintf("no value for %s", v.Type()))
		}
		v.SetUint(uint64(f.next() % 256))
	}
}

// fillKnown sets values whose JSON differs from their Go fields.
func fillKnown(v reflect.Value, f *filler) bool {
	switch x := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
	case *metav1.ObjectMeta:
		x.Name = fmt.Sprintf("name-%d", f.next())
	case *metav1.Time:
		*x = metav1.NewTime(time.Unix(int64(f.next()), 0))
	case *metav1.Duration:
		x.Duration = time.Duration(f.next()) * time.Second
	case *intstr.IntOrString:
		*x = intstr.FromString(fmt.Sprintf("%d%%", f.next()))
	case *runtime.RawExtension:
		*x = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Kind-%d"}`, f.next())}
	case *apiextensionsv1.JSON:
		*x = apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `%d`, f.next())}
	default:
		return false
	}
	return true
}
