// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// BenchmarkAdmission posts reviews to the webhooks over TLS, as the hub's API server
// does, on as many connections as there are cores. Its baseline is the same server
// with a handler that reads the review and its object, and allows.
func BenchmarkAdmission(b *testing.B) {
	placement := review(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourcePlacement","metadata":{"name":"web","annotations":{` +
		strconv.Quote(placementv1beta1.AuthorMayAnnotation) + `:` + strconv.Quote(all) + `}},"spec":{` +
		`"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"shop"}],` +
		`"policy":{"placementType":"PickN","numberOfClusters":3,"tolerations":[{"key":"a","operator":"Exists"}],"affinity":{"clusterAffinity":{` +
		`"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[{"labelSelector":{"matchLabels":{"stage":"prod"}},` +
		`"propertySelector":{"matchExpressions":[{"name":"kubernetes-fleet.io/node-count","operator":"Ge","values":["3"]}]}}]}}}}}}`)
	path := pathOf("validate", "ClusterResourcePlacement")
	b.Run("review/fleetgate", func(b *testing.B) { post(b, handlersWhere(b, true)[path], placement) })
	b.Run("review/decode", func(b *testing.B) { post(b, http.HandlerFunc(decodeAndAllow), placement) })
}

func post(b *testing.B, handler http.Handler, body []byte) {
	server := httptest.NewTLSServer(handler)
	b.Cleanup(server.Close)
	b.ReportAllocs()
	b.RunParallel(func(each *testing.PB) {
		for each.Next() {
			response, err := server.Client().Post(server.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			got := admissionv1.AdmissionReview{}
			err = json.NewDecoder(response.Body).Decode(&got)
			if err != nil || got.Response == nil || !got.Response.Allowed {
				b.Errorf("not allowed: %v: %v", err, got.Response)
			}
			_ = response.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reviews/s")
}

func decodeAndAllow(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var received admissionv1.AdmissionReview
	var placement placementv1beta1.ClusterResourcePlacement
	if err != nil || json.Unmarshal(body, &received) != nil || json.Unmarshal(received.Request.Object.Raw, &placement) != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: received.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: received.Request.UID, Allowed: true}})
}
