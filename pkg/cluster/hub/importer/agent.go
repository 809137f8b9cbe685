// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

const (
	// ReleaseName is the release name for rendering the agent's chart, so that objects have the same
	// names as after `helm install fleet-agent`.
	ReleaseName = "fleet-agent"
	// hookAnnotations is the prefix of Helm's hook annotations. Here all objects are applied at once.
	hookAnnotations = "helm.sh/hook"
	// managedByLabel names the manager of an object; managedBy replaces Helm's own value.
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "fleetgate"
)

// Chart renders the agent's chart.
type Chart interface {
	// Render returns the objects of a release with that name in a namespace, in an order in which they
	// can be applied. values are as described in values.yaml.
	Render(ctx context.Context, name, namespace string, values json.RawMessage) ([]*unstructured.Unstructured, error)
}

// agentValues are the chart's values: those of the token, and the Cluster's settings for its agent.
type agentValues struct {
	registrationv1alpha1.AgentValues `json:",inline"`
	ClientID                         string                        `json:"clientID"`
	Image                            imageValues                   `json:"image"`
	ImagePullSecrets                 []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	HostNetwork                      bool                          `json:"hostNetwork,omitempty"`
	Tolerations                      []corev1.Toleration           `json:"tolerations,omitempty"`
	Affinity                         *corev1.Affinity              `json:"affinity,omitempty"`
	Resources                        *corev1.ResourceRequirements  `json:"resources,omitempty"`
	ExtraEnv                         []corev1.EnvVar               `json:"extraEnv,omitempty"`
	*deliveredValues                 `json:",inline"`
}

// deliveredValues are further values of agents that klusterlets install.
type deliveredValues struct {
	Accounts     accountValues     `json:"accounts"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Proxy        proxyValues       `json:"proxy,omitzero"`
	// RecordsPolicy is disabled: the cluster may be too old for it, and its klusterlet would report a failure.
	RecordsPolicy recordsPolicyValues `json:"recordsPolicy"`
}

type recordsPolicyValues struct {
	Enabled bool `json:"enabled"`
}

type proxyValues struct {
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	NoProxy    string `json:"noProxy,omitempty"`
}

type accountValues struct {
	Namespace string `json:"namespace"`
}

type imageValues struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"`
}

// valuesFor are the values with which the agent is installed on a cluster.
func (r *Reconciler) valuesFor(cluster *registrationv1alpha1.Cluster, token registrationv1alpha1.AgentValues, delivered *deliveredValues) (json.RawMessage, error) {
	spec := cluster.Spec
	values, err := json.Marshal(agentValues{
		AgentValues: token, ClientID: spec.ClientID,
		Image: imageAt(spec.PrivateRepoURL, r.Image), ImagePullSecrets: ptr.Deref(spec.AgentPullSecrets, nil),
		HostNetwork: r.Agents.hostNetworkOf(cluster), Tolerations: r.Agents.tolerationsOf(cluster), Affinity: spec.AgentAffinity,
		Resources: spec.AgentResources, ExtraEnv: spec.AgentEnvVars, deliveredValues: delivered,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the values of the agent: %w", err)
	}
	return values, nil
}

// Image is an image name as the chart's values.
func Image(name string) any { return imageAt("", name) }

// imageAt is the image in a private registry, in the parts of the chart's values. A colon before the
// last slash belongs to a registry's port.
func imageAt(registry, image string) imageValues {
	if registry != "" {
		image = strings.TrimSuffix(registry, "/") + "/" + image
	}
	repository, digest, _ := strings.Cut(image, "@")
	values := imageValues{Repository: repository, Digest: digest}
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		values.Repository, values.Tag = repository[:colon], repository[colon+1:]
	}
	return values
}

func agentNamespace(cluster *registrationv1alpha1.Cluster) string {
	return cmp.Or(cluster.Spec.AgentNamespace, clusterv1beta1.SystemNamespace)
}

// manifests are the objects for a cluster, in order: the agent is last, when its dependencies exist.
func (r *Reconciler) manifests(ctx context.Context, cluster *registrationv1alpha1.Cluster, token registrationv1alpha1.AgentValues) ([]*unstructured.Unstructured, error) {
	values, err := r.valuesFor(cluster, token, nil)
	if err != nil {
		return nil, err
	}
	return Manifests(ctx, r.Chart, agentNamespace(cluster), values)
}

// Manifests are the objects that install the agent in a namespace of a cluster, in order. values are
// those of the chart.
func Manifests(ctx context.Context, chart Chart, namespace string, values json.RawMessage) ([]*unstructured.Unstructured, error) {
	rendered, err := chart.Render(ctx, ReleaseName, namespace, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the agent's chart: %w", err)
	}
	for _, object := range rendered {
		adopt(object)
	}
	slices.SortStableFunc(rendered, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a), rank(b))
	})
	first := &unstructured.Unstructured{}
	first.SetAPIVersion("v1")
	first.SetKind("Namespace")
	first.SetName(namespace)
	return append([]*unstructured.Unstructured{first}, rendered...), nil
}

// rank sorts namespaces first and workloads last.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "Deployment":
		return 2
	}
	return 1
}

// adopt labels an object of a release as managed by us, because there is no Helm release.
func adopt(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, hookAnnotations) {
			delete(annotations, key)
		}
	}
	object.SetAnnotations(annotations)
	if labels := object.GetLabels(); labels[managedByLabel] != "" {
		labels[managedByLabel] = managedBy
		object.SetLabels(labels)
	}
}
