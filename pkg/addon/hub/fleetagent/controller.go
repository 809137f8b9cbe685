// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Name is the controller's name.
const Name = "managedclusteraddon.fleetagent"

// Agents renders agents, and knows which of them are members.
type Agents interface {
	// Manifests returns the manifests of a Cluster's agent and their version, or only the version if
	// that is the known one. Those of an agent that is not registered contain a credential with which
	// only this Cluster can register. Proxy and nodes are those of config, which may be nil.
	Manifests(ctx context.Context, cluster *registrationv1alpha1.Cluster, config *addonv1alpha1.AddOnDeploymentConfigSpec, registered bool, known string) ([]*unstructured.Unstructured, string, *refusal.Refusal, error)
	// Revoke deletes that credential.
	Revoke(ctx context.Context, cluster *registrationv1alpha1.Cluster) error
	// MemberOf is the member of a Cluster, or nil.
	MemberOf(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*clusterv1beta1.MemberCluster, error)
	// Mirrors reports whether a ManagedCluster mirrors a member, which has an agent of its own.
	Mirrors(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error)
}

// Reconciler delivers agents.
type Reconciler struct {
	// Client reads from a cache.
	Client client.Client
	// Live reads complete ManifestWorks, and what must not be outdated.
	Live client.Reader
	// Configs is a cache that keeps configurations without Go types.
	Configs client.Reader
	// Agents renders agents, and knows members.
	Agents Agents
	// Namespace is where clusters register.
	Namespace string
	// Workers is how many clusters are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles an add-on when it, its configuration, its cluster, its member or its
// ManifestWork changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	named := func(object client.Object) bool { return object.GetName() == addonv1alpha1.FleetgateAgent }
	ofCluster := func(name func(client.Object) string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			if name(object) == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: name(object), Name: addonv1alpha1.FleetgateAgent}}}
		})
	}
	byName, byNamespace := ofCluster(client.Object.GetName), ofCluster(client.Object.GetNamespace)
	created := ofCluster(func(object client.Object) string {
		if object.GetAnnotations()[addonv1alpha1.ManagedClusterAnnotation] == "" {
			return ""
		}
		return object.GetName()
	})
	ofToken := ofCluster(func(object client.Object) string {
		return object.GetAnnotations()[registrationv1alpha1.AnnotationForCluster]
	})
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetLabels()[addonv1alpha1.AddOnNameLabel] == addonv1alpha1.FleetgateAgent
	})
	described := predicate.And(predicate.NewPredicateFuncs(named), predicate.Predicate(enqueue.Updates(func(_, _ *addonv1alpha1.ClusterManagementAddOn) bool { return false })))
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(predicate.NewPredicateFuncs(named))).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, objects.OfClusterManagementAddOn(r.Client), builder.WithPredicates(described)).
		Watches(template.AnyDeploymentConfig(), template.OfConfiguration(r.Client, template.DeploymentConfigs())).
		Watches(&clusterv1.ManagedCluster{}, byName, builder.WithPredicates(enqueue.Updates(clusterChanged))).
		Watches(&clusterv1beta1.MemberCluster{}, byName, builder.WithPredicates(enqueue.Updates(memberChanged))).
		Watches(&registrationv1alpha1.Cluster{}, created).
		Watches(&registrationv1alpha1.ClusterRegistrationToken{}, ofToken).
		Watches(&workv1.ManifestWork{}, byNamespace, builder.WithPredicates(ours)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// clusterChanged filters reports of klusterlets that change nothing here.
func clusterChanged(before, after *clusterv1.ManagedCluster) bool {
	status := func(cluster *clusterv1.ManagedCluster, kind string) metav1.ConditionStatus {
		if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
			return condition.Status
		}
		return ""
	}
	return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Annotations[addonv1alpha1.AgentMemberAnnotation] != after.Annotations[addonv1alpha1.AgentMemberAnnotation] ||
		status(before, clusterv1.ConditionHubAccepted) != status(after, clusterv1.ConditionHubAccepted) ||
		status(before, clusterv1.ConditionAvailable) != status(after, clusterv1.ConditionAvailable)
}

// memberChanged filters heartbeats.
func memberChanged(before, after *clusterv1beta1.MemberCluster) bool {
	return isRegistered(before) != isRegistered(after) || before.IsApproved() != after.IsApproved() || ofMember(before) != ofMember(after)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != addonv1alpha1.FleetgateAgent {
		return ctrl.Result{}, nil // Another add-on has the same configuration.
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, addOn, "reading ManagedClusterAddOn %s", req.NamespacedName)
	switch {
	case !exists:
		return ctrl.Result{}, err
	case addOn.DeletionTimestamp != nil:
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.finalize(ctx, addOn))
	}
	known, err := r.reconcile(ctx, addOn)
	if err != nil {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, err)
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: known.again}, client.IgnoreNotFound(r.report(ctx, addOn, known)))
}

func (r *Reconciler) report(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, known *facts) error {
	return reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		known.desiredStatus(&addOn.Status)
		template.ReportHosting(&addOn.Status, addOn)
		known.reportProgress(addOn)
	}, "writing the status of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}

// reconcile delivers the agent of a cluster, and returns what is known of it.
func (r *Reconciler) reconcile(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (*facts, error) {
	known, of := &facts{cluster: &clusterv1.ManagedCluster{}}, &addonv1alpha1.ClusterManagementAddOn{}
	enabled, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: addOn.Name}, of, "reading ClusterManagementAddOn %q", addOn.Name)
	if err != nil {
		return nil, err
	}
	if _, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: addOn.Namespace}, known.cluster, "reading ManagedCluster %q", addOn.Namespace); err != nil {
		return nil, err
	}
	known.managed = enabled && of.DeletionTimestamp == nil && objects.ManagedByHub(of)
	if known.own, err = r.Agents.Mirrors(ctx, known.cluster); known.own || err != nil {
		return known, err
	}
	fleet, err := r.clusterOf(ctx, addOn.Namespace)
	if err != nil {
		return nil, err
	}
	if known.refused = refuse(enabled, known.cluster, fleet); known.refused != nil {
		return known, r.isolate(ctx, known.cluster, fleet)
	}
	if fleet == nil {
		taken, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Name: addOn.Namespace}, &clusterv1beta1.MemberCluster{}, "reading MemberCluster %q", addOn.Namespace)
		if err != nil {
			return nil, err
		}
		if taken {
			known.refused = memberExists(addOn.Namespace)
			return known, nil
		}
		if fleet, err = r.createCluster(ctx, addOn, known.cluster); err != nil {
			return nil, err
		}
	}
	if err := r.configure(ctx, known, addOn, of); err != nil {
		return nil, err
	}
	return known, r.deliver(ctx, known, fleet)
}

// configure reads the configuration of the agent.
func (r *Reconciler) configure(ctx context.Context, known *facts, addOn *addonv1alpha1.ManagedClusterAddOn, of *addonv1alpha1.ClusterManagementAddOn) error {
	config, current, references, err := template.DeploymentConfigOf(ctx, r.Configs, addOn, of)
	known.config, known.references, known.unconfigured = config, references, refusal.Of(err)
	known.hashes, _ = objects.Hashes(addOn)
	switch {
	case known.unconfigured != nil:
		//lint:ignore nilerr The condition reports it.
		return nil
	case err != nil:
		return err
	case !current:
		known.unconfigured = refusal.New(addonv1alpha1.ReasonConfigurationsNotConfigured, "The rollout has not given the cluster its current configurations")
		return nil
	}
	known.unconfigured = unsupported(config)
	return nil
}

// clusterOf is the Cluster of fleet.cattle.io with the name, or nil.
func (r *Reconciler) clusterOf(ctx context.Context, name string) (*registrationv1alpha1.Cluster, error) {
	cluster, key := &registrationv1alpha1.Cluster{}, client.ObjectKey{Namespace: r.Namespace, Name: name}
	if exists, err := reconcileutil.GetIfExists(ctx, r.Live, key, cluster, "reading Cluster %s", key); !exists {
		return nil, err
	}
	return cluster, nil
}

// createCluster records the finalizer first, so that the Cluster is deleted with the add-on.
func (r *Reconciler) createCluster(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, of *clusterv1.ManagedCluster) (*registrationv1alpha1.Cluster, error) {
	if err := reconcileutil.AddFinalizer(ctx, r.Client, addOn, addonv1alpha1.CleanupFinalizer, "adding the finalizer to ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name); err != nil {
		return nil, err
	}
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: of.Name, Annotations: map[string]string{addonv1alpha1.ManagedClusterAnnotation: string(of.UID)},
	}}
	// Nobody can guess it.
	cluster.Spec.ClientID = rand.Text()
	err := r.Client.Create(ctx, cluster)
	if apierrors.IsNotFound(err) {
		// Nobody has registered a cluster by hand.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}
		if err := r.Client.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return nil, fmt.Errorf("creating namespace %q, in which clusters register: %w", r.Namespace, err)
		}
		err = r.Client.Create(ctx, cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("creating Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return cluster, nil
}

// deliver writes the ManifestWork, and follows the member.
func (r *Reconciler) deliver(ctx context.Context, known *facts, fleet *registrationv1alpha1.Cluster) error {
	member, err := r.Agents.MemberOf(ctx, fleet)
	if err != nil {
		return err
	}
	if member != nil && member.Name != known.cluster.Name {
		known.refused = memberExists(known.cluster.Name)
		return nil
	}
	known.member, known.ready = member, readyOf(fleet)
	if member != nil {
		if err := r.mark(ctx, known.cluster, string(member.UID)); err != nil {
			return err
		}
	}
	registered := isRegistered(member) || !fleet.Status.Agent.LastSeen.IsZero()
	if known.work, known.refused, err = r.ensureWork(ctx, known, fleet, registered); err != nil {
		return err
	}
	if known.refused != nil && known.unconfigured == nil {
		known.again = retryLater
	}
	if registered && known.refused == nil {
		return r.Agents.Revoke(ctx, fleet)
	}
	return nil
}

// ensureWork creates or updates the ManifestWork, or returns why it cannot.
func (r *Reconciler) ensureWork(ctx context.Context, known *facts, fleet *registrationv1alpha1.Cluster, registered bool) (*workv1.ManifestWork, *refusal.Refusal, error) {
	work, key := &workv1.ManifestWork{}, client.ObjectKey{Namespace: fleet.Name, Name: workName}
	exists, err := reconcileutil.GetIfExists(ctx, r.Live, key, work, "reading ManifestWork %s", key)
	if err != nil || known.unconfigured != nil {
		return work, known.unconfigured, err
	}
	manifests, version, refused, err := r.Agents.Manifests(ctx, fleet, known.config, registered, knownVersion(work))
	if err != nil || refused != nil {
		return work, refused, err
	}
	desired := work.DeepCopy()
	if manifests != nil {
		if desired, err = desiredWork(key, manifests, version); err != nil {
			return nil, nil, err
		}
	}
	if err := setHashes(desired, known.hashes); err != nil {
		return nil, nil, err
	}
	if !exists {
		if err := r.Client.Create(ctx, desired); err != nil {
			return nil, nil, fmt.Errorf("creating ManifestWork %s: %w", key, err)
		}
		return desired, nil, nil
	}
	return work, nil, reconcileutil.Patch(ctx, r.Client, work, func() {
		work.Spec = desired.Spec
		metav1.SetMetaDataLabel(&work.ObjectMeta, addonv1alpha1.AddOnNameLabel, addonv1alpha1.FleetgateAgent)
		for _, key := range []string{addonv1alpha1.AgentVersionAnnotation, workv1.ConfigSpecHashAnnotation} {
			delete(work.Annotations, key)
			if value := desired.Annotations[key]; value != "" {
				metav1.SetMetaDataAnnotation(&work.ObjectMeta, key, value)
			}
		}
	}, "updating ManifestWork %s", key)
}

// mark records on the ManagedCluster which member has its agent; nothing ends that.
func (r *Reconciler) mark(ctx context.Context, cluster *clusterv1.ManagedCluster, member string) error {
	return reconcileutil.Patch(ctx, r.Client, cluster, func() {
		if member == "" {
			delete(cluster.Annotations, addonv1alpha1.AgentMemberAnnotation)
			return
		}
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, addonv1alpha1.AgentMemberAnnotation, member)
	}, "recording the member of ManagedCluster %q", cluster.Name)
}
