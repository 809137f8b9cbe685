// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/cmd/gateway/app/scheme"
	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/kube/intern"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

// hub has the connections to the hub, once it serves every kind that the gateway uses.
type hub struct {
	scheme *runtime.Scheme
	// direct reads and writes the hub without a cache.
	direct    client.Client
	clientset kubernetes.Interface
	installer *install.Installer
	// common interns strings that objects in all caches of this process share.
	common intern.Table
}

// openHub returns when the hub serves every kind that the gateway uses.
func openHub(ctx context.Context, config *options.Config) (*hub, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config.REST, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.REST.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.REST.Host, err)
	}
	installer, err := newInstaller(config, direct)
	if err != nil {
		return nil, err
	}
	if err := installDefinitions(ctx, config, installer, clientset); err != nil {
		return nil, err
	}
	return &hub{scheme: kinds, direct: direct, clientset: clientset, installer: installer}, nil
}

// definitionsOf returns the CRDs of the chosen APIs. Parts of Open Cluster Management's API share a
// group, so theirs are listed by name.
func definitionsOf(parts *options.Features) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	groups := map[string][]string{
		options.APIFleet:     {clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupVersion.Group},
		options.APIRancher:   {registrationv1alpha1.GroupVersion.Group},
		options.APIMSA:       {authenticationv1beta1.GroupVersion.Group},
		options.APIGateway:   {viewv1alpha1.GroupVersion.Group},
		options.APIProfile:   {multiclusterv1alpha1.GroupVersion.Group},
		options.APIAdmission: {admissionv1alpha1.GroupVersion.Group},
		options.APIAzure:     {azurefleetv1alpha1.GroupVersion.Group},
	}
	var chosen, named []string
	for _, api := range parts.APIs {
		chosen = append(chosen, groups[api]...)
	}
	if parts.ServesOCM(options.OCMWorks) {
		chosen = append(chosen, workv1.GroupName)
	}
	if parts.ServesOCM(options.OCMPlacement) {
		named = append(named, crds.Placements()...)
	}
	if parts.ServesOCM(options.OCMRegistration) {
		named = append(named, registrationKinds()...)
	}
	if parts.ServesOCM(options.OCMAddOns) {
		chosen = append(chosen, addonv1alpha1.GroupName)
	}
	definitions, err := crds.ForHub(chosen...)
	if err != nil {
		return nil, err
	}
	others, err := crds.Named(named...)
	return append(definitions, others...), err
}

// newInstaller returns the installer for the chosen APIs.
func newInstaller(config *options.Config, direct client.Client) (*install.Installer, error) {
	definitions, err := definitionsOf(&config.Features)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	installer := &install.Installer{
		Client:      direct,
		Definitions: definitions,
		Hub: install.Hub{
			Namespace: config.Hub.Namespace, Service: config.Serving.Service, ExternalName: config.Install.ExternalName, APIPort: int32(config.Serving.SecurePort),
		},
		Version: version.Get(),
		Adopt:   config.Install.Adopt,
		Clock:   clock.RealClock{},
	}
	if config.Features.ServesProxy() {
		installer.APIs = []install.GroupVersion{
			{Group: gatewayv1alpha1.GroupVersion.Group, Version: gatewayv1alpha1.GroupVersion.Version},
			{Group: tunnelv1alpha1.GroupVersion.Group, Version: tunnelv1alpha1.GroupVersion.Version},
		}
	}
	switch {
	case !config.Features.TakesReviews():
	case config.Webhooks.Caller == options.CallerCertificate:
		installer.Obsolete = append(installer.Obsolete, reviewsAPI(config).APIService())
	default:
		installer.APIs = append(installer.APIs, reviewsAPI(config))
	}
	return installer, nil
}

// installDefinitions installs the CRDs that everything else needs, or waits until another gateway
// has installed them.
func installDefinitions(ctx context.Context, config *options.Config, installer *install.Installer, clientset kubernetes.Interface) error {
	if !config.Install.Enabled {
		return installer.WaitForDefinitions(ctx)
	}
	if err := installer.InstallBase(ctx); err != nil {
		return err
	}
	return install.Exclusively(ctx, clientset, config.Hub.Namespace, replicaIdentity(), installer.InstallDefinitions)
}

// replicaIdentity distinguishes this process from all others, also on the same machine.
func replicaIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return host + "_" + string(uuid.NewUUID())
}
