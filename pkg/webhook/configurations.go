// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Names of the configurations, as the public API's users know them.
const (
	MutatingConfiguration   = "fleet-mutating-webhook-configuration"
	ValidatingConfiguration = "fleet-validating-webhook-configuration"
)

// timeoutSeconds is how long the API server waits for an answer.
const timeoutSeconds = 5

// An Endpoint is where the hub's API server finds the webhook server.
type Endpoint struct {
	// Namespace and Service name the gateway's Service.
	Namespace, Service string
	// Port is the Service's port for webhooks.
	Port int32
	// CABundle verifies the serving certificate (PEM).
	CABundle []byte
}

func (e Endpoint) clientConfig(path string) k8sadmissionv1.WebhookClientConfig {
	return k8sadmissionv1.WebhookClientConfig{
		CABundle: e.CABundle,
		Service:  &k8sadmissionv1.ServiceReference{Namespace: e.Namespace, Name: e.Service, Port: ptr.To(e.Port), Path: ptr.To(path)},
	}
}

// notDeleted keeps the rules away from what is going: finalizers must come off
// also while no gateway answers. The API server evaluates it itself.
func notDeleted() []k8sadmissionv1.MatchCondition {
	return []k8sadmissionv1.MatchCondition{{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"}}
}

// Configurations returns the webhook configurations. Defaults are filled in if
// the gateway is there (Ignore: the controllers apply the same ones); rules
// always hold (Fail), but for objects that are being deleted. Rules name the
// storage version; writes through another version are converted first
// (matchPolicy Equivalent).
func Configurations(endpoint Endpoint) []client.Object {
	return []client.Object{
		&k8sadmissionv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: MutatingConfiguration},
			Webhooks: []k8sadmissionv1.MutatingWebhook{{
				Name:                    "fleet.clusterresourceplacementv1beta1.mutating",
				ClientConfig:            endpoint.clientConfig(pathDefaultClusterResourcePlacement),
				Rules:                   writesOf("clusterresourceplacements"),
				FailurePolicy:           ptr.To(k8sadmissionv1.Ignore),
				MatchPolicy:             ptr.To(k8sadmissionv1.Equivalent),
				SideEffects:             ptr.To(k8sadmissionv1.SideEffectClassNone),
				ReinvocationPolicy:      ptr.To(k8sadmissionv1.IfNeededReinvocationPolicy),
				MatchConditions:         notDeleted(),
				TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
				AdmissionReviewVersions: []string{"v1"},
			}},
		},
		&k8sadmissionv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: k8sadmissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: ValidatingConfiguration},
			Webhooks: []k8sadmissionv1.ValidatingWebhook{
				validating("fleet.clusterresourceplacementv1beta1.validating", "clusterresourceplacements", endpoint.clientConfig(pathValidateClusterResourcePlacement)),
				validating("fleet.resourceplacementv1beta1.validating", "resourceplacements", endpoint.clientConfig(pathValidateResourcePlacement)),
			},
		},
	}
}

func validating(name, resource string, clientConfig k8sadmissionv1.WebhookClientConfig) k8sadmissionv1.ValidatingWebhook {
	return k8sadmissionv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            clientConfig,
		Rules:                   writesOf(resource),
		FailurePolicy:           ptr.To(k8sadmissionv1.Fail),
		MatchPolicy:             ptr.To(k8sadmissionv1.Equivalent),
		MatchConditions:         notDeleted(),
		SideEffects:             ptr.To(k8sadmissionv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func writesOf(resource string) []k8sadmissionv1.RuleWithOperations {
	return []k8sadmissionv1.RuleWithOperations{{
		Operations: []k8sadmissionv1.OperationType{k8sadmissionv1.Create, k8sadmissionv1.Update},
		Rule: k8sadmissionv1.Rule{
			APIGroups: []string{placementv1beta1.GroupVersion.Group}, APIVersions: []string{placementv1beta1.GroupVersion.Version},
			Resources: []string{resource}, Scope: ptr.To(k8sadmissionv1.AllScopes),
		},
	}}
}
