// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// verdict is a request, and what a policy says to it.
type verdict struct {
	// Of is the request in words.
	Of string `json:"of"`
	// By and In are its user and that user's groups, Create, Update or Delete its resource
	// with the subresource behind a slash.
	By     string   `json:"by"`
	In     []string `json:"in"`
	Create string   `json:"create"`
	Update string   `json:"update"`
	Delete string   `json:"delete"`
	// Namespace and Name are those of its path, Object and Old what it brings and meets.
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Object    map[string]any `json:"object"`
	Old       map[string]any `json:"old"`
	// May is what the user may do, as verb and resource with the subresource behind a slash, with
	// "named" and a name behind it for one object, in all namespaces or, with "in" and a namespace at the
	// end, there.
	May []string `json:"may"`
	// Labels are those of the namespace, Parameter the object that the policy is asked with.
	Labels    map[string]string `json:"labels"`
	Parameter map[string]any    `json:"parameter"`
	// Orphans is set if dependents are to stay.
	Orphans bool `json:"orphans"`
	// Refused is part of each refusal, empty for a request that passes.
	Refused []string `json:"refused"`
}

// Authorize answers what a policy asks about the user.
func (v verdict) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := schema.GroupResource{Group: of.GetAPIGroup(), Resource: path.Join(of.GetResource(), of.GetSubresource())}
	right := of.GetVerb() + " " + resource.String()
	for _, which := range []string{right, right + " named " + of.GetName()} {
		if slices.Contains(v.May, which) || slices.Contains(v.May, which+" in "+of.GetNamespace()) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// asks reports whether a rule of a policy is about such a request.
func (v verdict) asks(rule admissionregistrationv1.NamedRuleWithOperations) bool {
	operation := map[string]admissionregistrationv1.OperationType{
		v.Create: admissionregistrationv1.Create, v.Update: admissionregistrationv1.Update, v.Delete: admissionregistrationv1.Delete,
	}
	resource := cmp.Or(v.Create, v.Update, v.Delete)
	all := slices.Contains(rule.Resources, "*/*") || slices.Contains(rule.Resources, "*") && !strings.Contains(resource, "/")
	return slices.Contains(rule.Operations, operation[resource]) && (all || slices.Contains(rule.Resources, resource))
}

// attributes are the request as the API server hands it to policies.
func (v verdict) attributes() *admission.VersionedAttributes {
	operation := map[string]admission.Operation{v.Create: admission.Create, v.Update: admission.Update, v.Delete: admission.Delete}
	resource, subresource, _ := strings.Cut(cmp.Or(v.Create, v.Update, v.Delete), "/")
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	var options runtime.Object
	if v.Orphans {
		options = &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}
	}
	made := admission.NewAttributesRecord(objectOf(v.Object), objectOf(v.Old), schema.GroupVersionKind{Version: "v1", Kind: "K"}, v.Namespace, v.Name,
		gvr, subresource, operation[cmp.Or(v.Create, v.Update, v.Delete)], options, false, &user.DefaultInfo{Name: v.By, Groups: v.In})
	versioned := &admission.VersionedAttributes{Attributes: made, VersionedKind: made.GetKind()}
	if object := objectOf(v.Object); object != nil {
		versioned.VersionedObject.Set(object)
	}
	if old := objectOf(v.Old); old != nil {
		versioned.VersionedOldObject.Set(old)
	}
	return versioned
}

// objectOf is nil, and not a pointer that is, for nothing.
func objectOf(content map[string]any) runtime.Object {
	if content == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

// compiled is a policy made ready as the API server makes it.
func compiled(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, variable := range policy.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: variable.Name, Expression: variable.Expression}, options, environment.StoredExpressions)
	}
	var conditions, rules, messages []plugincel.ExpressionAccessor
	for _, condition := range policy.Spec.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	for _, rule := range policy.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: rule.Expression, Message: rule.Message, Reason: rule.Reason})
		var message plugincel.ExpressionAccessor
		if rule.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: rule.MessageExpression}
		}
		messages = append(messages, message)
	}
	evaluator := func(of []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		return compiler.CompileCondition(of, options, environment.StoredExpressions)
	}
	closed := admissionregistrationv1.Fail // What cannot be evaluated is seen.
	matcher := matchconditions.NewMatcher(evaluator(conditions), &closed, "policy", "validate", policy.Name)
	return validating.NewValidator(evaluator(rules), matcher, evaluator(nil), evaluator(messages), &closed, nil)
}

// refusals are what a policy says to a request, each rule that is not kept.
func refusals(validator validating.Validator, v verdict) []string {
	var parameter runtime.Object
	if v.Parameter != nil {
		parameter = objectOf(v.Parameter)
	}
	attributes := v.attributes()
	within := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.Namespace, Labels: v.Labels}}
	var said []string
	for _, decision := range validator.Validate(context.Background(), attributes.GetResource(), attributes, parameter, within, celconfig.RuntimeCELCostBudget, v).Decisions {
		if decision.Action == validating.ActionDeny {
			said = append(said, decision.Message)
		}
	}
	return said
}

// verdictsOn reads the requests that a policy is tried with.
func verdictsOn(t *testing.T, policy string) []verdict {
	t.Helper()
	text, err := os.ReadFile("testdata/verdicts/" + strings.TrimPrefix(policy, "fleetgate-") + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What is too large for a file to say.
	text = []byte(strings.ReplaceAll(string(text), "MUCH", strings.Repeat("m", 300<<10)))
	var all []verdict
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	return all
}

// tried are the policies with a file of requests: all but the guard rails, which tell people
// what they ought not to do, and those that refuse nothing.
func tried() []*admissionregistrationv1.ValidatingAdmissionPolicy {
	var all []*admissionregistrationv1.ValidatingAdmissionPolicy
	p := parameters()
	for _, objects := range setsOf(p) {
		for _, object := range objects {
			policy, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
			known := func(other *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
				return other.Name == object.GetName()
			}
			if ok && len(policy.Spec.Validations) > 0 && !strings.HasPrefix(policy.Name, "fleetgate-guard-") && !slices.ContainsFunc(all, known) {
				all = append(all, policy)
			}
		}
	}
	return all
}

// TestWhatPoliciesSayToRequests has each request judged by the API server's own evaluator.
func TestWhatPoliciesSayToRequests(t *testing.T) {
	for _, policy := range tried() {
		t.Run(policy.Name, func(t *testing.T) {
			validator := compiled(t, policy)
			for _, v := range verdictsOn(t, policy.Name) {
				said := refusals(validator, v)
				same := slices.EqualFunc(said, v.Refused, strings.Contains)
				if !same {
					t.Errorf("%s: %.300q, want %q", v.Of, said, v.Refused)
				}
			}
		})
	}
}

// TestPolicies_MatchEachKindThatTheyName: the requests are such that the API server
// asks, and one of each kind is refused. Without a kind in its list a policy would never be
// asked about that.
func TestPolicies_MatchEachKindThatTheyName(t *testing.T) {
	for _, policy := range tried() {
		t.Run(policy.Name, func(t *testing.T) {
			requests, rules := verdictsOn(t, policy.Name), policy.Spec.MatchConstraints.ResourceRules
			for _, v := range requests {
				if !slices.ContainsFunc(rules, v.asks) {
					t.Errorf("%s: the API server does not ask", v.Of)
				}
			}
			for _, rule := range rules {
				for _, resource := range rule.Resources {
					refused := func(v verdict) bool {
						return len(v.Refused) > 0 && cmp.Or(v.Create, v.Update, v.Delete) == resource
					}
					if !strings.Contains(resource, "*") && !slices.ContainsFunc(requests, refused) {
						t.Errorf("none of the requests about %s is refused", resource)
					}
				}
			}
		})
	}
}

// TestNoRuleOfAPolicyCanGoUnnoticed: without any one rule, and without any one condition of a
// policy, it says something else to one of the requests. A rule without which all of them are
// answered as before is held by nothing.
func TestNoRuleOfAPolicyCanGoUnnoticed(t *testing.T) {
	// This one only spares the API server the question whether who writes is exempt: without it
	// the policy says the same.
	saving := map[string]string{"fleetgate-reserved-keys": "has-keys-of-ours"}
	for _, policy := range tried() {
		t.Run(policy.Name, func(t *testing.T) {
			requests := verdictsOn(t, policy.Name)
			noticed := func(without *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
				validator := compiled(t, without)
				return slices.ContainsFunc(requests, func(v verdict) bool {
					return !slices.EqualFunc(refusals(validator, v), v.Refused, strings.Contains)
				})
			}
			for i, rule := range policy.Spec.Validations {
				without := policy.DeepCopy()
				without.Spec.Validations = slices.Delete(without.Spec.Validations, i, i+1)
				if !noticed(without) {
					t.Errorf("nothing is noticed without the rule %q", cmp.Or(rule.Message, rule.MessageExpression))
				}
			}
			for i, condition := range policy.Spec.MatchConditions {
				without := policy.DeepCopy()
				without.Spec.MatchConditions = slices.Delete(without.Spec.MatchConditions, i, i+1)
				if saves := saving[policy.Name] == condition.Name; noticed(without) == saves {
					t.Errorf("without the condition %s something is noticed: %v", condition.Name, saves)
				}
			}
		})
	}
}
