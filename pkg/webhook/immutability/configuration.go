// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

const (
	// Configuration is the ValidatingWebhookConfiguration that holds all policies.
	Configuration = "fleetgate-policies"
	// webhookSuffix makes a policy's name a webhook's; bypassSuffix that of the webhook for users
	// who may bypass a policy that fails closed. No policy's name can turn one into the other.
	webhookSuffix = ".policies." + admissionv1alpha1.GroupName
	bypassSuffix  = ".bypassed-policies." + admissionv1alpha1.GroupName
	// timeoutSeconds is how long the API server waits for a response.
	timeoutSeconds = 5
	// maxName is the maximum length of a policy's name, with the longer suffix.
	maxName = 253 - len(bypassSuffix)
)

// webhooks are the webhooks of the policies, one for each, so that the API server does all the
// matching, and one broken policy does not affect the others.
func webhooks(policies []*Compiled, client admissionregistrationv1.WebhookClientConfig, failClosed sets.Set[string], gatewayNamespace string) []admissionregistrationv1.ValidatingWebhook {
	var all []admissionregistrationv1.ValidatingWebhook
	for _, c := range policies {
		webhook := webhookOf(c.policy, client, gatewayNamespace)
		if !FailsClosed(c.policy, failClosed) {
			all = append(all, webhook)
			continue
		}
		all = append(all, closed(webhook, c.policy.Name), forBypass(webhook, c.policy.Name))
	}
	slices.SortFunc(all, func(a, b admissionregistrationv1.ValidatingWebhook) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func webhookOf(policy *admissionv1alpha1.ImmutabilityPolicy, client admissionregistrationv1.WebhookClientConfig, gatewayNamespace string) admissionregistrationv1.ValidatingWebhook {
	match := policy.Spec.Match
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name:                    policy.Name + webhookSuffix,
		ClientConfig:            pathed(client, PathPrefix+policy.Name),
		Rules:                   match.ResourceRules,
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       ptr.To(ptr.Deref(match.NamespaceSelector, metav1.LabelSelector{})),
		ObjectSelector:          ptr.To(ptr.Deref(match.ObjectSelector, metav1.LabelSelector{})),
		MatchConditions:         append([]admissionregistrationv1.MatchCondition{notSystem(gatewayNamespace)}, match.MatchConditions...),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
	if len(policy.Spec.Guards) > 0 {
		webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	return webhook
}

// closed is the webhook for a policy that fails closed. It excludes users who may bypass the
// policy, because an unavailable gateway cannot check their right.
func closed(webhook admissionregistrationv1.ValidatingWebhook, policy string) admissionregistrationv1.ValidatingWebhook {
	webhook = *webhook.DeepCopy()
	webhook.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	webhook.MatchConditions = append(webhook.MatchConditions, admissionregistrationv1.MatchCondition{Name: "no-bypass", Expression: "!" + mayBypass(policy)})
	return webhook
}

// forBypass is the webhook for users who may bypass the policy, and fails open. The gateway allows
// their requests and adds an audit annotation with the violations. If the gateway is down, the API
// server records that the webhook failed.
func forBypass(webhook admissionregistrationv1.ValidatingWebhook, policy string) admissionregistrationv1.ValidatingWebhook {
	webhook = *webhook.DeepCopy()
	webhook.Name = policy + bypassSuffix
	webhook.MatchConditions = append(webhook.MatchConditions, admissionregistrationv1.MatchCondition{Name: "bypass", Expression: mayBypass(policy)})
	return webhook
}

// pathed appends path to the existing one.
func pathed(config admissionregistrationv1.WebhookClientConfig, path string) admissionregistrationv1.WebhookClientConfig {
	config = *config.DeepCopy()
	if config.Service != nil {
		config.Service.Path = ptr.To(ptr.Deref(config.Service.Path, "") + path)
	} else {
		config.URL = ptr.To(strings.TrimSuffix(ptr.Deref(config.URL, ""), "/") + path)
	}
	return config
}

// FailsClosed is true for a policy that asks for it, if an administrator allowed it for every API
// group that the policy matches. A policy that only warns never fails closed.
func FailsClosed(policy *admissionv1alpha1.ImmutabilityPolicy, allowed sets.Set[string]) bool {
	return asksToFail(policy) && allowed.HasAll(groupsOf(policy)...)
}

func asksToFail(policy *admissionv1alpha1.ImmutabilityPolicy) bool {
	return policy.Spec.FailurePolicy == admissionv1alpha1.FailurePolicyFail && denies(policy)
}

func groupsOf(policy *admissionv1alpha1.ImmutabilityPolicy) []string {
	groups := sets.New[string]()
	for _, rule := range policy.Spec.Match.ResourceRules {
		groups.Insert(rule.APIGroups...)
	}
	return sets.List(groups)
}

// notSystem excludes the hub's and the gateway's own namespaces. A selector would cover only
// namespaced objects, and only until somebody changes a label.
func notSystem(gatewayNamespace string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "not-of-the-hub-itself",
		Expression: fmt.Sprintf("!has(request.namespace) || !(request.namespace in ['%s', '%s', 'kube-node-lease', '%s'])",
			metav1.NamespaceSystem, metav1.NamespacePublic, gatewayNamespace),
	}
}

// mayBypass is true for users that were granted the verb by name.
func mayBypass(policy string) string {
	check := fmt.Sprintf("authorizer.group('%s').resource('%s').name('%s')", admissionv1alpha1.GroupName, policyResource, policy)
	return fmt.Sprintf("(%[1]s.check('%[2]s').allowed() && !%[1]s.check('%[3]s').allowed())", check, BypassVerb, anyVerb)
}
