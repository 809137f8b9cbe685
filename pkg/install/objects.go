// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// LabelManagedBy is on everything that this package writes, with the value ManagedBy. An object
	// without it has a foreign owner.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "fleetgate"
	// AnnotationVersion is on all objects that --install writes. Its value is the version of
	// the gateway that wrote the object.
	AnnotationVersion = "fleetgate.io/installed-version"

	// portName is the name of the API's port in the Service.
	portName = "api"
	// Aggregated groups rank below all built-in ones. Each has one version.
	groupPriority, versionPriority = 2000, 100
)

// GroupVersion is one aggregated API.
type GroupVersion struct {
	Group, Version string
	// Port is the Service's port for it, if it is not Hub.APIPort.
	Port int32
}

// Hub describes how the hub's API server reaches the gateway.
type Hub struct {
	// Namespace is the gateway's namespace.
	Namespace string
	// Service is the name of the gateway's Service.
	Service string
	// ExternalName is a DNS name or address of a gateway outside the hub. It is empty if the gateway
	// runs in a Pod and the chart created the Service.
	ExternalName string
	// APIPort is the port of the aggregated API.
	APIPort int32
	// CABundle verifies the gateway's serving certificate (PEM).
	CABundle []byte
}

// base returns the namespace, and the Service of a gateway outside the hub.
func (h Hub) base() []client.Object {
	objects := []client.Object{&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: h.Namespace},
	}}
	if h.ExternalName == "" {
		return objects
	}
	return append(objects, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Service},
		Spec: corev1.ServiceSpec{
			Type:         corev1.ServiceTypeExternalName,
			ExternalName: h.ExternalName,
			Ports:        []corev1.ServicePort{{Name: portName, Port: h.APIPort, TargetPort: intstr.FromInt32(h.APIPort)}},
		},
	})
}

// APIService is an aggregated API for its removal, with only its name.
func (v GroupVersion) APIService() client.Object {
	return &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: v.Version + "." + v.Group},
	}
}

func (h Hub) apiServices(apis []GroupVersion) []client.Object {
	var objects []client.Object
	for _, api := range apis {
		port := h.APIPort
		if api.Port != 0 {
			port = api.Port
		}
		objects = append(objects, &apiregistrationv1.APIService{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
			ObjectMeta: metav1.ObjectMeta{Name: api.Version + "." + api.Group},
			Spec: apiregistrationv1.APIServiceSpec{
				Group:                api.Group,
				Version:              api.Version,
				GroupPriorityMinimum: groupPriority,
				VersionPriority:      versionPriority,
				CABundle:             h.CABundle,
				Service: &apiregistrationv1.ServiceReference{
					Namespace: h.Namespace,
					Name:      h.Service,
					Port:      ptr.To(port),
				},
			},
		})
	}
	return objects
}
