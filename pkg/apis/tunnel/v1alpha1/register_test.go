// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// An API server decodes the options of a subresource with the parameter codec of its scheme.
func TestParameterCodec_DecodesProxyOptions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var got TunnelProxyOptions
	query := url.Values{"path": {"/api/v1/pods"}, "impersonate": {"true"}}
	if err := runtime.NewParameterCodec(scheme).DecodeParameters(query, GroupVersion, &got); err != nil {
		t.Fatal(err)
	}
	if want := (TunnelProxyOptions{Path: "/api/v1/pods"}); got != want {
		t.Errorf("The options are %+v, want %+v", got, want)
	}
}

func TestAddToScheme_RegistersListOptions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if !scheme.Recognizes(GroupVersion.WithKind("ListOptions")) {
		t.Error("A server of this group could not read the options of a list")
	}
	if _, _, err := scheme.ObjectKinds(&metav1.WatchEvent{}); err != nil {
		t.Errorf("A server of this group could not write watch events: %v", err)
	}
}
