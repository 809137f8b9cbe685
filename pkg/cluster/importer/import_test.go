// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestNeedsAgent(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*registrationv1alpha1.Cluster)
		want   bool
	}{
		"installed":               {func(*registrationv1alpha1.Cluster) {}, false},
		"never installed":         {func(c *registrationv1alpha1.Cluster) { c.Status.AgentDeployedGeneration = nil }, true},
		"somebody wants it again": {func(c *registrationv1alpha1.Cluster) { c.Spec.RedeployAgentGeneration = 2 }, true},
		"the hub has another URL": {func(c *registrationv1alpha1.Cluster) { c.Status.APIServerURL = "https://old" }, true},
		"the hub has another CA":  {func(c *registrationv1alpha1.Cluster) { c.Status.APIServerCAHash = "old" }, true},
		"no kubeconfig":           {func(c *registrationv1alpha1.Cluster) { *c = registrationv1alpha1.Cluster{} }, false},
		"on its way out, never installed": {func(c *registrationv1alpha1.Cluster) {
			c.Status.AgentDeployedGeneration, c.DeletionTimestamp = nil, &now
		}, false},
		"another manager's, not installed": {func(c *registrationv1alpha1.Cluster) {
			c.Status.AgentDeployedGeneration, c.Labels = nil, map[string]string{registrationv1alpha1.LabelClusterManagement: "x"}
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &registrationv1alpha1.Cluster{}
			cluster.Spec.KubeConfigSecret = "kubeconfig"
			cluster.Spec.RedeployAgentGeneration = 1
			cluster.Status.AgentDeployedGeneration = ptr.To[int64](1)
			cluster.Status.APIServerURL, cluster.Status.APIServerCAHash = "https://hub", hashOf([]byte("ca"))
			tc.change(cluster)
			if got := needsAgent(cluster, "https://hub", hashOf([]byte("ca"))); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestManifestsFollowTheCluster(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Spec.ClientID, cluster.Spec.AgentNamespace, cluster.Spec.PrivateRepoURL = "id", "agents", "registry.local/"
	cluster.Spec.HostNetwork = ptr.To(true)
	cluster.Spec.AgentTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	cluster.Spec.AgentPullSecrets = &[]corev1.LocalObjectReference{{Name: "pull"}}
	objects, err := manifests(cluster, registrationv1alpha1.AgentValues{Token: "token"}, "fleetgate/agent:v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if obj.GetObjectKind().GroupVersionKind().Kind == "" {
			t.Errorf("%T says not what it is", obj)
		}
		switch obj := obj.(type) {
		case *corev1.Secret:
			values := string(obj.Data[registrationv1alpha1.RegistrationValuesKey])
			if obj.Namespace != "agents" || !strings.Contains(values, "clientID: id\n") || !strings.Contains(values, "token: token\n") {
				t.Errorf("Secret in %q with values\n%s", obj.Namespace, values)
			}
		case *appsv1.Deployment:
			pod := obj.Spec.Template.Spec
			if pod.Containers[0].Image != "registry.local/fleetgate/agent:v1" || !pod.HostNetwork || len(pod.Tolerations) != 1 || len(pod.ImagePullSecrets) != 1 {
				t.Errorf("pod: %+v", pod)
			}
		}
	}
}

func TestExplainNamesTheRemedy(t *testing.T) {
	resource := schema.GroupResource{Resource: "namespaces"}
	refused := &url.Error{Op: "Patch", URL: "https://m", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	tests := map[string]struct {
		err          error
		reason, part string
	}{
		"nobody answers":       {refused, ReasonUnreachable, "ClusterRegistrationToken"},
		"a wrong credential":   {apierrors.NewUnauthorized("no"), ReasonKubeConfigRefused, "Secret"},
		"a right that lacks":   {apierrors.NewForbidden(resource, "x", errors.New("no")), ReasonApplyFailed, "Namespace"},
		"a server in disorder": {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", resource, "x", "", 0, true), ReasonApplyFailed, "Namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{TypeMeta: kind("v1", "Namespace")}
			got := explain(namespace, "https://m", tc.err)
			if got.reason != tc.reason || !strings.Contains(got.message, tc.part) || got.retry != retryLater {
				t.Errorf("got %+v, want %s with %q", got, tc.reason, tc.part)
			}
		})
	}
}

func TestAFailureKeepsWhatWasInstalled(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Spec.RedeployAgentGeneration = 3
	now := time.Now()
	cluster.Status = desiredStatus(cluster, &outcome{reason: ReasonImported}, "https://hub", "hash", now)
	if *cluster.Status.AgentDeployedGeneration != 3 || cluster.Status.APIServerURL != "https://hub" {
		t.Errorf("not recorded: %+v", cluster.Status)
	}
	cluster.Status = desiredStatus(cluster, failed(ReasonUnreachable, "no"), "https://new", "hash", now)
	if cluster.Status.APIServerURL != "https://hub" || cluster.Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Errorf("after a failure: %+v", cluster.Status)
	}
}
