// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func review(objects string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"addon.open-cluster-management.io/v1alpha1","objects":[%s]}}`, objects)
}

func ask(t *testing.T, body string) (int, apiextensionsv1.ConversionReview) {
	t.Helper()
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(body)))
	var got apiextensionsv1.ConversionReview
	if recorder.Code == http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
	}
	return recorder.Code, got
}

func TestHandler_ConvertsAllObjectsOrNone(t *testing.T) {
	const good = `{"apiVersion":"addon.open-cluster-management.io/v1beta1","kind":"ClusterManagementAddOn","metadata":{"name":"a"},"spec":{}}`
	code, got := ask(t, review(good+","+good))
	if code != http.StatusOK || got.Kind != "ConversionReview" || got.Response == nil || got.Response.UID != "1" || got.Response.Result.Status != metav1.StatusSuccess || len(got.Response.ConvertedObjects) != 2 {
		t.Fatalf("got %d: %+v", code, got)
	}
	if want := `"apiVersion":"addon.open-cluster-management.io/v1alpha1"`; !strings.Contains(string(got.Response.ConvertedObjects[1].Raw), want) {
		t.Errorf("got %s, want %s in it", got.Response.ConvertedObjects[1].Raw, want)
	}
	for _, bad := range []string{`{"kind":"ClusterManagementAddOn"}`, `[]`, `null`, `1`} {
		code, got := ask(t, review(good+","+bad))
		if code != http.StatusOK || got.Response.Result.Status != metav1.StatusFailure || got.Response.Result.Message == "" || len(got.Response.ConvertedObjects) != 0 {
			t.Errorf("%s: got %d: %+v", bad, code, got.Response)
		}
	}
}

func TestHandler_RefusesOtherBodies(t *testing.T) {
	for body, want := range map[string]int{
		"":   http.StatusBadRequest,
		"{}": http.StatusBadRequest,
		`{"request":` + strings.Repeat("[", 1<<20):     http.StatusBadRequest,
		review(`"` + strings.Repeat("x", 9<<20) + `"`): http.StatusRequestEntityTooLarge,
	} {
		if code, _ := ask(t, body); code != want {
			t.Errorf("%.40q: got %d, want %d", body, code, want)
		}
	}
}

// FuzzReviews: no review stops a replica.
func FuzzReviews(f *testing.F) {
	f.Add([]byte(review(`{"kind":"ManagedClusterAddOn"}`)))
	f.Fuzz(func(t *testing.T, body []byte) { ask(t, string(body)) })
}
