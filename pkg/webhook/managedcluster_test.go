// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// TestAClusterWithAQuantityOfABillionDigitsIsCompletedAtOnce: an API server has whoever
// completes objects read them before it looks whether they fit their schema.
func TestAClusterWithAQuantityOfABillionDigitsIsCompletedAtOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handlers := ClusterHandlers(Hub{Scheme: scheme}, clock.RealClock{})
	code, answer := ask(t, handlers, pathMutateCluster, review(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",
		"metadata":{"name":"c"},"spec":{"taints":[{"key":"k","effect":"NoSelect"}]},"status":{"capacity":{"cpu":"1e-99999999"}}}`))
	if code != http.StatusOK || answer == nil || !answer.Response.Allowed {
		t.Fatalf("%d, %+v", code, answer)
	}
	for _, want := range []string{"/spec/taints/0/timeAdded", "leaseDurationSeconds", clusterv1.ClusterSetLabel[strings.LastIndex(clusterv1.ClusterSetLabel, "/")+1:]} {
		if !strings.Contains(string(answer.Response.Patch), want) {
			t.Errorf("the patch is %s, without %s", answer.Response.Patch, want)
		}
	}
}
