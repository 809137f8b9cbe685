// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

// Names of the configurations for ManagedClusters and for bindings of their sets. They, the
// paths, and the classes and texts of errors are those that Open Cluster Management's users
// and tests know.
const (
	ClusterMutatingConfiguration = "managedclustermutators.admission.cluster.open-cluster-management.io"
	ClusterConfiguration         = "managedclustervalidators.admission.cluster.open-cluster-management.io"
	SetBindingConfiguration      = "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io"

	pathMutateCluster = "/mutate-cluster-open-cluster-management-io-v1-managedcluster"
	pathCluster       = "/validate-cluster-open-cluster-management-io-v1-managedcluster"
	pathSetBinding    = "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding"
)

// RegisterClusters adds the handlers for ManagedClusters and for bindings of their sets to
// the manager's webhook server.
func RegisterClusters(mgr ctrl.Manager) {
	hub := Hub{Scheme: mgr.GetScheme(), Reviews: mgr.GetClient(), Live: mgr.GetAPIReader()}
	for path, handler := range ClusterHandlers(hub, clock.RealClock{}) {
		mgr.GetWebhookServer().Register(path, handler)
	}
}

// ClusterHandlers returns the handlers for ManagedClusters and for bindings of their sets by
// their paths. They need no server to be called.
func ClusterHandlers(hub Hub, now clock.PassiveClock) map[string]http.Handler {
	authors := authors{reviews: hub.Reviews}
	bounded := func(handler http.Handler) http.Handler { return http.MaxBytesHandler(handler, maxReviewBytes) }
	completing := admission.WithDefaulter[*clusterv1.ManagedCluster](hub.Scheme, clustersDefaulter{clock: now})
	completing.Handler = withoutStatus{completing.Handler}
	return map[string]http.Handler{
		pathMutateCluster: bounded(completing),
		pathCluster:       bounded(admission.WithValidator[*clusterv1.ManagedCluster](hub.Scheme, clustersValidator{authors: authors, live: hub.Live})),
		pathSetBinding:    bounded(admission.WithValidator[*clusterv1beta2.ManagedClusterSetBinding](hub.Scheme, bindingsValidator{authors: authors})),
	}
}

// withoutStatus shows a handler objects without their status. Of what API servers send, to
// be completed, they have not looked at anything yet: a quantity in a status, which they
// drop from such a request anyway, could take minutes to read (untrusted.Quantity).
type withoutStatus struct{ admission.Handler }

// Handle returns 400 for what is no object.
func (h withoutStatus) Handle(ctx context.Context, request admission.Request) admission.Response {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	delete(object, "status")
	raw, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	request.Object.Raw = raw
	return h.Handler.Handle(ctx, request)
}

// ClusterConfigurations returns the webhook configurations for ManagedClusters and for
// bindings of their sets. An update that changes nothing that is looked at passes while no
// gateway answers.
func ClusterConfigurations(endpoint Endpoint) []client.Object {
	changed := admissionregistrationv1.MatchCondition{
		Name: "changes-spec-or-set",
		Expression: "request.operation == 'CREATE' || has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec) || " +
			setIn("object") + " == '' || " + setIn("object") + " != " + setIn("oldObject"),
	}
	completing := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ClusterMutatingConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    ClusterMutatingConfiguration,
			ClientConfig:            endpoint.ClientConfig(pathMutateCluster),
			Rules:                   ocmRules(clusterv1.GroupVersion, "managedclusters"),
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			MatchConditions:         []admissionregistrationv1.MatchCondition{notDeleted(), changed},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			TimeoutSeconds:          ptr.To[int32](patience),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	return []client.Object{
		completing,
		ocmConfiguration(endpoint, ClusterConfiguration, pathCluster, clusterv1.GroupVersion, "managedclusters", notDeleted(), changed),
		ocmConfiguration(endpoint, SetBindingConfiguration, pathSetBinding, clusterv1beta2.GroupVersion, "managedclustersetbindings", notDeleted()),
	}
}

// setIn is the set of a cluster, in CEL.
func setIn(object string) string {
	const label = "'" + clusterv1.ClusterSetLabel + "'"
	labels := object + ".metadata.labels"
	return "(has(" + labels + ") && " + label + " in " + labels + " ? " + labels + "[" + label + "] : '')"
}
