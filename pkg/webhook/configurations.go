// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// timeoutSeconds is how long the API server waits for an answer.
const timeoutSeconds = 5

// An Endpoint is where the hub's API server finds the webhook server.
type Endpoint struct {
	// Aggregated sends reviews through the API server itself and the aggregated group of
	// pkg/webhook/intake, which proves where they come from. What follows is not needed then.
	Aggregated bool
	// Namespace and Service name the gateway's Service.
	Namespace, Service string
	// Port is the Service's port for webhooks.
	Port int32
	// CABundle verifies the serving certificate (PEM).
	CABundle []byte
	// TrustAuthors annotates the configuration: the author check is disabled.
	TrustAuthors bool
}

// aggregatedPort is the port of Service default/kubernetes that API servers resolve to
// themselves.
const aggregatedPort = 443

// ClientConfig returns the address of the handler of a path. Without a path it is the
// beginning of such a configuration.
func (e Endpoint) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	if e.Aggregated {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Port: ptr.To[int32](aggregatedPort), Path: ptr.To(intake.AggregatedPath(path)),
		}}
	}
	return admissionregistrationv1.WebhookClientConfig{
		CABundle: e.CABundle,
		Service:  &admissionregistrationv1.ServiceReference{Namespace: e.Namespace, Name: e.Service, Port: ptr.To(e.Port), Path: ptr.To(path)},
	}
}

// ownKind is a kind of ours with rules that its schema cannot hold.
type ownKind struct {
	kind, resource string
	// webhook names the entry, as users of the public API know it.
	webhook string
	// onCreate says that only new objects are looked at.
	onCreate bool
}

func ownKinds() []ownKind {
	return []ownKind{
		{kind: "ClusterResourcePlacement", resource: "clusterresourceplacements", webhook: "fleet.clusterresourceplacementv1beta1.validating"},
		{kind: "ResourcePlacement", resource: "resourceplacements", webhook: "fleet.resourceplacementv1beta1.validating"},
		{kind: "ClusterResourceOverride", resource: "clusterresourceoverrides", webhook: "fleet.clusterresourceoverride.validating"},
		{kind: "ResourceOverride", resource: "resourceoverrides", webhook: "fleet.resourceoverride.validating"},
		{kind: "ClusterResourcePlacementEviction", resource: "clusterresourceplacementevictions", webhook: "fleet.clusterresourceplacementeviction.validating", onCreate: true},
		{kind: "ClusterResourcePlacementDisruptionBudget", resource: "clusterresourceplacementdisruptionbudgets", webhook: "fleet.clusterresourceplacementdisruptionbudget.validating"},
		{kind: "ClusterResourceEnvelope", resource: "clusterresourceenvelopes", webhook: "fleet.clusterresourceenvelope.validating"},
		{kind: "ResourceEnvelope", resource: "resourceenvelopes", webhook: "fleet.resourceenvelope.validating"},
	}
}

// Configurations returns the webhook configurations for our own kinds. Defaults are
// filled in if the gateway is there (Ignore: the controllers apply the same ones);
// rules always apply (Fail), except to objects that are being deleted and to users with
// a bypass right. There is an entry for each kind, so that one that does not work
// stops no other. Rules name the storage version; writes through another version
// are converted first (matchPolicy Equivalent). None of these kinds is one that the
// gateway itself writes the spec of: it needs no answer of its own to start.
func Configurations(endpoint Endpoint) []client.Object {
	completing := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: policies.MutatingConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			mutating(endpoint, "ClusterResourcePlacement", "clusterresourceplacements", "fleet.clusterresourceplacementv1beta1.mutating"),
			mutating(endpoint, "ResourcePlacement", "resourceplacements", "fleet.resourceplacementv1beta1.mutating"),
		},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: policies.ValidatingConfiguration, Annotations: policies.AuthorsAnnotations(!endpoint.TrustAuthors)},
	}
	for _, own := range ownKinds() {
		validating.Webhooks = append(validating.Webhooks, own.validating(endpoint))
	}
	return []client.Object{completing, validating}
}

// mutating completes a kind of placement. While no gateway answers, what it would have
// written about the author is missed by the validating webhook, if there is one.
func mutating(endpoint Endpoint, kind, resource, name string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    name,
		ClientConfig:            endpoint.ClientConfig(pathOf("mutate", kind)),
		Rules:                   writesOf(resource, false),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions:         []admissionregistrationv1.MatchCondition{notDeleted()},
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func (k ownKind) validating(endpoint Endpoint) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    k.webhook,
		ClientConfig:            endpoint.ClientConfig(pathOf("validate", k.kind)),
		Rules:                   writesOf(k.resource, k.onCreate),
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		MatchConditions:         []admissionregistrationv1.MatchCondition{notDeleted(), notBypassed(k.webhook)},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// notDeleted keeps the rules away from what is going: finalizers must come off
// also while no gateway answers. The API server evaluates it itself.
func notDeleted() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "not-being-deleted", Expression: "!has(object.metadata.deletionTimestamp)"}
}

// notBypassed lets administrators bypass a webhook when no gateway responds, or when a rule is
// wrong. It requires the verb `bypass` on the entry's name, and AnnotationBypass on the object:
// administrators have every right, and the rules should still apply to them. It uses only what the API server itself knows.
func notBypassed(entry string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "not-bypassed", Expression: fmt.Sprintf("!(%s && %s)", wantsBypass,
		fmt.Sprintf("authorizer.group('%s').resource('%s').name('%s').check('%s').allowed()", BypassGroup, BypassWebhooks, entry, BypassVerb))}
}

func writesOf(resource string, onCreate bool) []admissionregistrationv1.RuleWithOperations {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	if !onCreate {
		operations = append(operations, admissionregistrationv1.Update)
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{placementv1beta1.GroupName}, APIVersions: []string{placementv1beta1.GroupVersion.Version},
			Resources: []string{resource}, Scope: ptr.To(admissionregistrationv1.AllScopes),
		},
	}}
}
