// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestKindPropagates(t *testing.T) {
	cases := map[schema.GroupKind]bool{
		{Kind: "ConfigMap"}:                                                                 true,
		{Group: "apps", Kind: "Deployment"}:                                                 true,
		{Group: "example.com", Kind: "Pod"}:                                                 true,
		{Kind: "Pod"}:                                                                       false,
		{Kind: "Node"}:                                                                      false,
		{Kind: "Event"}:                                                                     false,
		{Group: "events.k8s.io", Kind: "Event"}:                                             false,
		{Group: "coordination.k8s.io", Kind: "Lease"}:                                       false,
		{Group: "placement.kubernetes-fleet.io", Kind: "Work"}:                              false,
		{Group: "cluster.kubernetes-fleet.io", Kind: "MemberCluster"}:                       false,
		{Group: "fleet.cattle.io", Kind: "ClusterRegistrationToken"}:                        false,
		{Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"}:                            false,
		{Group: "multicluster.x-k8s.io", Kind: "PlacementDecision"}:                         false,
		{Group: "cluster.open-cluster-management.io", Kind: "PlacementDecision"}:            false,
		{Group: "cluster.open-cluster-management.io", Kind: "Placement"}:                    true,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                                 true,
		{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:                        false,
		{Group: "networking.fleet.azure.com", Kind: "ServiceExport"}:                        true,
		{Group: "authentication.open-cluster-management.io", Kind: "ManagedServiceAccount"}: false,
	}
	for kind, want := range cases {
		if got := KindPropagates(kind); got != want {
			t.Errorf("KindPropagates(%s) = %t, want %t", kind, got, want)
		}
	}
}

func TestNamespacePropagates(t *testing.T) {
	cases := map[string]bool{
		"shop": true, "defaults": true, "my-fleet-shop": true,
		"default": false, "kube-system": false, "fleet-system": false, "fleet-member-a": false,
		"open-cluster-management-managed-serviceaccount": false, "open-cluster-management-managed-serviceaccount-second": false, "open-cluster-management-hub": true,
	}
	for name, want := range cases {
		if got := NamespacePropagates(name); got != want {
			t.Errorf("NamespacePropagates(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestMetadataPropagates(t *testing.T) {
	owned := metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{{Name: "x"}}}
	cases := map[string]struct {
		kind schema.GroupKind
		meta metav1.ObjectMeta
		want bool
	}{
		"ReplicaSet of a Deployment": {schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, owned, false},
		"ReplicaSet of a user":       {schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, metav1.ObjectMeta{Name: "a"}, true},
		"ControllerRevision":         {schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}, owned, false},
		"an owned ConfigMap":         {schema.GroupKind{Kind: "ConfigMap"}, owned, true},
		"a CiliumEndpoint of a Pod": {schema.GroupKind{Group: "cilium.io", Kind: "CiliumEndpoint"}, metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod"}}}, false},
		"an object of a ReplicaSet": {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}}, false},
		"an object of another kind of Pod": {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Pod"}}}, true},
		"a certificate of OpenShift's service CA": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{
			Annotations: map[string]string{"service.beta.openshift.io/originating-service-uid": "u"}}, false},
		"root CA of a namespace":         {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "kube-root-ca.crt"}, false},
		"default account of a namespace": {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "default"}, false},
		"a user's account":               {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "web"}, true},
		"a token Secret":                 {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/service-account.name": "web"}}, false},
		"a Secret of a member's account": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"}}, false},
		"a Secret for Argo CD":           {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Labels: map[string]string{"fleetgate.io/member": "m1"}}, false},
		"the gateway's authority":        {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Name: "gateway-serving-ca"}, false},
		"the gateway's certificate by cert-manager": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Name: "gateway-serving", Annotations: map[string]string{
			"cert-manager.io/issuer-name": "gateway-ca", "cert-manager.io/certificate-name": "gateway-serving",
		}}, false},
		"a user's certificate of such a name": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Name: "gateway-serving"}, true},
		"a ConfigMap of that name":            {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "gateway-serving-ca"}, true},
		"a Secret of a registration token":    {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "fleet.cattle.io/v1alpha1", Kind: "ClusterRegistrationToken"}}}, false},
		"an object of a controller":           {schema.GroupKind{Group: "example.com", Kind: "Thing"}, metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: "x", Controller: new(true)}}}, false},
		"object that only controllers wrote":  {schema.GroupKind{Group: "example.com", Kind: "Thing"}, metav1.ObjectMeta{ManagedFields: managedBy("kube-controller-manager")}, false},
		"default role of the API server": {schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
			metav1.ObjectMeta{Name: "edit", ManagedFields: managedBy("kube-apiserver", "clusterrole-aggregation-controller")}, false},
		"APIService of a definition": {schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
			metav1.ObjectMeta{Name: "v1.example.org", ManagedFields: managedBy("kube-apiserver")}, false},
		"APIService of the gateway": {schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
			metav1.ObjectMeta{Name: "v1alpha1.cluster.core.oam.dev", ManagedFields: managedBy("helm")}, false},
		"APIService of a user": {schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
			metav1.ObjectMeta{Name: "v1beta1.custom.metrics.k8s.io", ManagedFields: managedBy("helm")}, true},
		"role of a user that is aggregated": {schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
			metav1.ObjectMeta{Name: "monitoring", ManagedFields: managedBy("kubectl-create", "clusterrole-aggregation-controller")}, true},
		"account of OpenShift in each namespace": {schema.GroupKind{Kind: "ServiceAccount"},
			metav1.ObjectMeta{Name: "builder", ManagedFields: managedBy("openshift-controller-manager")}, false},
		"object that a user wrote too":   {schema.GroupKind{Group: "example.com", Kind: "Thing"}, metav1.ObjectMeta{ManagedFields: managedBy("kube-controller-manager", "kubectl")}, true},
		"object with annotation skip":    {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{Annotations: map[string]string{placementv1beta1.PlaceAnnotation: placementv1beta1.PlaceSkip}}, false},
		"namespace with annotation skip": {schema.GroupKind{Kind: "Namespace"}, metav1.ObjectMeta{Annotations: map[string]string{placementv1beta1.PlaceAnnotation: placementv1beta1.PlaceSkip}}, false},
		"controlled object with annotation always": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{Name: "x", Controller: new(true)}}, Annotations: map[string]string{placementv1beta1.PlaceAnnotation: placementv1beta1.PlaceAlways}}, true},
		"Secret of the hub with annotation always": {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{
			Labels: map[string]string{"fleetgate.io/member": "m1"}, Annotations: map[string]string{placementv1beta1.PlaceAnnotation: placementv1beta1.PlaceAlways}}, false},
		"provisioned volume":                           {schema.GroupKind{Kind: "PersistentVolume"}, metav1.ObjectMeta{Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "ebs"}}, false},
		"a static volume":                              {schema.GroupKind{Kind: "PersistentVolume"}, metav1.ObjectMeta{Name: "a"}, true},
		"leader election lock":                         {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"}}, false},
		"Endpoints that an author wrote for a Service": {schema.GroupKind{Kind: "Endpoints"}, metav1.ObjectMeta{Name: "service", ManagedFields: managedBy("kubectl")}, true},
		"Endpoints that a controller wrote":            {schema.GroupKind{Kind: "Endpoints"}, metav1.ObjectMeta{Name: "other", ManagedFields: managedBy("kube-controller-manager")}, false},
		"a user's Secret":                              {schema.GroupKind{Kind: "Secret"}, metav1.ObjectMeta{Name: "a"}, true},
		"Endpoints of a Service":                       {schema.GroupKind{Kind: "Endpoints"}, metav1.ObjectMeta{Name: "service", Labels: map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}, false},
		"Endpoints of a user":                          {schema.GroupKind{Kind: "Endpoints"}, metav1.ObjectMeta{Name: "a"}, true},
		"a managed EndpointSlice":                      {schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, metav1.ObjectMeta{Labels: map[string]string{"endpointslice.kubernetes.io/managed-by": "x"}}, false},
		"copy of a ClusterServiceVersion": {schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"},
			metav1.ObjectMeta{Name: "operator.v1", Labels: map[string]string{"olm.copiedFrom": "operators"}}, false},
		"ClusterServiceVersion of a user": {schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}, metav1.ObjectMeta{Name: "operator.v1"}, true},
		"Backup of a Schedule": {schema.GroupKind{Group: "velero.io", Kind: "Backup"},
			metav1.ObjectMeta{Name: "daily-1", Labels: map[string]string{"velero.io/schedule-name": "daily"}}, false},
		"Backup of a user":        {schema.GroupKind{Group: "velero.io", Kind: "Backup"}, metav1.ObjectMeta{Name: "once"}, true},
		"EndpointSlice of a user": {schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, metav1.ObjectMeta{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: tc.meta}
			for range 2 { // as an informer may do
				if _, err := trim(object); err != nil {
					t.Fatal(err)
				}
			}
			got := metadataPropagates(tc.kind, object)
			if got != tc.want {
				t.Errorf("metadataPropagates() = %t, want %t", got, tc.want)
			}
		})
	}
}

func managedBy(managers ...string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range managers {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate})
	}
	return entries
}

func TestContentPropagates_RejectsControllersObjectsThatUsersLabelled(t *testing.T) {
	claim := parse(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data-db-0
  managedFields:
  - {manager: kube-controller-manager, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:resources": {}}}}
  - {manager: kubectl-label, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:mine": {}}}}}
`)
	if contentPropagates(claim) {
		t.Error("StatefulSet's claim would be sent to members")
	}
	release := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.a.v1}, type: helm.sh/release.v1}")
	if contentPropagates(release) {
		t.Error("Helm release of the hub would be sent to members")
	}
}

func TestFromTemplate(t *testing.T) {
	set := parse(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: my-db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}")
	for name, want := range map[string]bool{"data-my-db-0": true, "data-my-db-12": true, "data-my-db-": false, "data-my-db-a": false, "log-my-db-0": false, "data-my-db-0-x": false, "data": false} {
		if got := fromTemplate(name, set); got != want {
			t.Errorf("fromTemplate(%q) = %t", name, got)
		}
	}
}

func TestContentPropagates_RejectsTokenSecretsByType(t *testing.T) {
	token := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}")
	if contentPropagates(token) {
		t.Error("a service account token of the hub would be sent to members")
	}
	values := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, type: fleet.cattle.io/cluster-registration-values}")
	if contentPropagates(values) {
		t.Error("a registration token of the hub would be sent to members")
	}
	if opaque := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque}"); !contentPropagates(opaque) {
		t.Error("Opaque Secret is not sent")
	}
}

// Strimzi and others set owner references without marking the controller.
func TestWithoutDependents(t *testing.T) {
	things := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}}
	const ownerField = `"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}`
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1("{" + fields + "}")}
	}
	for name, tc := range map[string]struct {
		owner   types.UID
		place   string
		managed []metav1.ManagedFieldsEntry
		want    bool
	}{
		"created by the controller of a selected owner": {
			owner: "1", managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField+`,"f:data":{"f:a":{}}`)}},
		"the same, labelled by a user": {
			owner: "1", managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField+`,"f:data":{"f:a":{}}`),
				entry("kubectl-label", `"f:metadata":{"f:labels":{"f:a":{}}}`)}},
		"without content": {
			owner: "1", managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField)}},
		"of an owner that is not selected": {
			owner: "2", managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField+`,"f:data":{"f:a":{}}`)}, want: true},
		"of an author, to which a controller added an owner": {
			owner: "1", managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField), entry("kubectl", `"f:data":{"f:a":{}}`)}, want: true},
		"to be placed always": {
			owner: "1", place: placementv1beta1.PlaceAlways,
			managed: []metav1.ManagedFieldsEntry{entry("operator", ownerField+`,"f:data":{"f:a":{}}`)}, want: true},
		"without managed fields": {owner: "1", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "dependent", UID: "3", ManagedFields: tc.managed,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "owner", UID: tc.owner}}}}
			if tc.place != "" {
				object.Annotations = map[string]string{placementv1beta1.PlaceAnnotation: tc.place}
			}
			for range 2 { // as an informer may do
				if _, err := trim(object); err != nil {
					t.Fatal(err)
				}
			}
			got := withoutDependents([]candidate{candidateOf(things, object), {kind: things, name: "owner", uid: "1"}})
			if placed := len(got) == 2; placed != tc.want {
				t.Errorf("placed is %t, want %t", placed, tc.want)
			}
		})
	}
}
