// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// lookupsKind replaces params when expressions are type-checked. No schema has it, so lookups can
// have any type.
const lookupsKind = "Lookups"

// maxTypeWarnings limits the type warnings in the status.
const maxTypeWarnings = 64

// StatusReconciler reports in each policy's status whether it is enforced, and maintains the
// exported policies of enforcement Native. It runs in the leader.
type StatusReconciler struct {
	Client   client.Client
	Policies *Policies
	Mapper   apimeta.RESTMapper
	// Schemas resolves the current types of the hub.
	Schemas resolver.SchemaResolver
	// FailClosed are the API groups for which policies may fail closed.
	FailClosed sets.Set[string]
}

// SetupWithManager watches policies, and the exported ones that they own.
func (r *StatusReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy.status").
		For(&admissionv1alpha1.ImmutabilityPolicy{}).
		Owns(&admissionregistrationv1.ValidatingAdmissionPolicy{}).
		Owns(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}).
		Complete(r)
}

// Reconcile computes the status and writes it once. It requeues the policy, since kinds can be
// added to or removed from the hub.
func (r *StatusReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var policy admissionv1alpha1.ImmutabilityPolicy
	if err := r.Client.Get(ctx, request.NamespacedName, &policy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if policy.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	served := r.Policies.ensure(&policy)
	exportErr, err := r.keepExported(ctx, &policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := policy.DeepCopy()
	forbidden, err := r.forbiddenLookup(ctx, &policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	matched, unserved := r.matched(&policy)
	wanted.Status.MatchedResources = int32(len(matched))
	wanted.Status.ExpressionWarnings = nil
	if len(served.problems) == 0 {
		wanted.Status.ExpressionWarnings = r.typeWarnings(served.compiled, matched)
	}
	found := onHub{forbidden: forbidden, notExported: exportErr, matched: len(matched), unserved: unserved, warnings: wanted.Status.ExpressionWarnings}
	for _, condition := range conditionsOf(&policy, served, found, r.FailClosed) {
		condition.ObservedGeneration = policy.Generation
		apimeta.SetStatusCondition(&wanted.Status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(policy.Status, wanted.Status) {
		return ctrl.Result{RequeueAfter: recheck}, nil
	}
	if err := r.Client.Status().Patch(ctx, wanted, client.MergeFrom(&policy)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of ImmutabilityPolicy %s: %w", policy.Name, err)
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}

// onHub holds what was found about a policy on this hub.
type onHub struct {
	// forbidden is the first lookup whose objects the gateway is not allowed to read.
	forbidden string
	// notExported is why the API server cannot enforce the policy itself.
	notExported error
	// matched counts the resources that the policy matches; unserved are those that it names and
	// the hub does not serve.
	matched  int
	unserved []string
	// warnings are about fields and types that do not fit the matched kinds.
	warnings []admissionregistrationv1.ExpressionWarning
}

// maxUnserved limits the names in a condition.
const maxUnserved = 5

// absent names the resources that the hub does not serve.
func (f *onHub) absent() string {
	names := f.unserved
	if more := len(names) - maxUnserved; more > 0 {
		names = append(slices.Clone(names[:maxUnserved]), fmt.Sprintf("%d more", more))
	}
	return "the hub has no resource " + strings.Join(names, ", ")
}

// conditionsOf says whether a policy works, and if not, the remedy.
func conditionsOf(policy *admissionv1alpha1.ImmutabilityPolicy, served entry, found onHub, failClosed sets.Set[string]) []metav1.Condition {
	compiled := metav1.Condition{Type: admissionv1alpha1.ConditionCompiled, Status: metav1.ConditionTrue, Reason: admissionv1alpha1.ReasonCompiled,
		Message: "every path and expression can be evaluated"}
	if len(found.warnings) > 0 {
		first := found.warnings[0]
		compiled.Reason = admissionv1alpha1.ReasonExpressionWarnings
		compiled.Message = untrusted.Truncate(fmt.Sprintf("every path and expression can be evaluated, but not all fit the matched kinds (see status.expressionWarnings): %s: %s", first.FieldRef, first.Warning), maxAudit)
	}
	enforced := metav1.Condition{Type: admissionv1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: admissionv1alpha1.ReasonEnforced,
		Message: "requests that break the policy: " + string(policy.Spec.Enforcement)}
	if len(found.unserved) > 0 {
		enforced.Message += "; " + found.absent() + ": unless you install it, correct spec.match.resourceRules"
	}
	switch {
	case len(served.problems) > 0:
		compiled.Status, compiled.Reason, compiled.Message = metav1.ConditionFalse, admissionv1alpha1.ReasonCompileError, untrusted.Truncate(joined(served.problems), maxAudit)
		enforced.Status, enforced.Reason, enforced.Message = metav1.ConditionFalse, admissionv1alpha1.ReasonNotCompiled,
			"requests are not checked: correct what condition Compiled names"
		if FailsClosed(policy, failClosed) {
			enforced.Message = "requests are refused: correct what condition Compiled names"
		}
	case found.forbidden != "":
		enforced.Status, enforced.Reason, enforced.Message = metav1.ConditionFalse, admissionv1alpha1.ReasonLookupForbidden,
			"the gateway is not allowed to read the objects of lookup "+found.forbidden+": grant its account that right"
	case found.matched == 0:
		enforced.Status, enforced.Reason, enforced.Message = metav1.ConditionFalse, admissionv1alpha1.ReasonNothingMatched,
			found.absent()+": no request is checked until it does; correct groups, versions and plurals in spec.match.resourceRules, or install the kind"
	case found.notExported != nil:
		enforced.Reason, enforced.Message = admissionv1alpha1.ReasonNotExportable, found.notExported.Error()
	case asksToFail(policy) && !FailsClosed(policy, failClosed) && policy.Spec.Enforcement != admissionv1alpha1.EnforcementNative:
		enforced.Reason, enforced.Message = admissionv1alpha1.ReasonFailNotAllowed,
			"enforced while a gateway responds; failurePolicy Fail needs webhooks.failClosedGroups of the gateway with "+strings.Join(groupsOf(policy), ", ")
	}
	return []metav1.Condition{compiled, enforced}
}

// keepExported creates and deletes the native policy. The first error means that the policy cannot
// be exported, the second that writing failed.
func (r *StatusReconciler) keepExported(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy) (notExportable, failure error) {
	if policy.Spec.Enforcement != admissionv1alpha1.EnforcementNative {
		return nil, r.removeExported(ctx, policy)
	}
	reason, err := notNative(ctx, r.Client, policy)
	if err != nil {
		return nil, err
	}
	if reason != nil {
		return reason, r.removeExported(ctx, policy)
	}
	exported, binding, err := Export(policy)
	if err != nil {
		return err, nil
	}
	owner := metav1.NewControllerRef(policy, admissionv1alpha1.GroupVersion.WithKind("ImmutabilityPolicy"))
	for _, object := range []client.Object{exported, binding} {
		object.SetOwnerReferences([]metav1.OwnerReference{*owner})
		if err := apply(ctx, r.Client, object); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (r *StatusReconciler) removeExported(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy) error {
	for _, object := range []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, &admissionregistrationv1.ValidatingAdmissionPolicy{}} {
		err := r.Client.Get(ctx, client.ObjectKey{Name: ExportName(policy.Name)}, object)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking for the exported policy of %s: %w", policy.Name, err)
		}
		if err != nil || !metav1.IsControlledBy(object, policy) {
			continue
		}
		err = r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
		if apierrors.IsForbidden(err) {
			log.FromContext(ctx).Info("Cannot delete an exported policy: the gateway lacks the right. The API server enforces the policy until you delete it", "name", object.GetName())
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the exported policy of %s: %w", policy.Name, err)
		}
	}
	return nil
}

// forbiddenLookup returns the first lookup that the gateway itself has no permission for.
func (r *StatusReconciler) forbiddenLookup(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy) (string, error) {
	for _, lookup := range policy.Spec.Lookups {
		attributes, ok := readOf(lookup, r.Mapper)
		if !ok {
			continue
		}
		attributes.Verb = "list" // It reads one object as a list of one.
		question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
		if err := r.Client.Create(ctx, question); err != nil {
			return "", fmt.Errorf("asking for the right to make lookup %s: %w", lookup.Name, err)
		}
		if !question.Status.Allowed {
			return lookup.Name, nil
		}
	}
	return "", nil
}

// matched returns the hub's kinds that a policy matches, without subresources, and those that it
// names and the hub does not serve now.
func (r *StatusReconciler) matched(policy *admissionv1alpha1.ImmutabilityPolicy) (found []schema.GroupVersionResource, unserved []string) {
	all, absent := sets.New[schema.GroupVersionResource](), sets.New[string]()
	for _, rule := range policy.Spec.Match.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				plural, _, _ := strings.Cut(resource, "/")
				served := r.served(group, plural, rule.APIVersions)
				if len(served) == 0 {
					absent.Insert(schema.GroupResource{Group: group, Resource: plural}.String() + " in " + strings.Join(rule.APIVersions, ", "))
				}
				all.Insert(served...)
			}
		}
	}
	found = slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return found, sets.List(absent)
}

// served are the versions of a resource that the hub serves, of those that a rule names.
func (r *StatusReconciler) served(group, resource string, versions []string) []schema.GroupVersionResource {
	served, err := r.Mapper.ResourcesFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(served, func(gvr schema.GroupVersionResource) bool {
		return gvr.Group != group || !slices.Contains(versions, "*") && !slices.Contains(versions, gvr.Version)
	})
}

// typeWarnings uses Kubernetes' type checker on the expressions and the schemas of the matched
// kinds, as for a ValidatingAdmissionPolicy.
func (r *StatusReconciler) typeWarnings(c *Compiled, matched []schema.GroupVersionResource) []admissionregistrationv1.ExpressionWarning {
	if len(matched) == 0 {
		return nil
	}
	probe := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionregistrationv1.MatchResources{}}}
	for _, gvr := range matched {
		probe.Spec.MatchConstraints.ResourceRules = append(probe.Spec.MatchConstraints.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
				APIGroups: []string{gvr.Group}, APIVersions: []string{gvr.Version}, Resources: []string{gvr.Resource},
			}},
		})
	}
	if len(c.lookups) > 0 {
		probe.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: admissionv1alpha1.GroupVersion.String(), Kind: lookupsKind}
	}
	checker := &validating.TypeChecker{SchemaResolver: r.Schemas, RestMapper: r.Mapper}
	checking := checker.CreateContext(probe)
	var warnings []admissionregistrationv1.ExpressionWarning
	for _, rule := range c.rules {
		for _, source := range slices.Sorted(maps.Keys(rule.checked)) {
			results := checker.CheckExpression(checking, rule.checked[source])
			if len(results) == 0 {
				continue
			}
			if len(warnings) == maxTypeWarnings {
				return warnings
			}
			warnings = append(warnings, admissionregistrationv1.ExpressionWarning{FieldRef: source, Warning: untrusted.Truncate(results.String(), maxAudit)})
		}
	}
	return warnings
}
