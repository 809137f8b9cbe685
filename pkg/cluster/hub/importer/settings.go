// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// AgentDefaults are the settings of imported agents that a Cluster does not override.
type AgentDefaults struct {
	// HostNetwork runs agents in the host network, for clusters whose network plugin the hub delivers.
	HostNetwork bool
	// Tolerations are in addition to a Cluster's own.
	Tolerations []corev1.Toleration
}

// DefaultTaints are tolerated for a cluster that was just created: without a network plugin and a
// cloud provider its nodes have these taints, and often the agent is what delivers both.
func DefaultTaints() []string {
	return []string{
		corev1.TaintNodeNotReady, corev1.TaintNodeNetworkUnavailable, "node.cloudprovider.kubernetes.io/uninitialized",
		"node.cluster.x-k8s.io/uninitialized", "node-role.kubernetes.io/control-plane",
	}
}

// ParseToleration returns the toleration of a taint in the format key, key:effect, key=value or
// key=value:effect.
func ParseToleration(taint string) (corev1.Toleration, error) {
	rest, effect, hasEffect := strings.Cut(taint, ":")
	key, value, hasValue := strings.Cut(rest, "=")
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if hasValue {
		toleration.Operator, toleration.Value = corev1.TolerationOpEqual, value
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		return corev1.Toleration{}, fmt.Errorf("parsing the taint: %q is not a key", key)
	case len(validation.IsValidLabelValue(value)) > 0:
		return corev1.Toleration{}, fmt.Errorf("parsing the taint: %q is not a value", value)
	case hasEffect && !slices.Contains(effects, toleration.Effect):
		return corev1.Toleration{}, fmt.Errorf("parsing the taint: %q is not one of %v", effect, effects)
	}
	return toleration, nil
}

func (d AgentDefaults) hostNetworkOf(cluster *registrationv1alpha1.Cluster) bool {
	return ptr.Deref(cluster.Spec.HostNetwork, d.HostNetwork)
}

func (d AgentDefaults) tolerationsOf(cluster *registrationv1alpha1.Cluster) []corev1.Toleration {
	return slices.Concat(cluster.Spec.AgentTolerations, d.Tolerations)
}

// record writes the settings of an installation into the status.
func (d AgentDefaults) record(status *registrationv1alpha1.ClusterStatus, cluster *registrationv1alpha1.Cluster) {
	status.AgentHostNetwork = d.hostNetworkOf(cluster)
	status.AgentTolerationsHash = hashOfJSON(d.tolerationsOf(cluster))
	status.AgentAffinityHash = hashOfJSON(cluster.Spec.AgentAffinity)
	status.AgentResourcesHash = hashOfJSON(cluster.Spec.AgentResources)
	status.AgentEnvVarsHash = hashOfJSON(cluster.Spec.AgentEnvVars)
	if secrets := ptr.Deref(cluster.Spec.AgentPullSecrets, nil); len(secrets) > 0 {
		// The API has no other field for them. Without any, the hash is that of earlier gateways.
		status.AgentEnvVarsHash = hashOfJSON([]any{cluster.Spec.AgentEnvVars, secrets})
	}
	status.AgentPrivateRepoURL = cluster.Spec.PrivateRepoURL
}

// isRecorded reports whether the status has the settings of the installed agent. Those of agents that
// an older gateway installed are unknown.
func isRecorded(cluster *registrationv1alpha1.Cluster) bool {
	return cluster.Status.AgentTolerationsHash != ""
}

// changed reports whether the recorded settings differ from the wanted ones.
func (d AgentDefaults) changed(cluster *registrationv1alpha1.Cluster) bool {
	if !isRecorded(cluster) {
		return false
	}
	wanted := cluster.Status.DeepCopy()
	d.record(wanted, cluster)
	return !equality.Semantic.DeepEqual(&cluster.Status, wanted)
}

// hashOfJSON is the hash of a value of the API, which can always be encoded.
func hashOfJSON(value any) string {
	text, err := hash.JSON(value)
	if err != nil {
		return ""
	}
	return text
}
