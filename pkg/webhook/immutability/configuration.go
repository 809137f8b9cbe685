// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"
	"slices"
	"strings"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

const (
	// Configuration is the ValidatingWebhookConfiguration that holds all policies.
	Configuration = "fleetgate-policies"
	// webhookSuffix makes a policy's name a webhook's.
	webhookSuffix = ".policies." + admissionv1alpha1.GroupName
	// timeoutSeconds is how long the API server waits for an answer.
	timeoutSeconds = 5
	// maxName is how long the name of a policy may be, with the suffix.
	maxName = 253 - len(webhookSuffix)
)

// webhooks are the policies as the API server asks them, one each, so that it does
// all the matching, and that one policy in trouble leaves the others alone.
func webhooks(policies []*Compiled, client k8sadmissionv1.WebhookClientConfig, failClosed sets.Set[string], gatewayNamespace string) []k8sadmissionv1.ValidatingWebhook {
	var all []k8sadmissionv1.ValidatingWebhook
	for _, c := range policies {
		all = append(all, webhookOf(c.policy, client, failClosed, gatewayNamespace))
	}
	slices.SortFunc(all, func(a, b k8sadmissionv1.ValidatingWebhook) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func webhookOf(policy *admissionv1alpha1.ImmutabilityPolicy, client k8sadmissionv1.WebhookClientConfig, failClosed sets.Set[string], gatewayNamespace string) k8sadmissionv1.ValidatingWebhook {
	match := policy.Spec.Match
	webhook := k8sadmissionv1.ValidatingWebhook{
		Name:                    policy.Name + webhookSuffix,
		ClientConfig:            pathed(client, PathPrefix+policy.Name),
		Rules:                   match.ResourceRules,
		FailurePolicy:           ptr.To(k8sadmissionv1.Ignore),
		MatchPolicy:             ptr.To(k8sadmissionv1.Equivalent),
		NamespaceSelector:       ptr.To(ptr.Deref(match.NamespaceSelector, metav1.LabelSelector{})),
		ObjectSelector:          ptr.To(ptr.Deref(match.ObjectSelector, metav1.LabelSelector{})),
		MatchConditions:         append([]k8sadmissionv1.MatchCondition{notSystem(gatewayNamespace)}, match.MatchConditions...),
		SideEffects:             ptr.To(k8sadmissionv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
	if len(policy.Spec.Guards) > 0 {
		webhook.SideEffects = ptr.To(k8sadmissionv1.SideEffectClassNoneOnDryRun)
	}
	if FailsClosed(policy, failClosed) {
		webhook.FailurePolicy = ptr.To(k8sadmissionv1.Fail)
		// The way out while no gateway answers; while one does, it asks itself, and says so in the audit log.
		webhook.MatchConditions = append(webhook.MatchConditions, k8sadmissionv1.MatchCondition{Name: "no-bypass", Expression: noBypass(policy.Name)})
	}
	return webhook
}

// pathed fills in the path.
func pathed(config k8sadmissionv1.WebhookClientConfig, path string) k8sadmissionv1.WebhookClientConfig {
	config = *config.DeepCopy()
	if config.Service != nil {
		config.Service.Path = &path
	} else {
		config.URL = ptr.To(strings.TrimSuffix(ptr.Deref(config.URL, ""), "/") + path)
	}
	return config
}

// FailsClosed is true for a policy that asks for it, if an administrator allowed it
// for every API group that the policy matches.
func FailsClosed(policy *admissionv1alpha1.ImmutabilityPolicy, allowed sets.Set[string]) bool {
	return policy.Spec.FailurePolicy == admissionv1alpha1.FailurePolicyFail && allowed.HasAll(groupsOf(policy)...)
}

func groupsOf(policy *admissionv1alpha1.ImmutabilityPolicy) []string {
	groups := sets.New[string]()
	for _, rule := range policy.Spec.Match.ResourceRules {
		groups.Insert(rule.APIGroups...)
	}
	return sets.List(groups)
}

// notSystem keeps policies away from where the hub and the gateway live. A selector
// would do for namespaced objects only until somebody changes a label.
func notSystem(gatewayNamespace string) k8sadmissionv1.MatchCondition {
	return k8sadmissionv1.MatchCondition{
		Name: "not-of-the-hub-itself",
		Expression: fmt.Sprintf("!has(request.namespace) || !(request.namespace in ['%s', '%s', 'kube-node-lease', '%s'])",
			metav1.NamespaceSystem, metav1.NamespacePublic, gatewayNamespace),
	}
}

// noBypass is false for who holds the verb by its name.
func noBypass(policy string) string {
	check := fmt.Sprintf("authorizer.group('%s').resource('%s').name('%s')", admissionv1alpha1.GroupName, policyResource, policy)
	return fmt.Sprintf("!(%[1]s.check('%[2]s').allowed() && !%[1]s.check('%[3]s').allowed())", check, BypassVerb, anyVerb)
}
