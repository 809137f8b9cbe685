// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/pkg/kube/readyourwrites"
)

// Members knows the ManagedClusters that mirror our members, which have our agent and no
// klusterlet.
type Members interface {
	// IsMember is true for one that does.
	IsMember(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error)
	// ForeignUser is the user of the member's agent if another product manages that identity, or
	// empty.
	ForeignUser(ctx context.Context, cluster *clusterv1.ManagedCluster) (string, error)
	// Report returns a function that writes the hub's knowledge of the member into its status, and
	// nil if it mirrors none.
	Report(ctx context.Context, cluster *clusterv1.ManagedCluster) (func(*clusterv1.ManagedClusterStatus), error)
}

// nobody is for a hub without members.
type nobody struct{}

func (nobody) IsMember(context.Context, *clusterv1.ManagedCluster) (bool, error) { return false, nil }

func (nobody) ForeignUser(context.Context, *clusterv1.ManagedCluster) (string, error) { return "", nil }

func (nobody) Report(context.Context, *clusterv1.ManagedCluster) (func(*clusterv1.ManagedClusterStatus), error) {
	return nil, nil
}

// Options configure the controllers for klusterlets.
type Options struct {
	// Users are those whose clusters are admitted and accepted automatically.
	Users []string
	// Signer signs; nil leaves that to the hub's controller manager.
	Signer *Signer
	// ForceDeleteWait is how long the agent of a deleted cluster may clean up; zero is 15 minutes.
	ForceDeleteWait time.Duration
	// Members knows the ManagedClusters that mirror our members. Nil: there are none.
	Members Members
	// Rights writes the permissions of clusters with higher priority. Nil: with the same priority
	// as everything else.
	Rights client.Client
	// Labels are on all objects that are created for clusters.
	Labels map[string]string
	// Workers is how many clusters each controller reconciles at a time.
	Workers int
	// Transform reduces cached roles, Leases and requests for certificates. Nil: no transform.
	Transform toolscache.TransformFunc
}

// SetupWithManager adds all controllers that let clusters with klusterlets join and leave.
func SetupWithManager(config *rest.Config, mgr ctrl.Manager, o Options) error {
	objects, err := managedcluster.NewCache(config, cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: o.Transform})
	if err != nil {
		return err
	}
	if err := mgr.Add(objects); err != nil {
		return err
	}
	own, err := readyourwrites.NewClient(mgr, mgr.GetConfig())
	if err != nil {
		return err
	}
	hub, now := mgr.GetClient(), clock.RealClock{}
	if o.Rights == nil {
		o.Rights = hub
	}
	if o.Members == nil {
		o.Members = nobody{}
	}
	for _, add := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&managedcluster.Reconciler{
			Clusters: own, Client: hub, Rights: o.Rights, Live: mgr.GetAPIReader(), Objects: objects, Recorder: mgr.GetEventRecorder(managedcluster.Name), Clock: now,
			ForceDeleteWait: o.ForceDeleteWait, Agents: o.agents, Report: o.Members.Report, Labels: o.Labels, Workers: o.Workers,
		},
		&Approver{
			Client: hub, Requests: objects, Recorder: mgr.GetEventRecorder(ApproverName), Clock: now,
			Users: o.Users, Signer: o.Signer, Account: o.account, Workers: o.Workers,
		},
		&LivenessReconciler{Client: hub, Leases: objects, Recorder: mgr.GetEventRecorder(LivenessName), Clock: now, IsMember: o.Members.IsMember, Workers: o.Workers},
		&AddOnReconciler{Client: hub, AddOns: mgr.GetCache(), Workers: o.Workers},
	} {
		if err := add.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// agents are the subjects of a cluster's permissions. For our member they are its agent's account
// and, outside of its namespace, the user of its only certificate; nobody else may use its name. An
// identity that another product manages may only report.
func (o Options) agents(ctx context.Context, of *clusterv1.ManagedCluster) (managedcluster.Subjects, error) {
	member, err := o.Members.IsMember(ctx, of)
	if err != nil || !member {
		return managedcluster.Subjects{Agents: managedcluster.Klusterlets(of.Name)}, err
	}
	seats := identity.FleetSeats()
	accounts := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: seats.Namespace(of.Name), Name: seats.Account}}
	subjects := managedcluster.Subjects{
		Agents:    accounts,
		Scorers:   accounts,
		Certified: []rbacv1.Subject{userSubject(Request{Cluster: of.Name, Agent: clusterv1.AgentName}.CommonName())},
	}
	foreign, err := o.Members.ForeignUser(ctx, of)
	if foreign != "" {
		subjects.Reporters = []rbacv1.Subject{userSubject(foreign)}
	}
	return subjects, err
}

// AgentsOf returns a function for the users that are agents of a cluster, in its namespace. Nil
// members: all agents are klusterlets.
func AgentsOf(members Members) func(context.Context, *clusterv1.ManagedCluster) ([]rbacv1.Subject, error) {
	if members == nil {
		members = nobody{}
	}
	return func(ctx context.Context, of *clusterv1.ManagedCluster) ([]rbacv1.Subject, error) {
		subjects, err := Options{Members: members}.agents(ctx, of)
		return subjects.Agents, err
	}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// account is the account of our agent on a member.
func (o Options) account(ctx context.Context, of *clusterv1.ManagedCluster) (string, error) {
	member, err := o.Members.IsMember(ctx, of)
	if err != nil || !member {
		return "", err
	}
	return identity.FleetSeats().Username(of.Name), nil
}
