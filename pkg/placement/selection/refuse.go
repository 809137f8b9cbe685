// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// refusedGroups are API groups that are never sent to members: those that describe the fleet itself,
// and those in which a cluster reports about itself.
var refusedGroups = map[string]bool{
	"cluster.kubernetes-fleet.io":               true,
	"placement.kubernetes-fleet.io":             true,
	"fleet.cattle.io":                           true,
	"authentication.open-cluster-management.io": true,
	"cluster.core.oam.dev":                      true,
	"tunnel.fleetgate.io":                       true,
	"request.fleetgate.io":                      true,
	"admission.fleetgate.io":                    true,
	"view.fleetgate.io":                         true,
	"webhook.fleetgate.io":                      true,
	"events.k8s.io":                             true,
	"coordination.k8s.io":                       true,
	"metrics.k8s.io":                            true,
}

// refusedKinds are single kinds that are never sent.
var refusedKinds = map[schema.GroupKind]bool{
	{Kind: "Pod"}:   true,
	{Kind: "Node"}:  true,
	{Kind: "Event"}: true,
	// It reports the free capacity of this cluster's storage.
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: true,
	// It holds the usage of this cluster's Pods.
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscalerCheckpoint"}: true,
	{Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"}:               true,
	// The hub writes these on each decision: a placement that selected them would trigger itself.
	{Group: "multicluster.x-k8s.io", Kind: "PlacementDecision"}:              true,
	{Group: "cluster.open-cluster-management.io", Kind: "PlacementDecision"}: true,
	{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:             true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}:     true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerBackend"}:     true,
}

// envelopes are kinds of a refused group that can be selected, because only their contents are sent.
var envelopes = map[schema.GroupKind]bool{
	{Group: "placement.kubernetes-fleet.io", Kind: "ClusterResourceEnvelope"}: true,
	{Group: "placement.kubernetes-fleet.io", Kind: "ResourceEnvelope"}:        true,
}

// hasEnvelopes reports whether objects of a refused group can be selected.
func hasEnvelopes(group string) bool {
	for kind := range envelopes {
		if kind.Group == group {
			return true
		}
	}
	return false
}

// KindPropagates reports whether objects of the kind can be sent to members at all.
func KindPropagates(kind schema.GroupKind) bool {
	return envelopes[kind] || !refusedGroups[kind.Group] && !refusedKinds[kind]
}

// NamespacePropagates reports whether a namespace can be sent. Namespaces of Kubernetes and of the
// fleet, on the hub and on members, and "default" cannot.
func NamespacePropagates(name string) bool {
	return name != metav1.NamespaceDefault && !reserved.Namespace(name) &&
		!strings.HasPrefix(name, "kube-") && !strings.HasPrefix(name, "fleet-")
}

// madeByControllers marks metadata in the Watcher's cache of an object that only controllers wrote. It
// is not a valid name of an annotation on the hub.
const madeByControllers = "made by controllers"

// createdForOwner marks the same for an object that a controller created for its owners.
const createdForOwner = "created for its owner"

// writtenFor marks the same for a Secret that only the controller of an ExternalSecret wrote; its value is the name.
const writtenFor = "written for an ExternalSecret"

// keptAnnotations are the annotations that metadataPropagates reads.
var keptAnnotations = []string{
	madeByControllers, createdForOwner, writtenFor, annotationUnsealed,
	corev1.ServiceAccountNameKey, annotationIssuer, annotationCertificate, placementv1beta1.PlaceAnnotation,
	annotationProvisioned, annotationLeader, annotationServedService,
}

const (
	annotationIssuer      = "cert-manager.io/issuer-name"
	annotationCertificate = "cert-manager.io/certificate-name"
	// annotationProvisioned is on a volume that a provisioner created.
	annotationProvisioned = "pv.kubernetes.io/provisioned-by"
	// annotationLeader makes an object the lock of a leader election.
	annotationLeader = "control-plane.alpha.kubernetes.io/leader"
	// annotationServedService is on a Secret that OpenShift's service CA created for a Service of this
	// cluster. On a member the same CA would refuse to create its own.
	annotationServedService = "service.beta.openshift.io/originating-service-uid"
	// annotationUnsealed is on a Secret that has the name of its SealedSecret and no owner.
	annotationUnsealed = "sealedsecrets.bitnami.com/skip-set-owner-references"
)

// trim reduces an object's metadata to what selection reads. An informer may call it again with its own
// result.
func trim(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := map[string]string{}
	for _, name := range keptAnnotations {
		if value, there := m.Annotations[name]; there {
			kept[name] = value
		}
	}
	if onlyControllersOf(m) {
		kept[madeByControllers] = ""
	}
	if metav1.GetControllerOfNoCopy(m) == nil && madeForOwner(m) {
		kept[createdForOwner] = ""
	}
	if name := externalSecretOf(m.ManagedFields); name != "" {
		kept[writtenFor] = name
	}
	m.Annotations, m.ManagedFields = nil, nil
	if len(kept) > 0 {
		m.Annotations = kept
	}
	return m, nil
}

// generated are ConfigMaps that controllers create in every namespace.
var generated = map[string]bool{"kube-root-ca.crt": true, "openshift-service-ca.crt": true, "istio-ca-root-cert": true}

// metadataPropagates reports whether an object can be sent, as far as its trimmed metadata shows it.
// Objects that a controller or the API server of the hub creates for itself stay: members have their
// own controllers.
func metadataPropagates(kind schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	switch word := object.Annotations[placementv1beta1.PlaceAnnotation]; {
	case word == placementv1beta1.PlaceSkip, kind == schema.GroupKind{Kind: "Secret"} && ofTheHouse(object):
		return false
	case word == placementv1beta1.PlaceAlways, kind == namespaceKind:
		return true
	}
	_, lock := object.Annotations[annotationLeader]
	if _, made := object.Annotations[madeByControllers]; made || lock || metav1.GetControllerOfNoCopy(object) != nil {
		return false
	}
	if slices.ContainsFunc(object.OwnerReferences, staysOnHub) {
		return false
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}:
		return len(object.OwnerReferences) == 0
	case schema.GroupKind{Kind: "ConfigMap"}:
		return !generated[object.Name]
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return object.Name != "default"
	case schema.GroupKind{Kind: "Secret"}:
		return object.Annotations[corev1.ServiceAccountNameKey] == "" && object.Annotations[annotationServedService] == ""
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		// A member does not run the gateway, and an API without a server blocks the deletion of namespaces.
		_, group, _ := strings.Cut(object.Name, ".")
		return !refusedGroups[group]
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return object.Annotations[annotationProvisioned] == ""
	case schema.GroupKind{Kind: "Endpoints"}:
		_, managed := object.Labels["endpoints.kubernetes.io/managed-by"]
		return !managed
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return humanSlice(object.Labels["endpointslice.kubernetes.io/managed-by"])
	case schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}:
		_, copied := object.Labels["olm.copiedFrom"] // OLM copies them into each namespace that an operator watches.
		return !copied
	case schema.GroupKind{Group: "velero.io", Kind: "Backup"}:
		_, scheduled := object.Labels["velero.io/schedule-name"] // It would run again on members.
		return !scheduled
	}
	return true
}

// staysOnHub reports whether an owner is never placed, such as the Pod of a CiliumEndpoint. Its dependents
// describe it, and the garbage collector deletes them with it.
func staysOnHub(owner metav1.OwnerReference) bool {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return !KindPropagates(kind) || kind == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
}

// humanSlice reports whether an EndpointSlice was not written by a controller. Authors must set the
// label too, and Kubernetes suggests these names for people.
func humanSlice(managedBy string) bool {
	return managedBy == "" || managedBy == "staff" || managedBy == "cluster-admins"
}

// servingAuthority is the Secret of the gateway's certificate authority. servingIssuers are the issuers
// of its certificates if cert-manager writes them.
const servingAuthority = "gateway-serving-ca"

var servingIssuers = map[string]bool{"gateway-self-signed": true, "gateway-ca": true}

// ofTheHouse reports whether the hub or an agent wrote a Secret for itself: credentials of members and
// for Argo CD, tokens of ManagedServiceAccounts, values of registration tokens, the gateway's own
// certificates. The readers of such a Secret on the hub differ from its readers on members.
func ofTheHouse(secret *metav1.PartialObjectMetadata) bool {
	_, ofMember := secret.Labels[clusterv1beta1.LabelMember]
	_, ofAccount := secret.Labels[authenticationv1beta1.LabelManagedServiceAccount]
	byCertManager := servingIssuers[secret.Annotations[annotationIssuer]] && strings.HasPrefix(secret.Annotations[annotationCertificate], "gateway-")
	if ofMember || ofAccount || byCertManager || secret.Name == servingAuthority {
		return true
	}
	for _, owner := range secret.OwnerReferences {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if group == registrationv1alpha1.GroupName || group == authenticationv1beta1.GroupVersion.Group {
			return true
		}
	}
	return false
}

// helmRelease is the type of Secrets that store Helm's releases on this cluster.
const helmRelease = "helm.sh/release.v1"

// contentPropagates makes the decisions that need the full object.
func contentPropagates(object *unstructured.Unstructured) bool {
	always := object.GetAnnotations()[placementv1beta1.PlaceAnnotation] == placementv1beta1.PlaceAlways
	kind := object.GroupVersionKind().GroupKind()
	entries := object.GetManagedFields()
	if !always && kind != namespaceKind && hasController(entries) && writersOf(entries).onlyControllers() {
		return false // Somebody has labelled it since, for example.
	}
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return true
	}
	secretType, _, _ := unstructured.NestedString(object.Object, "type")
	return !reserved.TokenSecret(secretType) && secretType != string(registrationv1alpha1.SecretTypeRegistrationValues) && (always || secretType != helmRelease)
}
