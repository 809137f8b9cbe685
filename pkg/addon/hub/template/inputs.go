// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/template/render"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// instance is an add-on of a cluster, with what it is an instance of.
type instance struct {
	*addonv1alpha1.ManagedClusterAddOn
	of      *addonv1alpha1.ClusterManagementAddOn
	cluster *clusterv1.ManagedCluster
}

// read reads an add-on of a cluster from a cache. Parts that do not exist are empty.
func read(ctx context.Context, cache client.Reader, key types.NamespacedName) (*instance, error) {
	i := &instance{ManagedClusterAddOn: &addonv1alpha1.ManagedClusterAddOn{}, of: &addonv1alpha1.ClusterManagementAddOn{}, cluster: &clusterv1.ManagedCluster{}}
	if _, err := reconcileutil.GetIfExists(ctx, cache, key, i.ManagedClusterAddOn, "reading ManagedClusterAddOn %s", key); err != nil {
		return nil, err
	}
	if _, err := reconcileutil.GetIfExists(ctx, cache, client.ObjectKey{Name: key.Namespace}, i.cluster, "reading ManagedCluster %q", key.Namespace); err != nil {
		return nil, err
	}
	_, err := reconcileutil.GetIfExists(ctx, cache, client.ObjectKey{Name: key.Name}, i.of, "reading ClusterManagementAddOn %q", key.Name)
	return i, err
}

// reference is the first configuration of a kind that the add-on was given, nil for none. One that no
// spec names does not count: agents of clusters may write the status.
func (i *instance) reference(kind configKind) *addonv1alpha1.ConfigSpecHash {
	for _, reference := range i.Status.ConfigReferences {
		if reference.ConfigGroupResource == kind && reference.DesiredConfig != nil && i.offers(kind, reference.DesiredConfig.ConfigReferent) {
			return reference.DesiredConfig
		}
	}
	return nil
}

func (i *instance) offers(kind configKind, name referent) bool {
	offered := addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: name}
	return names(i.ManagedClusterAddOn, kind, name) ||
		slices.ContainsFunc(i.of.Spec.SupportedConfigs, func(has addonv1alpha1.ConfigMeta) bool {
			return has.ConfigGroupResource == kind && has.DefaultConfig != nil && *has.DefaultConfig == name
		}) ||
		slices.ContainsFunc(i.of.Spec.InstallStrategy.Placements, func(of addonv1alpha1.PlacementStrategy) bool {
			return slices.Contains(of.Configs, offered)
		})
}

// inputs reads what the add-on is rendered from. It returns nil while the rollout has not given the
// cluster the current configurations, unless the add-on is being deleted, and a refusal for what people
// have to correct.
func (c configs) inputs(ctx context.Context, of *instance) (*render.Inputs, error) {
	leaving := of.DeletionTimestamp != nil
	in := &render.Inputs{
		AddOn: of.Name, Cluster: of.Namespace, Mirrors: of.cluster.Annotations[addonv1alpha1.ImageRegistriesAnnotation],
		Template: &addonv1alpha1.AddOnTemplate{},
	}
	named := of.reference(templates())
	if named == nil && !meta.IsStatusConditionTrue(of.Status.Conditions, addonv1alpha1.ConditionConfigured) {
		return nil, nil
	}
	if named == nil {
		return nil, refuse("No AddOnTemplate is configured for the add-on: name one in its ClusterManagementAddOn")
	}
	current, err := c.load(ctx, templates(), named, in.Template)
	if err != nil || !current && !leaving {
		return nil, err
	}
	if in.Config, current, err = c.deploymentConfig(ctx, of); err != nil || !current && !leaving {
		return nil, err
	}
	return in, nil
}

// deploymentConfig is the AddOnDeploymentConfig that an add-on was given, nil for none, and whether that
// is its current version.
func (c configs) deploymentConfig(ctx context.Context, of *instance) (*addonv1alpha1.AddOnDeploymentConfigSpec, bool, error) {
	named := of.reference(DeploymentConfigs())
	if named == nil {
		return nil, true, nil
	}
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	current, err := c.load(ctx, DeploymentConfigs(), named, config)
	return &config.Spec, current, err
}

// load reads a configuration and reports whether it is the version that the add-on was given.
func (c configs) load(ctx context.Context, kind configKind, desired *addonv1alpha1.ConfigSpecHash, into any) (bool, error) {
	object, sum, err := c.read(ctx, kind, desired.ConfigReferent)
	switch {
	case err != nil:
		return false, err
	case object == nil:
		return false, refuse("%s %q does not exist: create it, or configure another one", objectOf(kind).GetKind(), nameOf(desired.ConfigReferent))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return false, refuse("%s %q is invalid: %w", object.GetKind(), nameOf(desired.ConfigReferent), err)
	}
	return sum == desired.SpecHash, nil
}

func nameOf(name referent) string {
	if name.Namespace == "" {
		return name.Name
	}
	return name.Namespace + "/" + name.Name
}

func refuse(format string, args ...any) *refusal.Refusal {
	return refusal.New(addonv1alpha1.ReasonManifestWorkApplyFailed, format, args...)
}
