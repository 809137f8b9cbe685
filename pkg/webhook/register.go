// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Hub is what the handlers need of the hub.
type Hub struct {
	Scheme *runtime.Scheme
	// Live reads from the API server itself.
	Live client.Reader
	// Reviews asks for SubjectAccessReviews.
	Reviews client.Writer
	// Mapper knows the kinds that the hub serves.
	Mapper meta.RESTMapper
}

// Register adds every handler for our own kinds to the manager's webhook server.
func Register(mgr ctrl.Manager) {
	hub := Hub{Scheme: mgr.GetScheme(), Live: mgr.GetAPIReader(), Reviews: mgr.GetClient(), Mapper: mgr.GetRESTMapper()}
	for path, handler := range Handlers(hub) {
		mgr.GetWebhookServer().Register(path, handler)
	}
}

// Handlers returns the handlers for our own kinds by their paths. They need no
// server to be called.
func Handlers(hub Hub) map[string]http.Handler {
	scopes := scopesOf(hub.Mapper)
	overrides, disruption := overrides{live: hub.Live}, disruption{live: hub.Live}
	envelopes := envelopes{resources: resourcesOf(hub.Mapper), reviews: hub.Reviews}
	handlers := map[string]http.Handler{
		pathOf("mutate", "ClusterResourcePlacement"): admission.WithDefaulter[*placementv1beta1.ClusterResourcePlacement](hub.Scheme, placementDefaulter{}),
		pathOf("validate", "ClusterResourcePlacement"): admission.WithValidator[*placementv1beta1.ClusterResourcePlacement](hub.Scheme,
			placementValidator[*placementv1beta1.ClusterResourcePlacement]{kind: "ClusterResourcePlacement", clusterScoped: true, scopes: scopes}),
		pathOf("validate", "ResourcePlacement"): admission.WithValidator[*placementv1beta1.ResourcePlacement](hub.Scheme,
			placementValidator[*placementv1beta1.ResourcePlacement]{kind: "ResourcePlacement", scopes: scopes}),
		pathOf("validate", "ClusterResourceOverride"):                  validating(hub, "ClusterResourceOverride", overrides.cluster),
		pathOf("validate", "ResourceOverride"):                         validating(hub, "ResourceOverride", overrides.namespaced),
		pathOf("validate", "ClusterResourcePlacementEviction"):         validating(hub, "ClusterResourcePlacementEviction", disruption.eviction),
		pathOf("validate", "ClusterResourcePlacementDisruptionBudget"): validating(hub, "ClusterResourcePlacementDisruptionBudget", disruption.budget),
		pathOf("validate", "ClusterResourceEnvelope"):                  validating(hub, "ClusterResourceEnvelope", envelopes.cluster),
		pathOf("validate", "ResourceEnvelope"):                         validating(hub, "ResourceEnvelope", envelopes.namespaced),
	}
	for path, handler := range handlers {
		handlers[path] = http.MaxBytesHandler(handler, maxReviewBytes)
	}
	return handlers
}

func validating[T client.Object](hub Hub, kind string, rules rulesOf[T]) http.Handler {
	of := schema.GroupKind{Group: placementv1beta1.GroupName, Kind: kind}
	return admission.WithValidator[T](hub.Scheme, validator[T]{kind: of, rules: rules})
}

// pathOf is where a kind's requests arrive: the verb, the group with its dots, the
// version and the kind.
func pathOf(verb, kind string) string {
	return "/" + verb + "-" + placementv1beta1.GroupName + "-" + placementv1beta1.GroupVersion.Version + "-" + strings.ToLower(kind)
}

// maxReviewBytes is more than any review that an API server sends: it holds an
// object of at most 3 MiB, the object before it, and who asks. Whoever else reaches
// the port does not fill the memory.
const maxReviewBytes = 8 << 20
