// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// An agent outside its member acts with the member's kubeconfig only.
func TestHostedAgent_UsesTheKubeconfigAndHasNoRightsWhereItRuns(t *testing.T) {
	rendered, err := render(t, "agent", "--values="+chart("agent")+"/ci/hosted-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodSpec
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		var object metav1.PartialObjectMetadata
		unmarshal(t, document, &object)
		switch {
		case strings.HasPrefix(object.APIVersion, "rbac.authorization.k8s.io/"), object.Kind == "Namespace":
			t.Errorf("%s %q is rendered", object.Kind, object.Name)
		case object.Kind == "Deployment":
			var deployment appsv1.Deployment
			unmarshal(t, document, &deployment)
			pod = deployment.Spec.Template.Spec
		case object.Kind == "ConfigMap" && (!strings.Contains(document, "bootstrapFile: /etc/fleetgate/bootstrap/values") || strings.Contains(document, "deployment:")):
			t.Errorf("the configuration is not that of a hosted agent:\n%s", document)
		}
	}
	if !ptr.Equal(pod.AutomountServiceAccountToken, ptr.To(false)) || !slices.Contains(pod.Containers[0].Args, "--member-kubeconfig=/etc/fleetgate/member/kubeconfig") {
		t.Errorf("Pod: %+v", pod)
	}
	for name, want := range map[string]corev1.SecretVolumeSource{
		"member":    {SecretName: "member-1"},
		"bootstrap": {SecretName: "fleet-agent-bootstrap", Optional: ptr.To(true)},
	} {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == name && m.MountPath == "/etc/fleetgate/"+name && m.ReadOnly
		})
		if at < 0 || pod.Volumes[at].Secret.SecretName != want.SecretName || !ptr.Equal(pod.Volumes[at].Secret.Optional, want.Optional) || !mounted {
			t.Errorf("volume %s: %+v", name, pod.Volumes)
		}
	}
}
