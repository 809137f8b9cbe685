// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/addon/agent/registration"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/managednamespace"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

// TestTheGatewaysRightsAreOfOneSource compares the chart's ClusterRole with the one that all other
// tests use.
func TestTheGatewaysRightsAreOfOneSource(t *testing.T) {
	fleets := strings.Split(read(t, root+"/test/support/fleet/gateway-rbac.yaml"), "\n---\n")
	if len(fleets) != 6 {
		t.Fatal("test/support/fleet/gateway-rbac.yaml is not three ClusterRoles with their bindings any more")
	}
	rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/rbac.yaml", "--set=rbac.nativePolicies=true")
	if err != nil {
		t.Fatal(err)
	}
	charts := map[string]rbacv1.ClusterRole{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role := rbacv1.ClusterRole{}
		if unmarshal(t, document, &role); role.Kind == "ClusterRole" {
			charts[role.Name] = role
		}
	}
	for file, of := range map[string]struct{ fleets, role string }{
		"rules.yaml":           {fleets[0], "fleetgate:fleet-system:gateway"},
		"placeable.yaml":       {fleets[2], "fleetgate:fleet-system:gateway:placeable"},
		"native-policies.yaml": {fleets[4], "fleetgate:fleet-system:gateway:native-policies"},
	} {
		_, rules, _ := strings.Cut(of.fleets, "\nrules:\n")
		compare(t, chart("gateway")+"/files/"+file, strings.TrimSpace(rules)+"\n")
		var fleet rbacv1.ClusterRole
		unmarshal(t, of.fleets, &fleet)
		if diff := cmp.Diff(fleet.Rules, charts[of.role].Rules); diff != "" || len(fleet.Rules) == 0 {
			t.Errorf("ClusterRole %s of the chart is another one (-fleet +chart):\n%s", of.role, diff)
		}
	}
}

// TestTheRightsForKlusterletsAreOfOneSource does the same for the separate klusterlet rights, which
// are rendered only on request.
func TestTheRightsForKlusterletsAreOfOneSource(t *testing.T) {
	source := strings.Split(read(t, root+"/test/support/fleet/klusterlets-rbac.yaml"), "\n---\n")
	_, rules, _ := strings.Cut(source[0], "\nrules:\n")
	compare(t, chart("gateway")+"/files/klusterlets.yaml", strings.TrimSpace(rules)+"\n")
	signer := read(t, root+"/test/support/fleet/klusterlets-signer-rbac.yaml")
	_, signs, _ := strings.Cut(strings.Split(signer, "\n---\n")[0], "\nrules:\n")
	compare(t, chart("gateway")+"/files/klusterlets-signer.yaml", strings.TrimSpace(signs)+"\n")
	for _, asked := range []bool{true, false} {
		rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/rbac.yaml", fmt.Sprintf("--set=rbac.klusterlets=%v", asked))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]rbacv1.PolicyRule{}
		for document := range strings.SplitSeq(rendered, "\n---\n") {
			role := rbacv1.ClusterRole{}
			unmarshal(t, document, &role)
			if strings.HasSuffix(role.Name, ":klusterlets") && len(role.Rules) > 0 {
				got[role.Kind] = role.Rules
			}
		}
		want := map[string][]rbacv1.PolicyRule{}
		for _, document := range source {
			role := rbacv1.ClusterRole{}
			unmarshal(t, document, &role)
			if asked && len(role.Rules) > 0 {
				want[role.Kind] = role.Rules
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("asked for: %v (-fleet +chart)\n%s", asked, diff)
		}
	}
}

// TestTheRightsForTemplatesAreOfOneSource: with add-ons, the gateway may impersonate one account, whose
// rights are those of all other tests.
func TestTheRightsForTemplatesAreOfOneSource(t *testing.T) {
	source := strings.Split(read(t, root+"/test/support/fleet/addons-rbac.yaml"), "\n---\n")
	want := map[string]rbacv1.ClusterRole{}
	for _, document := range source {
		role := rbacv1.ClusterRole{}
		if unmarshal(t, document, &role); len(role.Rules) > 0 {
			want[role.Kind] = rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace}, Rules: role.Rules}
		}
	}
	_, rules, _ := strings.Cut(source[2], "\nrules:\n")
	compare(t, chart("gateway")+"/files/addon-manager.yaml", strings.TrimSpace(rules)+"\n")
	for set, asked := range map[string]bool{"apis={ocm},ocm={works,addons}": true, "apis={ocm},ocm={works}": false, "apis={ocm},ocm={works,addons},rbac.create=false": false} {
		rendered, err := render(t, "gateway", hubAccess, "--set="+set)
		if err != nil {
			t.Fatal(err)
		}
		got, expected := map[string]rbacv1.ClusterRole{}, map[string]rbacv1.ClusterRole{}
		if asked {
			expected = want
		}
		for document := range strings.SplitSeq(rendered, "\n---\n") {
			role := rbacv1.ClusterRole{}
			unmarshal(t, document, &role)
			if len(role.Rules) > 0 && (strings.HasSuffix(role.Name, ":addons") || strings.HasSuffix(role.Name, ":addon-manager")) {
				got[role.Kind] = rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace}, Rules: role.Rules}
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-fleet +chart)\n%s", set, diff)
		}
	}
}

// TestOnlyWhoHasAnAuthorityMaySign: the right to sign is rendered only with a CA.
func TestOnlyWhoHasAnAuthorityMaySign(t *testing.T) {
	var fleet rbacv1.ClusterRole
	unmarshal(t, strings.Split(read(t, root+"/test/support/fleet/klusterlets-signer-rbac.yaml"), "\n---\n")[0], &fleet)
	for name, tc := range map[string]struct {
		set  string
		want []rbacv1.PolicyRule
	}{
		"no authority":                  {"rbac.klusterlets=true", nil},
		"an authority":                  {"rbac.klusterlets=true,csrSigner.secretName=authority", fleet.Rules},
		"one, and no klusterlets":       {"csrSigner.secretName=authority", nil},
		"one, and roles made by others": {"rbac.klusterlets=true,csrSigner.secretName=authority,rbac.create=false", nil},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "gateway", hubAccess, "--set="+tc.set)
			if err != nil {
				t.Fatal(err)
			}
			var got []rbacv1.PolicyRule
			for document := range strings.SplitSeq(rendered, "\n---\n") {
				role := rbacv1.ClusterRole{}
				unmarshal(t, document, &role)
				if role.Kind == "ClusterRole" && strings.HasSuffix(role.Name, ":klusterlets-signer") {
					got = role.Rules
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAnAgentTouchesNamespacesOnlyWhereThatIsAskedFor: an agent without cluster-admin has exactly
// the code's rights for managed namespaces, and only on request.
func TestAnAgentTouchesNamespacesOnlyWhereThatIsAskedFor(t *testing.T) {
	for _, asked := range []bool{true, false} {
		rendered, err := render(t, "agent", "--set=token=a,apiServerURL=https://hub.example.org,rbac.placement.clusterAdmin=false",
			"--show-only=templates/rbac.yaml", fmt.Sprintf("--set=rbac.managedNamespaces=%v", asked))
		if err != nil {
			t.Fatal(err)
		}
		var got []rbacv1.PolicyRule
		for document := range strings.SplitSeq(rendered, "\n---\n") {
			role := rbacv1.ClusterRole{}
			unmarshal(t, document, &role)
			for _, rule := range role.Rules {
				if role.Kind == "ClusterRole" && slices.Contains(rule.Resources, "namespaces") && len(rule.ResourceNames) == 0 {
					got = append(got, rule)
				}
			}
		}
		var want []rbacv1.PolicyRule
		if asked {
			want = managednamespace.MemberRules()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("asked for: %v (-code +chart)\n%s", asked, diff)
		}
	}
}

// TestAgentOfAddOns_HasRightsInTheirNamespacesOnly: an agent without cluster-admin has exactly the
// code's rights for credentials of add-ons, in the listed namespaces.
func TestAgentOfAddOns_HasRightsInTheirNamespacesOnly(t *testing.T) {
	rendered, err := render(t, "agent", "--set=token=a,apiServerURL=https://hub.example.org,rbac.placement.clusterAdmin=false",
		"--show-only=templates/rbac.yaml", "--set=rbac.addOnNamespaces={one,two}")
	if err != nil {
		t.Fatal(err)
	}
	roles, bindings := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.Subject{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role, binding := rbacv1.Role{}, rbacv1.RoleBinding{}
		unmarshal(t, document, &role)
		unmarshal(t, document, &binding)
		switch {
		case !slices.Contains([]string{"one", "two"}, role.Namespace):
		case role.Kind == "Role":
			roles[role.Namespace] = role.Rules
		case role.Kind == "RoleBinding":
			bindings[role.Namespace] = binding.Subjects
		}
	}
	want := map[string][]rbacv1.PolicyRule{"one": registration.MemberRules(), "two": registration.MemberRules()}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("(-code +chart)\n%s", diff)
	}
	if len(bindings) != len(want) || len(bindings["one"]) != 1 {
		t.Errorf("bound to %v", bindings)
	}
}

// TestANarrowedGatewayReadsWhatIsLabelled: in addition to its own kinds it can read only aggregated
// ones.
func TestANarrowedGatewayReadsWhatIsLabelled(t *testing.T) {
	rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/rbac.yaml", "--set=rbac.placeable=aggregated")
	if err != nil {
		t.Fatal(err)
	}
	gathered := 0
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role := rbacv1.ClusterRole{}
		unmarshal(t, document, &role)
		if role.Kind == "ClusterRole" && role.AggregationRule != nil {
			gathered++
			label := role.AggregationRule.ClusterRoleSelectors[0].MatchLabels[placementv1beta1.PlaceableLabel]
			if role.Name != "fleetgate-placeable" || label != "true" || len(role.Rules) != 0 {
				t.Errorf("ClusterRole %s gathers by %v", role.Name, role.AggregationRule)
			}
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, "*") {
				t.Errorf("ClusterRole %s allows %v in all groups", role.Name, rule.Verbs)
			}
		}
	}
	if gathered != 1 || !strings.Contains(rendered, "kind: ClusterRole\n  name: fleetgate-placeable") {
		t.Errorf("%d ClusterRoles are gathered, or nobody is bound to it", gathered)
	}
}

// TestTheGatewayWritesItsOwnPoliciesOnly: rights to change policies and webhooks have
// resourceNames, which are those of the code.
func TestTheGatewayWritesItsOwnPoliciesOnly(t *testing.T) {
	var own []string
	found, err := filepath.Glob(root + "/pkg/webhook/policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		own = append(own, regexp.MustCompile(`(?m)^  name: (\S+)$`).FindStringSubmatch(read(t, file))[1])
	}
	slices.Sort(own)
	var rules []rbacv1.PolicyRule
	unmarshal(t, read(t, chart("gateway")+"/files/rules.yaml"), &rules)
	named := map[string][]string{}
	for _, rule := range rules {
		if !slices.Contains(rule.APIGroups, admissionregistrationv1.GroupName) {
			continue
		}
		for _, verb := range rule.Verbs {
			if len(rule.ResourceNames) == 0 && verb != "list" && verb != "watch" {
				t.Errorf("the gateway may %s any of %v", verb, rule.Resources)
			}
		}
		named[rule.Resources[0]] = append(named[rule.Resources[0]], rule.ResourceNames...)
	}
	want := map[string][]string{
		"validatingadmissionpolicies":     own,
		"mutatingwebhookconfigurations":   {policies.MutatingConfiguration, policies.ValidatingConfiguration, immutability.Configuration},
		"validatingwebhookconfigurations": {webhook.ManifestWorkConfiguration, webhook.ReplicaSetConfiguration},
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("the gateway's role names other objects than there are (-source +role):\n%s", diff)
	}
}

// TestTheChartsPolicyOnTheGatewaysAccountIsThatOfTheSource: it equals the gateway's policy, under a
// name that the gateway cannot change.
func TestTheChartsPolicyOnTheGatewaysAccountIsThatOfTheSource(t *testing.T) {
	source := read(t, root+"/pkg/webhook/policies/gateway-account.yaml")
	compare(t, chart("gateway")+"/files/gateway-account.yaml", source[strings.Index(source, "apiVersion:"):])
	rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/account.yaml", "--set=argocdNamespace=argo")
	if err != nil {
		t.Fatal(err)
	}
	rendered = rendered[strings.Index(rendered, "apiVersion:"):]
	first, second, _ := strings.Cut(rendered, "\n---\n")
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	unmarshal(t, first, &policy)
	unmarshal(t, second, &binding)
	objects := policies.Gateway(policies.Parameters{
		GatewayUser: "system:serviceaccount:fleet-system:gateway", GatewayNamespace: "fleet-system",
		ArgoCD: types.NamespacedName{Namespace: "argo", Name: argocd.Account},
	})
	wanted := objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
	// CEL takes both kinds of quotes.
	quoted := func(text string) string { return strings.ReplaceAll(text, `"`, "'") }
	wanted.MatchConditions[0].Expression = quoted(wanted.MatchConditions[0].Expression)
	for i := range wanted.Variables {
		wanted.Variables[i].Expression = quoted(wanted.Variables[i].Expression)
	}
	for i := range wanted.Validations {
		wanted.Validations[i].Expression = quoted(wanted.Validations[i].Expression)
	}
	if diff := cmp.Diff(wanted, policy.Spec); diff != "" {
		t.Errorf("the chart's policy is another one (-source +chart):\n%s", diff)
	}
	const name = "fleetgate.fleet-system.gateway"
	if policy.Name != name || binding.Name != name || binding.Spec.PolicyName != name || !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
		t.Errorf("policy %s is bound by %s to %s, %v", policy.Name, binding.Name, binding.Spec.PolicyName, binding.Spec.ValidationActions)
	}
}
