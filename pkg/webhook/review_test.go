// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// testHandlers are those of a hub on which nobody may anything.
func testHandlers(tb testing.TB) map[string]http.Handler { return handlersWhere(tb, false) }

// handlersWhere are those of a hub on which everybody may everything, or nothing.
func handlersWhere(tb testing.TB, allowed bool) map[string]http.Handler {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if received, ok := object.(*authorizationv1.SubjectAccessReview); ok {
				received.Status.Allowed = allowed
			}
			return nil
		},
	}).Build()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return Handlers(Hub{Scheme: scheme, Live: hub, Reviews: hub, Mapper: mapper, Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}})
}

// ask posts a body to a path and returns the answer's code and, if it is one, the
// review.
func ask(tb testing.TB, handlers map[string]http.Handler, path string, body []byte) (int, *admissionv1.AdmissionReview) {
	tb.Helper()
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handlers[path].ServeHTTP(recorder, request)
	review := &admissionv1.AdmissionReview{}
	if json.Unmarshal(recorder.Body.Bytes(), review) != nil || review.Response == nil {
		return recorder.Code, nil
	}
	return recorder.Code, review
}

func review(object string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","userInfo":{"username":"alice"},"object":%s}}`, object)
}

func TestHostileReviewsAreRefused(t *testing.T) {
	handlers := testHandlers(t)
	bodies := map[string][]byte{
		"nothing":                  nil,
		"no review":                []byte(`[]`),
		"no object":                review(`null`),
		"an object of other types": review(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourcePlacement","metadata":{"name":"a"},"spec":[1]}`),
		"a text as metadata":       review(`{"metadata":"x","data":"y","spec":"z"}`),
		"very deep":                review(strings.Repeat(`{"spec":`, 50_000) + `1` + strings.Repeat(`}`, 50_000)),
		"very large":               review(`{"spec":"` + strings.Repeat("x", maxReviewBytes) + `"}`),
		"broken off":               review(`{"spec":{`),
	}
	for name, body := range bodies {
		for path := range handlers {
			t.Run(name+" at "+path, func(t *testing.T) {
				code, got := ask(t, handlers, path, body)
				if got != nil && got.Response.Allowed {
					t.Errorf("allowed, with code %d", code)
				}
			})
		}
	}
}

func TestAnEnvelopeOfWhoMayNothingIsRefusedWithItsPaths(t *testing.T) {
	object := `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"e","namespace":"shop"},"data":{` +
		`"one":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"shop"}},` +
		`"two":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}}}`
	_, got := ask(t, testHandlers(t), pathOf("validate", "ResourceEnvelope"), review(object))
	if got == nil || got.Response.Allowed || got.Response.Result.Code != http.StatusUnprocessableEntity {
		t.Fatalf("got %+v, want 422", got)
	}
	var fields []string
	for _, cause := range got.Response.Result.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if want := "data[one] data[two]"; strings.Join(fields, " ") != want {
		t.Errorf("causes are %v, want %s", fields, want)
	}
	if said := strings.Join(got.Response.Warnings, "\n"); !strings.HasPrefix(said, "data[two].metadata.namespace: ") {
		t.Errorf("the author is warned of %q, want what does not fit", said)
	}
	if got.Response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("reason %q, want Invalid", got.Response.Result.Reason)
	}
}

// FuzzReview: no object makes a handler panic, and none that it cannot read passes.
func FuzzReview(f *testing.F) {
	for _, object := range []string{
		`{}`, `null`, `{"spec":{"resourceSelectors":[{"kind":"Namespace","version":"v1","name":"a"}]}}`,
		`{"spec":{"policy":{"overrideRules":[{"jsonPatchOverrides":[{"op":"remove","path":"/","value":{}}]}]}}}`,
		`{"data":{"a":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}}`,
		`{"spec":{"minAvailable":"x","maxUnavailable":9223372036854775807}}`,
		`{"spec":{"policy":{"affinity":{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[{"propertySelector":{"matchExpressions":[{"name":"a","operator":"Gt","values":["1e999999999"]}]}}]}}}}}}`,
	} {
		f.Add([]byte(object))
	}
	handlers := testHandlers(f)
	f.Fuzz(func(t *testing.T, object []byte) {
		for path := range handlers {
			if _, got := ask(t, handlers, path, review(string(object))); got != nil && got.Response.Allowed && !json.Valid(object) {
				t.Errorf("%s allows what is no JSON", path)
			}
		}
	})
}
