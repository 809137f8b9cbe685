// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

const (
	// agentName is the name of the agent's Deployment, account and binding.
	agentName = "fleet-agent"
	// bootstrapSecret is where the agent finds its values, as pkg/cluster/enroll has it.
	bootstrapSecret = "fleet-agent-bootstrap"
	probePort       = 8081
)

// bootstrapValues are the token's values with what makes the agent this Cluster's.
type bootstrapValues struct {
	registrationv1alpha1.AgentValues `json:",inline"`
	ClientID                         string `json:"clientID"`
}

// manifests are what is applied on a cluster, in this order.
func manifests(cluster *registrationv1alpha1.Cluster, values registrationv1alpha1.AgentValues, image string) ([]client.Object, error) {
	namespace := agentNamespace(cluster)
	encoded, err := yaml.Marshal(bootstrapValues{AgentValues: values, ClientID: cluster.Spec.ClientID})
	if err != nil {
		return nil, fmt.Errorf("writing the values of the agent: %w", err)
	}
	named := metav1.ObjectMeta{Namespace: namespace, Name: agentName, Labels: agentLabels()}
	return []client.Object{
		&corev1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{
			TypeMeta:   kind("v1", "Secret"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bootstrapSecret, Labels: agentLabels()},
			Data:       map[string][]byte{registrationv1alpha1.RegistrationValuesKey: encoded},
		},
		&corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: named},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: agentName + "-" + namespace, Labels: agentLabels()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: agentName}},
		},
		deployment(cluster, named, image),
	}, nil
}

func kind(apiVersion, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: name}
}

func agentNamespace(cluster *registrationv1alpha1.Cluster) string {
	return cmp.Or(cluster.Spec.AgentNamespace, clusterv1beta1.SystemNamespace)
}

func agentLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": agentName, "app.kubernetes.io/managed-by": "fleetgate"}
}

func deployment(cluster *registrationv1alpha1.Cluster, named metav1.ObjectMeta, image string) *appsv1.Deployment {
	spec := cluster.Spec
	pod := corev1.PodSpec{
		ServiceAccountName: agentName,
		HostNetwork:        ptr.Deref(spec.HostNetwork, false),
		Tolerations:        spec.AgentTolerations,
		Affinity:           spec.AgentAffinity,
		Containers: []corev1.Container{{
			Name:  "agent",
			Image: imageAt(spec.PrivateRepoURL, image),
			Args:  []string{"--namespace=" + named.Namespace},
			Env:   spec.AgentEnvVars,
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(probePort)},
			}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/livez", Port: intstr.FromInt32(probePort)},
			}},
			Resources: ptr.Deref(spec.AgentResources, corev1.ResourceRequirements{}),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
				RunAsUser: ptr.To[int64](65532), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}},
	}
	if spec.AgentPullSecrets != nil {
		pod.ImagePullSecrets = *spec.AgentPullSecrets
	}
	return &appsv1.Deployment{
		TypeMeta:   kind("apps/v1", "Deployment"),
		ObjectMeta: named,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": agentName}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: agentLabels()}, Spec: pod},
		},
	}
}

// imageAt is the image as a private registry has it.
func imageAt(registry, image string) string {
	if registry == "" {
		return image
	}
	return strings.TrimSuffix(registry, "/") + "/" + image
}
