// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/cluster/hub/azurefleet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/cluster/hub/profile"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/kube/readyourwrites"
	"fleetgate.io/fleetgate/pkg/kube/writepriority"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/expiry"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/mirror"
	"fleetgate.io/fleetgate/pkg/telemetry/fleetmetrics"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
)

// memberWorkers is the number of members that join, and of registrations that are processed, at the
// same time. Workers mostly wait: the hub's API server takes a tenth of a second for each Role and
// RoleBinding, to check for privilege escalation.
const memberWorkers = 64

// addMembers adds the cache of members for proxy and controllers, in every replica.
func (g *gateway) addMembers(context.Context) error { return g.manager.Add(g.members) }

// addMemberControllers lets clusters join and creates the gateway's account on each, in the leader.
func (g *gateway) addMemberControllers(_ context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) {
		return nil
	}
	hub := mgr.GetClient()
	var controllers []controller
	if g.Features.Serves(options.APIFleet) {
		members, err := g.membershipControllers(mgr)
		if err != nil {
			return err
		}
		controllers = append(controllers, members...)
	}
	if g.Features.Serves(options.APIRancher) {
		registering, err := g.registrationControllers(mgr)
		if err != nil {
			return err
		}
		controllers = append(controllers, registering...)
	}
	if g.Features.Serves(options.APIAzure) {
		controllers = append(controllers, &azurefleet.Reconciler{Client: hub, Recorder: mgr.GetEventRecorder(azurefleet.EventSource)})
	}
	if g.Features.Serves(options.APIProfile) {
		controllers = append(controllers, &profile.Reconciler{
			Client: g.order.Client(hub, writepriority.Always(writepriority.Extra)), Namespace: g.Hub.Namespace, Manager: g.Members.ClusterProfileManager, HubURL: g.Hub.URL, HubCA: g.HubCA,
		})
	}
	if g.Features.Serves(options.APIMSA) {
		tokens, err := g.tokenControllers(mgr)
		if err != nil {
			return err
		}
		controllers = append(controllers, tokens...)
	}
	if err := setUp(mgr, controllers); err != nil || !g.Features.Serves(options.APIFleet) {
		return err
	}
	return g.addFleetMetrics(mgr)
}

// addFleetMetrics exports the metrics of the fleet in the leader.
func (g *gateway) addFleetMetrics(mgr ctrl.Manager) error {
	fleet := &fleetmetrics.Fleet{Reader: mgr.GetClient(), Accounts: g.Features.Serves(options.APIMSA)}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return fleet.Run(ctx, metrics.Registry) }))
}

// pending returns what a leaving member's agent must clean up first. It is nil if members have only
// Works, which stay on members.
func (g *gateway) pending(hub client.Reader) func(context.Context, string) (string, error) {
	if !g.Features.ServesOCM(options.OCMRegistration) {
		return nil
	}
	return func(ctx context.Context, member string) (string, error) {
		return membermirror.Pending(ctx, hub, member)
	}
}

// membershipControllers let members join, and report their status.
func (g *gateway) membershipControllers(mgr ctrl.Manager) ([]controller, error) {
	// A report and a heartbeat of a member follow each other closely. With a stale cache, the
	// second would be written over a status that has already changed.
	own, err := readyourwrites.NewClient(mgr, mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	hub, live, recorder := mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(membership.EventSource)
	var moved *membership.HubAddress
	if g.Hub.MoveAgents {
		moved = &membership.HubAddress{URL: g.Hub.URL, CA: g.HubCA}
	}
	controllers := []controller{
		&membership.Reconciler{
			Pending: g.pending(hub),
			Moved:   moved,
			Client:  g.order.Client(hub, writepriority.Always(writepriority.Entry)), Live: live,
			Recorder: recorder, Clock: clock.RealClock{}, Seats: identity.FleetSeats(),
			Orders: []schema.GroupVersionKind{placementv1beta1.GroupVersion.WithKind("Work")},
			Rules:  memberRules, ClusterRules: tunnelRules, ForceDeleteWait: g.Members.ForceDeleteWaitTime.Duration,
			AgentTokenLifetime: g.Members.AgentTokenLifetime.Duration, Secrets: g.members, Concurrency: memberWorkers,
		},
		&membership.StatusReconciler{
			Client: own, Seats: identity.FleetSeats(), Leases: g.members, Recorder: recorder, Clock: clock.RealClock{}, Silence: g.Members.UnhealthyThreshold.Duration,
			TaintUnreachable: g.Members.TaintUnreachable, Version: version.Get(), Concurrency: memberWorkers,
		},
	}
	if level := g.Members.AgentsPriorityLevel; level != "" {
		controllers = append(controllers, &membership.FlowReconciler{Client: hub, Live: live, Level: level})
	}
	return controllers, nil
}

// registrationControllers register clusters: those that request it, those with a given kubeconfig,
// and those of Cluster API.
func (g *gateway) registrationControllers(mgr ctrl.Manager) ([]controller, error) {
	chart, err := agentChart()
	if err != nil {
		return nil, err
	}
	hub, live, recorder := mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(membership.EventSource)
	namespaces, defaults, labels := g.Registration.Chosen(), g.Registration.Defaults(), g.Registration.LabelRule()
	grants := &registration.GrantReconciler{
		Client: hub, Live: live, Clock: clock.RealClock{}, AgentTokenLifetime: g.Members.AgentTokenLifetime.Duration, Secrets: g.members,
		Namespaces: namespaces, Defaults: defaults, Labels: labels,
		Concurrency: memberWorkers,
	}
	return []controller{
		&registration.TokenReconciler{
			Client: hub, Live: live, Clock: clock.RealClock{},
			Hub: registration.Endpoint{URL: g.Hub.URL, CA: g.HubCA}, Namespaces: namespaces,
			Defaults: defaults,
		},
		grants,
		&registration.ReturnReconciler{Grants: grants, Recorder: recorder},
		&registration.ClusterReconciler{Client: hub, Live: live, Clock: clock.RealClock{}, Recorder: recorder, Labels: labels, Bundles: g.Features.Serves(options.APIFleet), Concurrency: memberWorkers},
		&registration.GroupReconciler{Client: hub, Clock: clock.RealClock{}},
		g.agentInstaller(mgr, chart),
		&clusterapi.Importer{
			Config: g.REST, CacheOptions: g.cacheOptions(mgr.GetRESTMapper()),
			Client: hub, Live: live, Clusters: mgr.GetCache(), Recorder: recorder,
			Namespaces: namespaces, Labels: g.Registration.ClusterAPILabels, Concurrency: memberWorkers,
		},
	}, nil
}

// agentInstaller installs agents on clusters whose kubeconfig the hub has.
func (g *gateway) agentInstaller(mgr ctrl.Manager, chart importer.Chart) *importer.Reconciler {
	return &importer.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Namespaces: g.Registration.Chosen(),
		HubURL: g.Hub.URL, HubCA: g.HubCA, Chart: chart, Image: g.Registration.AgentImage, Agents: g.Registration.Agents(), Concurrency: memberWorkers,
	}
}

// tokenControllers are the hub's controllers for tokens of members' accounts.
func (g *gateway) tokenControllers(mgr ctrl.Manager) ([]controller, error) {
	tokens, err := credentials.NewSecretCache(g.REST, g.cacheOptions(mgr.GetRESTMapper()))
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(tokens); err != nil {
		return nil, err
	}
	hub := g.order.Client(mgr.GetClient(), writepriority.Always(writepriority.Extra))
	return []controller{
		&credentials.Reconciler{Client: hub},
		&mirror.Reconciler{Client: hub, Secrets: tokens, GatewayNamespace: g.Hub.Namespace, Concurrency: memberWorkers},
		&expiry.Reconciler{Client: hub, Clock: clock.RealClock{}, GatewayNamespace: g.Hub.Namespace},
		&argocd.Reconciler{
			Client: hub, Live: mgr.GetAPIReader(), Secrets: g.members, Clock: clock.RealClock{},
			Recorder:  mgr.GetEventRecorder(membership.EventSource),
			Namespace: g.Members.ArgoCDNamespace, HubURL: g.Hub.URL, HubCA: g.HubCA,
		},
	}, nil
}

// memberRules are the rights of a member's agent in its namespace on the hub: only what its parts
// need.
func memberRules(member string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, of := range []func(string) []rbacv1.PolicyRule{enroll.HubRules, heartbeat.HubRules, apply.HubRules, credentials.HubRules, tunnelRules} {
		rules = append(rules, of(member)...)
	}
	return rules
}

// tunnelRules let a member's agent open a tunnel for this member only, in its namespace. Agents of
// the previous version have the right on the whole hub.
func tunnelRules(member string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{tunnelv1alpha1.GroupVersion.Group},
		Resources:     []string{tunnelv1alpha1.Resource + "/" + tunnelv1alpha1.SubresourceProxy},
		ResourceNames: []string{member},
		Verbs:         []string{"create"},
	}}
}
