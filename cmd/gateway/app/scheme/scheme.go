// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme is the kinds that the gateway, and its commands, read and write on the hub.
package scheme

import (
	"fmt"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	ocmclusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	ocmclusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

// New returns a scheme with the kinds of Kubernetes, of cert-manager and of ours.
func New() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme,
		authenticationv1beta1.AddToScheme, multiclusterv1alpha1.AddToScheme, admissionv1alpha1.AddToScheme, cmv1.AddToScheme,
		viewv1alpha1.AddToScheme,
		azurefleetv1alpha1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme,
		ocmclusterv1.AddToScheme, ocmclusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, ocmclusterv1beta2.AddToScheme, addonv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}
