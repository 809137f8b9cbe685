// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	policyvalidating "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

const gatewayUser = "system:serviceaccount:fleet-system:gate\"way'"

func allPolicies() []client.Object {
	parameters := policies.Parameters{
		TokenLifetime: time.Hour, GatewayUser: gatewayUser, GatewayNamespace: "fleet-system",
		ArgoCD: types.NamespacedName{Namespace: "argocd", Name: "fleetgate-argocd"},
	}
	all := append(policies.Members(parameters), policies.Gateway(parameters)...)
	all = append(all, policies.Deliveries(parameters)...)
	all = append(all, policies.MemberBounds()...)
	all = append(append(append(all, policies.HelmCharts()...), policies.Authors()...), policies.Orphans()...)
	all = append(append(all, policies.ManifestWorks()...), policies.Definitions(policies.GuardRailsReference)...)
	all = append(all, policies.Identities(parameters)...)
	for _, mode := range policies.AllGuardRails() {
		all = append(all, mode.Of(parameters)...)
	}
	return all
}

// TestEveryExpressionCompiles asks the compiler of the API server, which refuses a
// policy only when it is written.
func TestEveryExpressionCompiles(t *testing.T) {
	compiled := 0
	for _, object := range allPolicies() {
		policy, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			t.Fatal(err)
		}
		options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasParams: policy.Spec.ParamKind != nil}
		check := func(accessor plugincel.ExpressionAccessor) {
			t.Helper()
			compiled++
			if result := compiler.CompileCELExpression(accessor, options, environment.NewExpressions); result.Error != nil {
				t.Errorf("%s: %s\n%v", policy.Name, accessor.GetExpression(), result.Error)
			}
		}
		for _, variable := range policy.Spec.Variables {
			compiled++
			accessor := &policyvalidating.Variable{Name: variable.Name, Expression: variable.Expression}
			if result := compiler.CompileAndStoreVariable(accessor, options, environment.NewExpressions); result.Error != nil {
				t.Errorf("%s: variable %s: %v", policy.Name, variable.Name, result.Error)
			}
		}
		for _, condition := range policy.Spec.MatchConditions {
			check(&matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
		}
		for _, rule := range policy.Spec.Validations {
			check(&policyvalidating.ValidationCondition{Expression: rule.Expression})
			if rule.MessageExpression != "" {
				check(&policyvalidating.MessageExpressionCondition{MessageExpression: rule.MessageExpression})
			}
		}
		for _, annotation := range policy.Spec.AuditAnnotations {
			check(&policyvalidating.AuditAnnotationCondition{Key: annotation.Key, ValueExpression: annotation.ValueExpression})
		}
	}
	if compiled == 0 {
		t.Error("no expression was found: this test looks in the wrong place")
	}
}

func TestEveryPolicyFailsClosedAndIsBound(t *testing.T) {
	known, bound := sets.New[string](), sets.New[string]()
	for _, object := range allPolicies() {
		switch o := object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
			known.Insert(o.Name)
			// Pods of the hub's own do not wait for our definitions, and events for nothing.
			if closed := *o.Spec.FailurePolicy == admissionregistrationv1.Fail; closed == slices.Contains([]string{"fleetgate-selected-workloads", "fleetgate-refused-workload-events"}, o.Name) {
				t.Errorf("%s fails closed: %v", o.Name, closed)
			}
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			bound.Insert(o.Spec.PolicyName)
		}
	}
	if !known.Equal(bound) {
		t.Errorf("policies %v, bindings of %v", sets.List(known), sets.List(bound))
	}
}

// TestConfigurations_BlockNothingForeign: a webhook or a policy that fails closed on what
// the API server, or the gateway itself, needs to come up would keep it down.
func TestConfigurations_BlockNothingForeign(t *testing.T) {
	for _, object := range Configurations(Endpoint{Namespace: "fleet-system", Service: "gateway", Port: 9443}) {
		configuration, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		if !ok {
			continue
		}
		for _, webhook := range configuration.Webhooks {
			if len(webhook.MatchConditions) == 0 || *webhook.TimeoutSeconds > timeoutSeconds {
				t.Errorf("%s has no way around it, or takes too long", webhook.Name)
			}
			for _, rule := range webhook.Rules {
				if len(rule.APIGroups) != 1 || rule.APIGroups[0] != "placement.kubernetes-fleet.io" {
					t.Errorf("%s is asked about %v", webhook.Name, rule.APIGroups)
				}
			}
		}
	}
	for _, object := range allPolicies() {
		policy, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				// Events of members' namespaces are bounded, and those of what the guard rails refuse are left
				// out; conditions of these policies leave all others alone.
				ofFew := resource == "events" && slices.Contains([]string{"fleetgate-member-sizes", "fleetgate-refused-workload-events"}, policy.Name)
				if resource == "leases" || resource == "events" && !ofFew || resource == "*/*" && rule.APIGroups[0] == "*" {
					t.Errorf("%s is about %s of %v", policy.Name, resource, rule.APIGroups)
				}
			}
		}
	}
}

func TestObsoleteGuardRails(t *testing.T) {
	for _, mode := range policies.AllGuardRails() {
		obsolete, wanted := sets.New[string](), sets.New[string]()
		for _, object := range mode.Obsolete(policies.Parameters{GatewayUser: gatewayUser}) {
			obsolete.Insert(object.GetName())
		}
		for _, object := range mode.Of(policies.Parameters{GatewayUser: gatewayUser}) {
			wanted.Insert(object.GetName())
		}
		if both := obsolete.Intersection(wanted); both.Len() > 0 {
			t.Errorf("%s wants and removes %v", mode, sets.List(both))
		}
		if all := obsolete.Union(wanted); all.Len() != 9 {
			t.Errorf("%s leaves some of the others: %v", mode, sets.List(all))
		}
	}
}
