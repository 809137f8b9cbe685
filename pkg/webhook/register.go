// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/webhook/author"
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
	// Discovery asks for them.
	Discovery discovery.DiscoveryInterface
	Strictness
}

// Strictness configures what the handlers of a hub allow.
type Strictness struct {
	// TrustAuthors disables the author check: whether the authors of placements and overrides may
	// deliver the selected objects, and the authors of ManifestWorkReplicaSets may create the
	// manifests in them.
	TrustAuthors bool
	// StrictEnvelopes rejects envelopes with an object that cannot be placed from them. Otherwise
	// they are allowed with a warning.
	StrictEnvelopes bool
}

// Register adds every handler for our own kinds to the manager's webhook server.
func Register(mgr ctrl.Manager, strictness Strictness) error {
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a discovery client of the hub: %w", err)
	}
	hub := Hub{
		Scheme: mgr.GetScheme(), Live: mgr.GetAPIReader(), Reviews: author.Cached(mgr.GetClient(), clock.RealClock{}), Mapper: mgr.GetRESTMapper(),
		Discovery: discoverer, Strictness: strictness,
	}
	for path, handler := range Handlers(hub) {
		mgr.GetWebhookServer().Register(path, handler)
	}
	return nil
}

// Handlers returns the handlers for our own kinds by their paths. They need no
// server to be called.
func Handlers(hub Hub) map[string]http.Handler {
	authors, resources := authors{reviews: hub.Reviews}, resourcesOf(hub.Mapper)
	overrides := overrides{live: hub.Live, resources: resources, authors: authors, trusting: hub.TrustAuthors}
	disruption, envelopes := disruption{live: hub.Live}, envelopes{resources: resources, authors: authors, strict: hub.StrictEnvelopes}
	authorHub := author.Hub{Resources: resources, Contents: &contents{kinds: selection.NewKinds(hub.Discovery, selection.Filter{}), live: hub.Live}}
	handlers := map[string]http.Handler{
		pathOf("validate", "ClusterResourceOverride"):                  validating(hub, "ClusterResourceOverride", overrides.cluster),
		pathOf("validate", "ResourceOverride"):                         validating(hub, "ResourceOverride", overrides.namespaced),
		pathOf("validate", "ClusterResourcePlacementEviction"):         validating(hub, "ClusterResourcePlacementEviction", disruption.eviction),
		pathOf("validate", "ClusterResourcePlacementDisruptionBudget"): validating(hub, "ClusterResourcePlacementDisruptionBudget", disruption.budget),
		pathOf("validate", "ClusterResourceEnvelope"):                  enveloping(hub, "ClusterResourceEnvelope", envelopes, entriesOfCluster),
		pathOf("validate", "ResourceEnvelope"):                         enveloping(hub, "ResourceEnvelope", envelopes, entriesOfNamespaced),
	}
	addPlacements[*placementv1beta1.ClusterResourcePlacement](handlers, hub, authorHub, "ClusterResourcePlacement", true)
	addPlacements[*placementv1beta1.ResourcePlacement](handlers, hub, authorHub, "ResourcePlacement", false)
	for path, handler := range handlers {
		handlers[path] = http.MaxBytesHandler(handler, maxReviewBytes)
	}
	return handlers
}

// addPlacements adds the handlers of one kind of placement. Defaults are those of the
// cluster-scoped one: controllers apply them to the other.
func addPlacements[P placementv1beta1.PlacementObject](handlers map[string]http.Handler, hub Hub, authorHub author.Hub, kind string, clusterScoped bool) {
	bounds := authorBounds[P]{hub: authorHub, authors: authors{reviews: hub.Reviews}, trusting: hub.TrustAuthors}
	handlers[pathOf("mutate", kind)] = admission.WithDefaulter[P](hub.Scheme, placementDefaulter[P]{defaults: clusterScoped, bounds: bounds})
	handlers[pathOf("validate", kind)] = admission.WithValidator[P](hub.Scheme,
		placementValidator[P]{kind: kind, clusterScoped: clusterScoped, scopes: scopesOf(hub.Mapper), bounds: bounds})
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
// object of at most 3 MiB, the object before it, and the user.
// Other clients that reach the port cannot fill the memory.
const maxReviewBytes = 8 << 20
