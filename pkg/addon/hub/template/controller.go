// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/progress"
	"fleetgate.io/fleetgate/pkg/addon/hub/template/render"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Name is the controller's name.
const Name = "managedclusteraddon.template"

// refusedRetry is the pause before a retry of what the hub refused, for a reason that causes no event
// here, such as a missing right.
const refusedRetry = time.Minute

// Reconciler serves add-ons with templates on clusters.
type Reconciler struct {
	// Client reads from a cache with the indexes of package objects. ManifestWorks in it may lack
	// their manifests.
	Client client.Client
	// Live reads complete ManifestWorks.
	Live client.Reader
	// Configs is a cache that keeps configurations without Go types.
	Configs client.Reader
	// HashOf is the hash of the spec of a ManifestWork, which may be from the cache.
	HashOf func(*workv1.ManifestWork) (string, error)
	// Bindings grants rights.
	Bindings *Bindings
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles an add-on when it, its ClusterManagementAddOn, one of its configurations,
// ManifestWorks or RoleBindings, or what it reads of its ManagedCluster changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	seen := enqueue.Updates(func(before, after *clusterv1.ManagedCluster) bool {
		const mirrors = addonv1alpha1.ImageRegistriesAnnotation
		return before.Annotations[mirrors] != after.Annotations[mirrors] || isUnknown(before) != isUnknown(after)
	})
	builder := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, objects.OfClusterManagementAddOn(r.Client), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1.ManifestWork{}, enqueue.After(0, addOnOf)).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
			return enqueue.All(ctx, r.Client, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster.GetName()))
		}), builder.WithPredicates(seen)).
		WatchesRawSource(source.Kind[client.Object](r.Bindings.Cache, &rbacv1.RoleBinding{}, enqueue.After(0, addOnOf))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	for _, kind := range []configKind{templates(), DeploymentConfigs()} {
		builder = builder.Watches(objectOf(kind), OfConfiguration(r.Client, kind))
	}
	return reconcileutil.SetupError(Name, builder.Complete(reconcileutil.RetryConflicts(r)))
}

func isUnknown(cluster *clusterv1.ManagedCluster) bool {
	available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable)
	return available != nil && available.Status == metav1.ConditionUnknown
}

// addOnOf is the add-on of a ManifestWork or RoleBinding, if any.
func addOnOf(object client.Object) []types.NamespacedName {
	labels := object.GetLabels()
	if labels[addonv1alpha1.AddOnNameLabel] == "" {
		return nil
	}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: labels[addonv1alpha1.AddOnNameLabel]}
	if of := labels[addonv1alpha1.AddOnNamespaceLabel]; of != "" {
		key.Namespace = of
	}
	return []types.NamespacedName{key}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req.NamespacedName)
	return reconcileutil.RequeueOnConflict(result, client.IgnoreNotFound(err))
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	addOn, err := read(ctx, r.Client, key)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case addOn.UID == "":
		return ctrl.Result{}, r.Bindings.keep(ctx, key, nil)
	case addOn.of.UID == "" || !UsesTemplates(addOn.of):
		return ctrl.Result{}, nil
	case addOn.DeletionTimestamp != nil:
		return r.finalize(ctx, addOn)
	case addOn.of.DeletionTimestamp != nil || addOn.cluster.UID == "" || addOn.cluster.DeletionTimestamp != nil || !isOwned(addOn):
		return ctrl.Result{}, nil // The owner is added first, and so its event follows.
	}
	return r.serve(ctx, addOn)
}

func isOwned(addOn *instance) bool {
	return slices.ContainsFunc(addOn.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == addOn.of.UID })
}

// state is what is known about an add-on after it was served.
type state struct {
	// rendered is nil while there is nothing to render.
	rendered *render.Rendered
	// registrations are written if they could be granted.
	registrations *[]addonv1alpha1.RegistrationConfig
	conditions    []metav1.Condition
	// works are by their numbers.
	works map[int]*workv1.ManifestWork
}

// inOrder are the ManifestWorks by their numbers.
func (s *state) inOrder() []*workv1.ManifestWork {
	var all []*workv1.ManifestWork
	for _, number := range slices.Sorted(maps.Keys(s.works)) {
		all = append(all, s.works[number])
	}
	return all
}

func (s *state) report(condition *metav1.Condition) {
	if condition != nil {
		s.conditions = append(s.conditions, *condition)
	}
}

// serve brings everything of an add-on up to date, and its status last.
func (r *Reconciler) serve(ctx context.Context, addOn *instance) (ctrl.Result, error) {
	s := &state{}
	err := r.update(ctx, addOn, s)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, err // The cache is outdated: the retry would correct a status from it.
	}
	result := ctrl.Result{}
	if refused := refusal.Of(err); refused != nil {
		s.report(notApplied(limited(refused.Message)))
		result.RequeueAfter, err = refusedRetry, nil
	}
	if slices.ContainsFunc(s.conditions, func(c metav1.Condition) bool { return c.Reason == addonv1alpha1.ReasonSetPermissionFailed }) {
		result.RequeueAfter = refusedRetry
	}
	observed, errObserved := configs{r.Configs}.observed(ctx, addOn)
	if errObserved != nil {
		return ctrl.Result{}, errors.Join(err, errObserved)
	}
	written := reconcileutil.PatchStatus(ctx, r.Client, addOn.ManagedClusterAddOn, func() {
		s.write(addOn, observed)
		// One write reports all, because each is an event for all controllers of add-ons.
		progress.Report(addOn.ManagedClusterAddOn, s.inOrder())
	}, "writing the status of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
	return result, errors.Join(err, written)
}

func (r *Reconciler) update(ctx context.Context, addOn *instance, s *state) error {
	var err error
	if s.works, err = r.deployed(ctx, addOn); err != nil {
		return err
	}
	in, err := configs{r.Configs}.inputs(ctx, addOn)
	if in == nil {
		return err
	}
	if s.rendered, err = render.Render(*in); err != nil {
		return refuse("AddOnTemplate %q cannot be rendered for this cluster: %w", in.Template.Name, err)
	}
	if err := r.register(ctx, addOn, in.Template, s); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured) {
		return nil
	}
	if len(s.rendered.Hook.Workload.Manifests) > 0 {
		if err := r.retain(ctx, addOn); err != nil {
			return err
		}
	} else if err := r.release(ctx, addOn); err != nil {
		return err
	}
	if len(s.rendered.Deploy.Workload.Manifests) == 0 {
		s.report(&metav1.Condition{
			Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonManifestsApplied, Message: "no manifest need to apply",
		})
		return nil
	}
	if s.works, err = r.deploy(ctx, addOn, s.rendered.Deploy, s.works); err != nil {
		return err
	}
	s.report(applied(s.works))
	return nil
}

// register grants the agent of an add-on its rights, and names its registrations if that succeeded.
func (r *Reconciler) register(ctx context.Context, addOn *instance, template *addonv1alpha1.AddOnTemplate, s *state) error {
	err := refuseSigners(template)
	if err == nil {
		err = r.Bindings.keep(ctx, client.ObjectKeyFromObject(addOn), bindingsOf(template, addOn.ManagedClusterAddOn))
	}
	condition := metav1.Condition{
		Type: addonv1alpha1.ConditionRegistrationApplied, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonSetPermissionApplied,
		Message: "Registration of the addon agent is configured",
	}
	if refused := refusal.Of(err); refused != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, refused.Reason
		condition.Message = "Failed to set permission for hub agent: " + refused.Message
		s.report(&condition)
		//lint:ignore nilerr The condition reports it.
		return nil
	}
	if err != nil {
		return err
	}
	s.report(&condition)
	registrations := reportedRegistrations(template, addOn.ManagedClusterAddOn)
	s.registrations = &registrations
	return nil
}

// write writes the state into the status. Observed are the configReferences with what is known of them.
func (s *state) write(addOn *instance, observed []addonv1alpha1.ConfigReference) {
	status := &addOn.Status
	status.SupportedConfigs = []configKind{templates(), DeploymentConfigs()}
	status.HealthCheck.Mode = addonv1alpha1.HealthCheckCustomized
	status.ConfigReferences = observed
	ReportHosting(status, addOn)
	if s.registrations != nil {
		status.Registrations = *s.registrations
	}
	if s.rendered != nil {
		status.Namespace = s.rendered.Namespace
	}
	for _, condition := range s.conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	// The controller that finds a cluster unreachable also sets Available of its add-ons.
	if isUnknown(addOn.cluster) || meta.FindStatusCondition(status.Conditions, addonv1alpha1.ConditionManifestApplied) == nil {
		return
	}
	probes := reported(s.works)
	if s.rendered != nil {
		probes = s.rendered.Probes
	}
	meta.SetStatusCondition(&status.Conditions, available(addOn.Name, probes, s.works))
}

// observed are the configReferences of an add-on with the generations of what exists, and the hashes of
// those that its own spec names.
func (c configs) observed(ctx context.Context, addOn *instance) ([]addonv1alpha1.ConfigReference, error) {
	var all []addonv1alpha1.ConfigReference
	for _, reference := range addOn.Status.ConfigReferences {
		reference := *reference.DeepCopy()
		if reference.DesiredConfig != nil && objectOf(reference.ConfigGroupResource) != nil && addOn.offers(reference.ConfigGroupResource, reference.DesiredConfig.ConfigReferent) {
			object, sum, err := c.read(ctx, reference.ConfigGroupResource, reference.DesiredConfig.ConfigReferent)
			if err != nil {
				return nil, err
			}
			if names(addOn.ManagedClusterAddOn, reference.ConfigGroupResource, reference.DesiredConfig.ConfigReferent) {
				reference.DesiredConfig.SpecHash = sum
			}
			// A version that the rollout has not given to the cluster yet is not reported: that would be one more write.
			if object != nil && reference.DesiredConfig.SpecHash == sum {
				reference.LastObservedGeneration = object.GetGeneration()
			}
		}
		all = append(all, reference)
	}
	return all, nil
}

// finalize runs what a template has for before the deletion, and then lets the add-on go. Its ManifestWork
// follows by garbage collection.
func (r *Reconciler) finalize(ctx context.Context, addOn *instance) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(addOn, addonv1alpha1.PreDeleteFinalizer) {
		return ctrl.Result{}, nil
	}
	if addOn.cluster.UID == "" {
		return ctrl.Result{}, r.release(ctx, addOn) // Nothing runs any more.
	}
	in, err := configs{r.Configs}.inputs(ctx, addOn)
	if err == nil && in != nil {
		var rendered *render.Rendered
		if rendered, err = render.Render(*in); err == nil {
			return r.runHooks(ctx, addOn, rendered.Hook)
		}
	}
	if refused := refusal.Of(err); refused != nil {
		return ctrl.Result{RequeueAfter: refusedRetry}, r.reportHooks(ctx, addOn, metav1.ConditionFalse,
			limited(refused.Message)+"; or remove finalizer "+addonv1alpha1.PreDeleteFinalizer+", and what runs before the deletion does not run")
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) runHooks(ctx context.Context, addOn *instance, hook workv1.ManifestWorkSpec) (ctrl.Result, error) {
	if len(hook.Workload.Manifests) == 0 {
		return ctrl.Result{}, r.release(ctx, addOn)
	}
	name := "addon-" + addOn.Name + "-pre-delete"
	work, err := r.workOf(ctx, addOn, name)
	if err == nil {
		work, err = r.deliver(ctx, addOn, name, hook, work)
	}
	if refused := refusal.Of(err); refused != nil {
		return ctrl.Result{RequeueAfter: refusedRetry}, r.reportHooks(ctx, addOn, metav1.ConditionFalse, limited(refused.Message))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !hooksSucceeded(work, hook.ManifestConfigs) {
		return ctrl.Result{}, r.reportHooks(ctx, addOn, metav1.ConditionFalse, "hook manifestWork "+name+" is not completed.")
	}
	if err := r.reportHooks(ctx, addOn, metav1.ConditionTrue, "hook manifestWork "+name+" is completed."); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.release(ctx, addOn)
}

func (r *Reconciler) reportHooks(ctx context.Context, addOn *instance, status metav1.ConditionStatus, message string) error {
	reason := addonv1alpha1.ReasonHookNotCompleted
	if status == metav1.ConditionTrue {
		reason = addonv1alpha1.ReasonHookCompleted
	}
	return reconcileutil.PatchStatus(ctx, r.Client, addOn.ManagedClusterAddOn, func() {
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionHookCompleted, Status: status, Reason: reason, Message: message})
	}, "writing into the status of ManagedClusterAddOn %s/%s what runs before its deletion", addOn.Namespace, addOn.Name)
}

// retain keeps the add-on until what is for before the deletion has run. Its ClusterManagementAddOn
// goes last, because only that says which template is the cluster's.
func (r *Reconciler) retain(ctx context.Context, addOn *instance) error {
	if err := reconcileutil.AddFinalizer(ctx, r.Client, addOn.of, addonv1alpha1.CleanupFinalizer, "adding the finalizer to ClusterManagementAddOn %q", addOn.Name); err != nil {
		return err
	}
	return reconcileutil.AddFinalizer(ctx, r.Client, addOn.ManagedClusterAddOn, addonv1alpha1.PreDeleteFinalizer, "adding the finalizer to ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}

func (r *Reconciler) release(ctx context.Context, addOn *instance) error {
	return reconcileutil.RemoveFinalizer(ctx, r.Client, addOn.ManagedClusterAddOn, addonv1alpha1.PreDeleteFinalizer, "removing the finalizer of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}
