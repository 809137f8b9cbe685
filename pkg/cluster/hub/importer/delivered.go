// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// bootstrapSecret has the registration values. The agent deletes it when it is registered.
const bootstrapSecret = "fleet-agent-bootstrap"

// Delivered renders agents that a cluster's klusterlet installs, so the hub needs no kubeconfig. The
// namespaces are those of add-on fleetgate-agent: they are deleted with it.
type Delivered struct {
	// Reconciler has the token, the chart and the agents' settings.
	*Reconciler
	// ChartHash identifies the chart.
	ChartHash string
}

// Manifests returns the manifests of a Cluster's agent and their version, or only the version if that
// is known already. They contain the registration token of this Cluster until its agent is registered.
// Proxy and nodes are those of config, which may be nil.
func (d *Delivered) Manifests(ctx context.Context, cluster *registrationv1alpha1.Cluster, config *addonv1alpha1.AddOnDeploymentConfigSpec, registered bool, known string) ([]*unstructured.Unstructured, string, *refusal.Refusal, error) {
	if d.Image == "" {
		return nil, "", refusal.New(ReasonImageMissing, "The gateway does not know the agent's image; set registration.agentImage of the gateway"), nil
	}
	values := &registrationv1alpha1.AgentValues{ClusterNamespace: cluster.Namespace, APIServerURL: d.HubURL, APIServerCA: string(d.HubCA), Token: "none"}
	var issued types.UID
	if !registered {
		var token *registrationv1alpha1.ClusterRegistrationToken
		var pending *result
		var err error
		if values, token, pending, err = d.issued(ctx, cluster); err != nil {
			return nil, "", nil, err
		}
		if values == nil {
			return nil, "", &refusal.Refusal{Reason: pending.reason, Message: pending.message}, nil
		}
		issued = token.UID
	}
	content := []any{d.ChartHash, d.Image, d.Agents, d.HubURL, string(d.HubCA), cluster.Spec.ClientID, issued}
	if config != nil {
		content = append(content, config.ProxyConfig, config.NodePlacement)
	}
	version, err := hash.JSON(content)
	if err != nil || version == known {
		return nil, version, nil, err
	}
	objects, err := d.render(ctx, cluster, config, *values)
	switch {
	case ctx.Err() != nil:
		return nil, "", nil, err
	case err != nil:
		return nil, "", refusal.New(ReasonChartFailed, "The agent's chart does not accept the gateway's settings of agents: %w", err), nil
	}
	if registered {
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Secret" && o.GetName() == bootstrapSecret
		})
	}
	return objects, version, nil, nil
}

// render uses nothing of the Cluster's spec but the client ID: everybody who may write Clusters in the
// namespace could otherwise choose the image and the environment of an agent with all rights.
func (d *Delivered) render(ctx context.Context, cluster *registrationv1alpha1.Cluster, config *addonv1alpha1.AddOnDeploymentConfigSpec, values registrationv1alpha1.AgentValues) ([]*unstructured.Unstructured, error) {
	bare := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	bare.Spec.ClientID = cluster.Spec.ClientID
	delivered := &deliveredValues{Accounts: accountValues{Namespace: addonv1alpha1.FleetgateAgentAccounts}}
	if config != nil {
		delivered.Proxy = proxyValues{HTTPSProxy: config.ProxyConfig.HTTPSProxy, NoProxy: config.ProxyConfig.NoProxy}
		if nodes := config.NodePlacement; nodes != nil {
			delivered.NodeSelector = nodes.NodeSelector
			for _, t := range nodes.Tolerations {
				bare.Spec.AgentTolerations = append(bare.Spec.AgentTolerations, corev1.Toleration{
					Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect), TolerationSeconds: t.TolerationSeconds,
				})
			}
		}
	}
	text, err := d.valuesFor(bare, values, delivered)
	if err != nil {
		return nil, err
	}
	return Manifests(ctx, d.Chart, addonv1alpha1.FleetgateAgentNamespace, text)
}

// Revoke deletes the registration token of a Cluster, if it exists.
func (d *Delivered) Revoke(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	token := tokenFor(cluster)
	exists, err := reconcileutil.GetIfExists(ctx, d.Client, client.ObjectKeyFromObject(token), token, "reading ClusterRegistrationToken %q", token.Name)
	if !exists || !metav1.IsControlledBy(token, cluster) || token.DeletionTimestamp != nil {
		return err
	}
	if err := d.Client.Delete(ctx, token, client.Preconditions{UID: &token.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterRegistrationToken %q, whose agent is registered: %w", token.Name, err)
	}
	return nil
}
