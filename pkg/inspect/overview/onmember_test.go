// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
)

func TestFollow_ReadsPodsOfJob(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "import-x1"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = &corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}}
		if strings.HasSuffix(r.URL.Path, "/namespaces/shop/pods") && r.URL.Query().Get("labelSelector") == "batch.kubernetes.io/job-name=import" {
			answer = &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{pod}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	a := &explain.Problem{Object: "Job shop/import", Member: "m", Live: true, Of: &placementv1beta1.ResourceIdentifier{Group: "batch", Version: "v1", Kind: "Job", Namespace: "shop", Name: "import"}}
	(&Hub{Config: &rest.Config{Host: server.URL}}).Follow(t.Context(), a)
	if said := strings.Join(a.Details, "\n"); !strings.Contains(said, "Pod import-x1: container main: ImagePullBackOff: no such image") {
		t.Errorf("it says %q", said)
	}
}
