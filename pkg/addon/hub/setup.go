// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/addon/hub/builtin"
	"fleetgate.io/fleetgate/pkg/addon/hub/configuration"
	"fleetgate.io/fleetgate/pkg/addon/hub/fleetagent"
	"fleetgate.io/fleetgate/pkg/addon/hub/install"
	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/progress"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	"fleetgate.io/fleetgate/pkg/addon/hub/token"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// Options configure the controllers.
type Options struct {
	Clock clock.PassiveClock
	// Workers is how many objects each controller reconciles at a time.
	Workers int
	// Members knows the ManagedClusters of members. Nil: none of them is shown with the features of its
	// agent.
	Members builtin.Members
	// Delivered renders agents for clusters with klusterlets, which register in namespace
	// RegistrationNamespace. Nil: add-on fleetgate-agent is not served.
	Delivered             fleetagent.Agents
	RegistrationNamespace string
	// Agents are the users of a cluster that may request tokens of the accounts of its add-ons.
	Agents func(context.Context, *clusterv1.ManagedCluster) ([]rbacv1.Subject, error)
	// Authority checks and signs certificates of add-ons with templates.
	Authority template.Authority
	// HashOf is the hash of the spec of a ManifestWork from the manager's cache.
	HashOf func(*workv1.ManifestWork) (string, error)
	// Transform reduces cached accounts and roles. Nil: no transform.
	Transform toolscache.TransformFunc
}

// SetupWithManager adds all controllers of add-ons. They start once the hub serves the other kinds
// of Open Cluster Management that they read.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := objects.AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	accounts, err := token.NewCache(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: o.Transform})
	if err != nil {
		return err
	}
	if err := mgr.Add(accounts); err != nil {
		return fmt.Errorf("adding the cache of the accounts of add-ons: %w", err)
	}
	templates, err := template.NewCache(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: o.Transform})
	if err != nil {
		return err
	}
	if err := mgr.Add(templates); err != nil {
		return fmt.Errorf("adding the cache for add-ons with templates: %w", err)
	}
	serveTemplates, err := o.templates(ctx, mgr, templates)
	if err != nil {
		return err
	}
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Then: func(mgr ctrl.Manager) error { return o.start(mgr, accounts, serveTemplates...) },
		Names: []string{
			"managedclusters.cluster.open-cluster-management.io", "placements.cluster.open-cluster-management.io",
			"placementdecisions.cluster.open-cluster-management.io", "manifestworks.work.open-cluster-management.io",
		},
		Missing: "Add-ons are not reconciled until the hub serves ManagedClusters, Placements and ManifestWorks",
	})
}

// controller is what start adds to a manager.
type controller interface{ SetupWithManager(ctrl.Manager) error }

// templates are the controllers of add-ons with templates.
func (o Options) templates(ctx context.Context, mgr ctrl.Manager, cached cache.Cache) ([]controller, error) {
	manager, err := client.New(template.AsManager(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for what templates ask for: %w", err)
	}
	bindings := &template.Bindings{Manager: manager, Cache: cached}
	if err := bindings.AddIndexes(ctx); err != nil {
		return nil, err
	}
	hub, configs := mgr.GetClient(), mgr.GetCache()
	return []controller{
		&template.Hashes{Client: hub, Configs: configs, Workers: o.Workers},
		&template.Reconciler{Client: hub, Live: mgr.GetAPIReader(), Configs: configs, HashOf: o.HashOf, Bindings: bindings, Workers: o.Workers},
		&template.Requests{
			Authority: o.Authority, Client: hub, Configs: configs, Cache: cached, Manager: manager,
			Recorder: mgr.GetEventRecorder(template.RequestsName), Clock: o.Clock, Workers: o.Workers,
		},
	}, nil
}

// reportsProgress reports whether the gateway is the manager of an add-on, which then writes condition Progressing
// with the rest of the status.
func (o Options) reportsProgress(of *addonv1alpha1.ClusterManagementAddOn) bool {
	return template.UsesTemplates(of) || o.Delivered != nil && of.Name == addonv1alpha1.FleetgateAgent
}

func (o Options) start(mgr ctrl.Manager, accounts cache.Cache, more ...controller) error {
	hub := mgr.GetClient()
	controllers := append(more,
		&install.Reconciler{Client: hub, Live: mgr.GetAPIReader(), Clock: o.Clock, Workers: o.Workers},
		&configuration.Reconciler{Client: hub, Clock: o.Clock, Workers: o.Workers},
		&progress.Reconciler{Client: hub, Reported: o.reportsProgress, Workers: o.Workers},
		&token.Reconciler{Client: hub, Objects: accounts, Live: mgr.GetAPIReader(), Agents: o.Agents, Workers: o.Workers},
	)
	if o.Members != nil {
		controllers = append(controllers, &builtin.Reconciler{Client: hub, Members: o.Members, Workers: o.Workers})
	}
	if o.Delivered != nil {
		controllers = append(controllers, &fleetagent.Reconciler{
			Client: hub, Live: mgr.GetAPIReader(), Configs: mgr.GetCache(), Agents: o.Delivered, Namespace: o.RegistrationNamespace, Workers: o.Workers,
		})
	}
	for _, add := range controllers {
		if err := add.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}
