// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/charts"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
)

func TestNeedsAgent(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*registrationv1alpha1.Cluster)
		want   bool
	}{
		"installed":              {func(*registrationv1alpha1.Cluster) {}, false},
		"never installed":        {func(c *registrationv1alpha1.Cluster) { c.Status.AgentDeployedGeneration = nil }, true},
		"redeployment requested": {func(c *registrationv1alpha1.Cluster) { c.Spec.RedeployAgentGeneration = 2 }, true},
		"new URL of the hub":     {func(c *registrationv1alpha1.Cluster) { c.Status.APIServerURL = "https://old" }, true},
		"new CA of the hub":      {func(c *registrationv1alpha1.Cluster) { c.Status.APIServerCAHash = "old" }, true},
		"tolerations changed":    {func(c *registrationv1alpha1.Cluster) { c.Spec.AgentTolerations = defaults(t).Tolerations[:1] }, true},
		"host network changed":   {func(c *registrationv1alpha1.Cluster) { c.Spec.HostNetwork = ptr.To(true) }, true},
		"host network as before": {func(c *registrationv1alpha1.Cluster) { c.Spec.HostNetwork = ptr.To(false) }, false},
		"affinity changed":       {func(c *registrationv1alpha1.Cluster) { c.Spec.AgentAffinity = &corev1.Affinity{} }, true},
		"defaults changed": {func(c *registrationv1alpha1.Cluster) {
			AgentDefaults{HostNetwork: true}.record(&c.Status, c)
		}, true},
		"installed by an older gateway": {func(c *registrationv1alpha1.Cluster) {
			c.Status.AgentTolerationsHash, c.Spec.HostNetwork = "", ptr.To(true)
		}, false},
		"no kubeconfig": {func(c *registrationv1alpha1.Cluster) { *c = registrationv1alpha1.Cluster{} }, false},
		"being deleted, never installed": {func(c *registrationv1alpha1.Cluster) {
			c.Status.AgentDeployedGeneration, c.DeletionTimestamp = nil, &now
		}, false},
		"other manager, not installed": {func(c *registrationv1alpha1.Cluster) {
			c.Status.AgentDeployedGeneration, c.Labels = nil, map[string]string{registrationv1alpha1.LabelClusterManagement: "x"}
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &registrationv1alpha1.Cluster{}
			cluster.Spec.KubeConfigSecret = "kubeconfig"
			cluster.Spec.RedeployAgentGeneration = 1
			cluster.Status.AgentDeployedGeneration = ptr.To[int64](1)
			r := &Reconciler{HubURL: "https://hub", HubCA: []byte("ca"), Agents: defaults(t)}
			cluster.Status.APIServerURL, cluster.Status.APIServerCAHash = r.HubURL, hash.Of(r.HubCA)
			r.Agents.record(&cluster.Status, cluster)
			tc.change(cluster)
			if got := r.needsAgent(cluster); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A Cluster that got pull secrets, because the agent's image could not be pulled, kept its agent.
func TestNeedsAgent_AfterAnyChangeOfItsValues(t *testing.T) {
	for name, change := range map[string]func(*registrationv1alpha1.ClusterSpec){
		"agentEnvVars": func(s *registrationv1alpha1.ClusterSpec) {
			s.AgentEnvVars = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}}
		},
		"agentPullSecrets": func(s *registrationv1alpha1.ClusterSpec) {
			s.AgentPullSecrets = &[]corev1.LocalObjectReference{{Name: "registry"}}
		},
		"agentAffinity":    func(s *registrationv1alpha1.ClusterSpec) { s.AgentAffinity = &corev1.Affinity{} },
		"agentResources":   func(s *registrationv1alpha1.ClusterSpec) { s.AgentResources = &corev1.ResourceRequirements{} },
		"agentTolerations": func(s *registrationv1alpha1.ClusterSpec) { s.AgentTolerations = []corev1.Toleration{{Key: "a"}} },
		"hostNetwork":      func(s *registrationv1alpha1.ClusterSpec) { s.HostNetwork = ptr.To(true) },
		"privateRepoURL":   func(s *registrationv1alpha1.ClusterSpec) { s.PrivateRepoURL = "registry.example.org" },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &registrationv1alpha1.Cluster{Spec: registrationv1alpha1.ClusterSpec{KubeConfigSecret: "kubeconfig"}}
			cluster.Status.AgentDeployedGeneration = ptr.To[int64](0)
			r := &Reconciler{Image: "fleetgate/agent:v1", Agents: defaults(t)}
			cluster.Status.APIServerCAHash = hash.Of(r.HubCA)
			r.Agents.record(&cluster.Status, cluster)
			values := func() string {
				text, err := r.valuesFor(cluster, registrationv1alpha1.AgentValues{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			before := values()
			for _, step := range []func(){func() { change(&cluster.Spec) }, func() { cluster.Spec = registrationv1alpha1.ClusterSpec{KubeConfigSecret: "kubeconfig"} }} {
				step()
				if values() == before {
					t.Fatal("the change does not reach the chart")
				}
				if !r.needsAgent(cluster) {
					t.Error("the agent is not installed again")
				}
				r.Agents.record(&cluster.Status, cluster)
				before = values()
			}
		})
	}
}

func defaults(t *testing.T) AgentDefaults {
	t.Helper()
	var d AgentDefaults
	for _, taint := range DefaultTaints() {
		toleration, err := ParseToleration(taint)
		if err != nil {
			t.Fatal(err)
		}
		d.Tolerations = append(d.Tolerations, toleration)
	}
	return d
}

func TestParseToleration(t *testing.T) {
	tests := map[string]struct {
		taint string
		want  corev1.Toleration
	}{
		"key":               {"a.io/b", corev1.Toleration{Key: "a.io/b", Operator: corev1.TolerationOpExists}},
		"key and effect":    {"a:NoExecute", corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		"key and value":     {"a=b", corev1.Toleration{Key: "a", Operator: corev1.TolerationOpEqual, Value: "b"}},
		"all parts":         {"a=b:NoSchedule", corev1.Toleration{Key: "a", Operator: corev1.TolerationOpEqual, Value: "b", Effect: corev1.TaintEffectNoSchedule}},
		"nothing":           {"", corev1.Toleration{}},
		"unknown effect":    {"a:Never", corev1.Toleration{}},
		"effect missing":    {"a:", corev1.Toleration{}},
		"not a label value": {"a=b c", corev1.Toleration{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseToleration(tc.taint)
			if got != tc.want || (err != nil) != (tc.want.Key == "") {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// inProcess renders in the test process.
type inProcess struct{}

func (inProcess) Render(_ context.Context, r *helmchart.Release) (*helmchart.Rendered, error) {
	answer := engine.Render(r)
	if answer.Problem != nil {
		return nil, answer.Problem
	}
	return answer, nil
}

func agentChart(t *testing.T) Chart {
	t.Helper()
	packed, err := charts.Agent()
	if err != nil {
		t.Fatal(err)
	}
	return &helmchart.Bundled{Engine: inProcess{}, Package: packed}
}

// token has values as in a registration token's Secret.
var token = registrationv1alpha1.AgentValues{
	ClusterNamespace: "fleet-default", TokenName: "import-token-c", Token: "fleetgate-token", APIServerURL: "https://hub:6443",
	Internal: &registrationv1alpha1.InternalValues{SystemNamespace: "cattle-fleet-system"},
}

func TestManifests_FollowCluster(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Spec.ClientID, cluster.Spec.AgentNamespace, cluster.Spec.PrivateRepoURL = "id", "agents", "registry.local:5000/"
	cluster.Spec.HostNetwork = ptr.To(true)
	cluster.Spec.AgentTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	cluster.Spec.AgentPullSecrets = &[]corev1.LocalObjectReference{{Name: "pull"}}
	cluster.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}
	cluster.Spec.AgentResources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("99Mi")}}
	cluster.Spec.AgentAffinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	r := &Reconciler{Chart: agentChart(t), Image: "fleetgate/agent:v1", Agents: defaults(t)}
	objects, err := r.manifests(t.Context(), cluster, token)
	if err != nil {
		t.Fatal(err)
	}
	if first := objects[0]; first.GetKind() != "Namespace" || first.GetName() != "agents" {
		t.Errorf("first object is %s %q", first.GetKind(), first.GetName())
	}
	known := Mapper()
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := known.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Errorf("%s cannot be applied: %v", kind, err)
		} else if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (object.GetNamespace() != "") {
			t.Errorf("namespace of %s %q = %q", kind.Kind, object.GetName(), object.GetNamespace())
		}
		if manager, labelled := object.GetLabels()[managedByLabel]; labelled && manager != managedBy {
			t.Errorf("%s %q is managed by %s", kind.Kind, object.GetName(), manager)
		}
		for annotation := range object.GetAnnotations() {
			if strings.HasPrefix(annotation, hookAnnotations) {
				t.Errorf("%s %q has annotation %s", kind.Kind, object.GetName(), annotation)
			}
		}
	}
	var secret corev1.Secret
	find(t, objects, "Secret", &secret)
	var bootstrap enroll.Bootstrap
	if err := yaml.Unmarshal([]byte(secret.StringData[registrationv1alpha1.RegistrationValuesKey]), &bootstrap); err != nil {
		t.Fatal(err)
	}
	if secret.Namespace != "agents" || bootstrap.ClientID != "id" || bootstrap.Token != "fleetgate-token" || bootstrap.ClusterNamespace != "fleet-default" {
		t.Errorf("Secret in %q with values %+v", secret.Namespace, bootstrap)
	}
	last := objects[len(objects)-1]
	var deployment appsv1.Deployment
	find(t, objects, "Deployment", &deployment)
	if last.GetKind() != "Deployment" || deployment.Name != ReleaseName || deployment.Namespace != "agents" {
		t.Errorf("last object is %s %q in %q", last.GetKind(), last.GetName(), last.GetNamespace())
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if container.Image != "registry.local:5000/fleetgate/agent:v1" || !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault ||
		len(pod.Tolerations) != 1+len(DefaultTaints()) || len(pod.ImagePullSecrets) != 1 ||
		pod.Affinity == nil || container.Resources.Limits.Memory().String() != "99Mi" || !slices.Contains(container.Env, cluster.Spec.AgentEnvVars[0]) {
		t.Errorf("pod: %+v", pod)
	}
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind string, into any) {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("missing %s", kind)
}

func TestImageAt(t *testing.T) {
	tests := map[string]struct {
		registry, image string
		want            imageValues
	}{
		"tag":                   {"", "ghcr.io/fleetgate/agent:v1", imageValues{Repository: "ghcr.io/fleetgate/agent", Tag: "v1"}},
		"digest":                {"", "ghcr.io/fleetgate/agent@sha256:ab", imageValues{Repository: "ghcr.io/fleetgate/agent", Digest: "sha256:ab"}},
		"both":                  {"", "agent:v1@sha256:ab", imageValues{Repository: "agent", Tag: "v1", Digest: "sha256:ab"}},
		"neither":               {"", "localhost:5000/agent", imageValues{Repository: "localhost:5000/agent"}},
		"registry with a port":  {"localhost:5000", "fleetgate/agent:v1", imageValues{Repository: "localhost:5000/fleetgate/agent", Tag: "v1"}},
		"registry with a slash": {"registry.local/", "agent:v1", imageValues{Repository: "registry.local/agent", Tag: "v1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := imageAt(tc.registry, tc.image); got != tc.want {
				t.Errorf("imageAt(%q, %q) = %+v, want %+v", tc.registry, tc.image, got, tc.want)
			}
		})
	}
}

func TestExplain_NamesRemedy(t *testing.T) {
	resource := schema.GroupResource{Resource: "namespaces"}
	refused := &url.Error{Op: "Patch", URL: "https://m", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	tests := map[string]struct {
		err          error
		reason, part string
	}{
		"connection refused": {refused, ReasonUnreachable, "ClusterRegistrationToken"},
		"unauthorized":       {apierrors.NewUnauthorized("no"), ReasonKubeConfigRefused, "Secret"},
		"forbidden":          {apierrors.NewForbidden(resource, "x", errors.New("no")), ReasonApplyFailed, "Namespace"},
		"bad gateway":        {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", resource, "x", "", 0, true), ReasonApplyFailed, "Namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := &unstructured.Unstructured{}
			namespace.SetAPIVersion("v1")
			namespace.SetKind("Namespace")
			got := explain(namespace, "https://m", tc.err)
			if got.reason != tc.reason || !strings.Contains(got.message, tc.part) || got.retry != retryLater {
				t.Errorf("got %+v, want %s with %q", got, tc.reason, tc.part)
			}
		})
	}
}

func TestDesiredStatus_FailureKeepsInstalledGeneration(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Spec.RedeployAgentGeneration = 3
	r := &Reconciler{HubURL: "https://hub", Clock: clock.RealClock{}}
	cluster.Status = r.desiredStatus(cluster, &result{reason: ReasonImported})
	if *cluster.Status.AgentDeployedGeneration != 3 || cluster.Status.APIServerURL != "https://hub" {
		t.Errorf("not recorded: %+v", cluster.Status)
	}
	r.HubURL = "https://new"
	cluster.Status = r.desiredStatus(cluster, failed(ReasonUnreachable, "no"))
	if cluster.Status.APIServerURL != "https://hub" || cluster.Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Errorf("after a failure: %+v", cluster.Status)
	}
}
