// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/controller/leader"
)

func TestTermCache_StopsWithLeaseWhileHubHangs(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hub.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	holding, lose := context.WithCancel(t.Context())
	settings := whileHolding(holding, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	mgr, err := ctrl.NewManager(&rest.Config{Host: hub.URL}, settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.GetCache().IndexField(holding, &corev1.ConfigMap{}, "name", func(client.Object) []string { return nil }); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(holding) }()
	time.Sleep(100 * time.Millisecond)
	lose()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(leader.Grace + 5*time.Second):
		t.Error("The manager still waits for the hub's list.")
	}
}
