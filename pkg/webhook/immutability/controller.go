// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// FieldOwner is the field manager of webhooks and exported policies.
const FieldOwner = client.FieldOwner("fleetgate-policies")

const (
	// recheck is how often the webhooks are compared with the serving authority's bundle, which
	// changes without an event here.
	recheck = 30 * time.Second
	// forgetAfter is how long the Lease of a guard stays after its last use.
	forgetAfter = time.Hour
)

// WebhookReconciler maintains the webhooks of all policies, in the leader. It watches policies and
// the configuration that it writes.
type WebhookReconciler struct {
	Client client.Client
	// Live reads Leases: the gateway does not cache all Leases of the hub.
	Live     client.Reader
	Policies *Policies
	// ClientConfig says how the hub's API server reaches the gateway; the reconciler sets the path.
	ClientConfig func(context.Context) (admissionregistrationv1.WebhookClientConfig, error)
	// FailClosed are the API groups for which policies may fail closed.
	FailClosed sets.Set[string]
	// Namespace is the gateway's.
	Namespace string
	Clock     clock.PassiveClock
}

// SetupWithManager watches policies and objects that depend on them.
func (r *WebhookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: Configuration}}}
	})
	ours := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if object.GetName() != Configuration {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: Configuration}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy.webhooks").
		Watches(&admissionv1alpha1.ImmutabilityPolicy{}, always).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, ours).
		Complete(r)
}

// Reconcile writes the configuration if it is not up to date.
func (r *WebhookReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var policies admissionv1alpha1.ImmutabilityPolicyList
	if err := r.Client.List(ctx, &policies); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ImmutabilityPolicies: %w", err)
	}
	config, err := r.ClientConfig(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var served []*Compiled
	for i := range policies.Items {
		policy := &policies.Items[i]
		if policy.DeletionTimestamp != nil {
			continue
		}
		known := r.Policies.ensure(policy)
		ask, err := r.needsWebhook(ctx, policy, known)
		if err != nil {
			return ctrl.Result{}, err
		}
		if ask {
			served = append(served, known.compiled)
		}
	}
	wanted := append([]admissionregistrationv1.ValidatingWebhook{AuthorWebhook(pathed(config, PathAuthor))}, webhooks(served, config, r.FailClosed, r.Namespace)...)
	if err := r.write(ctx, wanted); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.forgetLeases(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}

// needsWebhook is true for a policy that needs the gateway. It is false if the API server enforces the
// policy itself, and if the API server does not accept the policy's match.
func (r *WebhookReconciler) needsWebhook(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy, served entry) (bool, error) {
	if policy.Spec.Enforcement == admissionv1alpha1.EnforcementNative {
		if reason, err := notNative(ctx, r.Client, policy); err != nil || reason == nil {
			return false, err
		}
	}
	return !slices.ContainsFunc(served.problems, func(p *field.Error) bool { return strings.HasPrefix(p.Field, "spec.match") }), nil
}

func (r *WebhookReconciler) write(ctx context.Context, wanted []admissionregistrationv1.ValidatingWebhook) error {
	var current admissionregistrationv1.ValidatingWebhookConfiguration
	err := r.Client.Get(ctx, client.ObjectKey{Name: Configuration}, &current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", Configuration, err)
	}
	if err == nil && equality.Semantic.DeepEqual(withDefaults(current.Webhooks), withDefaults(wanted)) {
		return nil
	}
	return apply(ctx, r.Client, &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: Configuration, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetgate"}},
		Webhooks:   wanted,
	})
}

// withDefaults sets the API server's defaults, for comparison.
func withDefaults(webhooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	all := make([]admissionregistrationv1.ValidatingWebhook, 0, len(webhooks))
	for _, w := range webhooks {
		w = *w.DeepCopy()
		for i := range w.Rules {
			if w.Rules[i].Scope == nil {
				scope := admissionregistrationv1.AllScopes
				w.Rules[i].Scope = &scope
			}
		}
		all = append(all, w)
	}
	return all
}

// forgetLeases deletes the Leases of guards that were not used for a while.
func (r *WebhookReconciler) forgetLeases(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := r.Live.List(ctx, &leases, client.InNamespace(r.Namespace), client.HasLabels{LabelGuard}); err != nil {
		return fmt.Errorf("listing Leases of guards: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Spec.RenewTime == nil || r.Clock.Since(lease.Spec.RenewTime.Time) < forgetAfter {
			continue
		}
		err := r.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Lease %s of a guard: %w", lease.Name, err)
		}
	}
	return nil
}

// apply writes an object with server-side apply as its owner.
func apply(ctx context.Context, c client.Client, object client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", object.GetName(), err)
	}
	desired := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(desired.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(desired.Object, "status")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing %s %s: %w", desired.GetKind(), object.GetName(), err)
	}
	return nil
}
