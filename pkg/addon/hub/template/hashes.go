// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// HashesName is the name of the controller that Hashes is.
const HashesName = "clustermanagementaddon.template"

type (
	configKind = addonv1alpha1.ConfigGroupResource
	referent   = addonv1alpha1.ConfigReferent
)

// The kinds of configurations that an add-on with a template has.
func templates() configKind {
	return configKind{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}
}

// DeploymentConfigs is the kind AddOnDeploymentConfig.
func DeploymentConfigs() addonv1alpha1.ConfigGroupResource {
	return configKind{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
}

// objectOf is an empty configuration of a kind; nil for a kind that templates do not have. It has no Go
// type, because the hash covers fields that this program does not know.
func objectOf(kind configKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	switch kind {
	case templates():
		object.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("AddOnTemplate"))
	case DeploymentConfigs():
		object.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"))
	default:
		return nil
	}
	return object
}

// UsesTemplates reports whether an add-on has templates instead of a manager of its own.
func UsesTemplates(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	for _, supported := range addOn.Spec.SupportedConfigs {
		if supported.ConfigGroupResource == templates() {
			return objects.ManagedByHub(addOn)
		}
	}
	return false
}

// isServed reports whether the gateway is the manager of an add-on, so that nobody else writes hashes.
func isServed(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	return UsesTemplates(addOn) || addOn.Name == addonv1alpha1.FleetgateAgent && objects.ManagedByHub(addOn)
}

// configs reads configurations from a cache.
type configs struct{ client.Reader }

// read returns a configuration with its hash; nil if it does not exist.
func (c configs) read(ctx context.Context, kind configKind, name referent) (*unstructured.Unstructured, string, error) {
	object := objectOf(kind)
	key := client.ObjectKey{Namespace: name.Namespace, Name: name.Name}
	if err := c.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", fmt.Errorf("reading %s %s: %w", object.GetKind(), key, err)
	}
	sum, err := hashOf(object)
	return object, sum, err
}

// hashOf is the hash of everything but metadata and status, as Open Cluster Management computes it.
func hashOf(object *unstructured.Unstructured) (string, error) {
	content := map[string]any{}
	for field, value := range object.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[field] = value
		}
	}
	return hash.JSON(content)
}

// OfConfiguration queues the ManagedClusterAddOns that a configuration of this kind concerns.
func OfConfiguration(cache client.Reader, kind configKind) handler.EventHandler {
	return objects.OfConfiguration(cache, kind, func(config client.Object) func(*addonv1alpha1.ManagedClusterAddOn) bool {
		return concernedBy(config.(*unstructured.Unstructured), kind)
	})
}

// concernedBy accepts add-ons whose own spec names a configuration, and those that were given this version of
// it. The rollout gives it to the others, whose events follow.
func concernedBy(config *unstructured.Unstructured, kind configKind) func(*addonv1alpha1.ManagedClusterAddOn) bool {
	name := referent{Namespace: config.GetNamespace(), Name: config.GetName()}
	sum, err := hashOf(config)
	given := addonv1alpha1.ConfigSpecHash{ConfigReferent: name, SpecHash: sum}
	return func(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
		return err != nil || names(addOn, kind, name) || slices.ContainsFunc(addOn.Status.ConfigReferences, func(has addonv1alpha1.ConfigReference) bool {
			return has.ConfigGroupResource == kind && has.DesiredConfig != nil && *has.DesiredConfig == given
		})
	}
}

// names reports whether the spec of an add-on of a cluster names a configuration.
func names(addOn *addonv1alpha1.ManagedClusterAddOn, kind configKind, name referent) bool {
	return slices.Contains(addOn.Spec.Configs, addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: name})
}

// Hashes writes the hashes of configurations into the status of ClusterManagementAddOns.
type Hashes struct {
	// Client reads from a cache with the indexes of package objects.
	Client client.Client
	// Configs is a cache that keeps configurations without Go types.
	Configs client.Reader
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Hashes)(nil)

// SetupWithManager reconciles an add-on when it or a configuration changes. Configurations are few.
func (r *Hashes) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return enqueue.Those(ctx, r.Client, &addonv1alpha1.ClusterManagementAddOnList{}, isServed)
	})
	return reconcileutil.SetupError(HashesName, ctrl.NewControllerManagedBy(mgr).
		Named(HashesName).
		For(&addonv1alpha1.ClusterManagementAddOn{}).
		Watches(objectOf(templates()), all).
		Watches(objectOf(DeploymentConfigs()), all).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *Hashes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ClusterManagementAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, addOn, "reading ClusterManagementAddOn %q", req.Name)
	if !exists || addOn.DeletionTimestamp != nil || !isServed(addOn) {
		return ctrl.Result{}, err
	}
	status := addOn.Status.DeepCopy()
	for i := range status.DefaultConfigReferences {
		reference := &status.DefaultConfigReferences[i]
		if err := r.set(ctx, reference.ConfigGroupResource, reference.DesiredConfig); err != nil {
			return ctrl.Result{}, err
		}
	}
	for i := range status.InstallProgressions {
		for n := range status.InstallProgressions[i].ConfigReferences {
			reference := &status.InstallProgressions[i].ConfigReferences[n]
			if err := r.set(ctx, reference.ConfigGroupResource, reference.DesiredConfig); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		addOn.Status = *status
	}, "writing the hashes of configurations into the status of ClusterManagementAddOn %q", addOn.Name)))
}

func (r *Hashes) set(ctx context.Context, kind configKind, desired *addonv1alpha1.ConfigSpecHash) error {
	if desired == nil || desired.Name == "" || objectOf(kind) == nil {
		return nil
	}
	var err error
	_, desired.SpecHash, err = configs{r.Configs}.read(ctx, kind, desired.ConfigReferent)
	return err
}
