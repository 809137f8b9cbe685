// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Path is where the handler is registered.
const Path = "/convert"

// maxReviewBytes is more than any review that an API server sends: it converts each stored or written
// object, of at most 3 MiB, on its own.
const maxReviewBytes = 8 << 20

// Handler answers ConversionReviews.
func Handler() http.Handler { return http.MaxBytesHandler(http.HandlerFunc(serve), maxReviewBytes) }

func serve(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	err := json.NewDecoder(r.Body).Decode(&review)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("a review has at most %d bytes", maxReviewBytes), http.StatusRequestEntityTooLarge)
		return
	case err != nil || review.Request == nil:
		http.Error(w, "the body is no ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = respond(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // The peer may have disconnected.
}

// respond converts all objects, or none.
func respond(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range request.Objects {
		converted, err := convert(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects, response.Result = nil, metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

func convert(raw []byte, apiVersion string) ([]byte, error) {
	object, err := read(raw)
	if err != nil {
		return nil, err
	}
	if err := Convert(object, apiVersion); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// read keeps integers, which encoding/json would make inexact.
func read(raw []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return object, nil
}
